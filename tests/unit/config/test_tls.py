"""What an SSL listener needs."""

from __future__ import annotations

import pytest

from strandline.config.errors import ConfigError
from strandline.config.tls import TlsConfig, tls_config

PEM = {"ssl.keystore.location": "/etc/node.pem"}


def build(texts: dict[str, str]) -> TlsConfig:
    return tls_config("INTERNAL", texts.get)


def test_one_pem_file_is_enough() -> None:
    config = build(PEM)
    assert (config.keystore_location, config.client_auth, config.enabled_protocols) == (
        "/etc/node.pem",
        "none",
        ("TLSv1.2", "TLSv1.3"),
    )
    assert config.check_peer_name


def test_a_listener_may_have_its_own() -> None:
    config = build(
        PEM
        | {
            "listener.name.internal.ssl.keystore.location": "/etc/internal.pem",
            "listener.name.other.ssl.client.auth": "required",
        }
    )
    assert (config.keystore_location, config.client_auth) == ("/etc/internal.pem", "none")


@pytest.mark.parametrize(
    ("texts", "why"),
    [
        ({}, "INTERNAL speaks SSL: give its key and certificate chain"),
        ({"ssl.keystore.key": "k"}, "give both"),
        (PEM | {"ssl.keystore.key": "k", "ssl.keystore.certificate.chain": "c"}, "either as one PEM file"),
        (PEM | {"ssl.client.auth": "required"}, "say which certificates are trusted"),
        (PEM | {"ssl.truststore.location": "/a.pem", "ssl.truststore.certificates": "c"}, "not both"),
        ({"ssl.keystore.location": "/etc/node.jks"}, "convert with 'keytool -importkeystore"),
        (PEM | {"ssl.truststore.location": "/etc/trust.p12"}, "ssl.truststore.location=new.pem"),
    ],
)
def test_what_is_missing_is_said(texts: dict[str, str], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        build(texts)


def test_secrets_do_not_show() -> None:
    config = build(
        {"ssl.keystore.key": "PRIVATE", "ssl.keystore.certificate.chain": "CHAIN", "ssl.key.password": "hunter2"}
    )
    assert config.key_password == "hunter2"
    assert not {"PRIVATE", "hunter2"} & set(repr(config).split("'"))
    assert "hunter2" not in repr(config)
