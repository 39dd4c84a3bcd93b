"""TLS settings in PEM."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest
import trustme
from cryptography.hazmat.primitives import serialization

from strandline.spark.errors import OptionError
from strandline.spark.options.kafka import kafka_settings
from strandline.spark.options.tls import TlsSettings


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


def tls(**given: str) -> TlsSettings:
    options = {"bootstrap.servers": "a:1", "security.protocol": "ssl"}
    found = kafka_settings(
        options | {f"ssl.{k.replace('_', '.')}": v for k, v in given.items()}, writing=False
    ).cluster.tls
    assert found is not None
    return found


def test_a_truststore_as_a_file_or_as_text(authority: trustme.CA, tmp_path: Path) -> None:
    text = authority.cert_pem.bytes().decode()
    path = tmp_path / "ca.pem"
    path.write_text(text)
    for settings in (tls(truststore_location=str(path), truststore_type="PEM"), tls(truststore_certificates=text)):
        context = settings.context()
        assert len(context.get_ca_certs()) == 1
        assert context.check_hostname
        assert context.verify_mode is ssl.CERT_REQUIRED


def test_the_host_name_is_not_checked_if_the_algorithm_is_empty() -> None:
    context = tls(endpoint_identification_algorithm="").context()
    assert not context.check_hostname
    assert context.verify_mode is ssl.CERT_REQUIRED


def test_a_key_of_ones_own_as_a_file_or_as_text(authority: trustme.CA, tmp_path: Path) -> None:
    issued = authority.issue_cert("client")
    path = tmp_path / "client.pem"
    issued.private_key_and_cert_chain_pem.write_to_path(str(path))
    tls(keystore_location=str(path)).context()
    chain = "".join(blob.bytes().decode() for blob in issued.cert_chain_pems)
    tls(keystore_key=issued.private_key_pem.bytes().decode(), keystore_certificate_chain=chain).context()


def test_secrets_do_not_show() -> None:
    settings = tls(keystore_key="SECRET", keystore_certificate_chain="CHAIN", key_password="SECRET")
    assert "SECRET" not in repr(settings)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"truststore_location": "/x/trust.JKS"}, "'kafka.ssl.truststore.location' is a PEM file"),
        ({"keystore_location": "/x/key.p12"}, "'kafka.ssl.keystore.location' is a PEM file"),
        ({"truststore_type": "JKS"}, "'kafka.ssl.truststore.type' is PEM, not 'JKS'"),
        ({"truststore_location": "a.pem", "truststore_certificates": "x"}, "contradict each other"),
        (
            {"keystore_location": "a.pem", "keystore_key": "x", "keystore_certificate_chain": "x"},
            "contradict each other",
        ),
        ({"keystore_key": "x"}, "give both options"),
        ({"endpoint_identification_algorithm": "ldap"}, "is https or empty, not 'ldap'"),
        ({"truststore_password": "x"}, "'kafka.ssl.truststore.password' is not supported: PEM truststores have no"),
    ],
)
def test_what_is_refused(given: dict[str, str], says: str) -> None:
    with pytest.raises(OptionError) as refused:
        tls(**given)
    assert says in str(refused.value)


@pytest.mark.parametrize("name", ["truststore", "keystore"])
def test_a_file_that_cannot_be_read_is_told_when_it_is_used(name: str, tmp_path: Path) -> None:
    broken = tmp_path / "broken.pem"
    broken.write_text("no PEM")
    for path in (broken, tmp_path / "missing.pem"):
        with pytest.raises(OptionError, match=f"option 'kafka.ssl.{name}.location' cannot be used on this machine"):
            tls(**{f"{name}_location": str(path)}).context()


def test_an_encrypted_key_needs_its_password(authority: trustme.CA) -> None:
    issued = authority.issue_cert("client")
    key = serialization.load_pem_private_key(issued.private_key_pem.bytes(), None)
    encrypted = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"opened"),
    ).decode()
    chain = issued.cert_chain_pems[0].bytes().decode()
    tls(keystore_key=encrypted, keystore_certificate_chain=chain, key_password="opened").context()
    with pytest.raises(OptionError, match=r"'kafka\.ssl\.key\.password' is not given"):
        tls(keystore_key=encrypted, keystore_certificate_chain=chain).context()
    with pytest.raises(OptionError, match=r"option 'kafka\.ssl\.keystore\.key' cannot be used"):
        tls(keystore_key=encrypted, keystore_certificate_chain=chain, key_password="wrong").context()
