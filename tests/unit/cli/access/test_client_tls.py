# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

import ssl

import pytest
import trustme

from strandline.cli.access.client_tls import client_context
from strandline.config.errors import ConfigError


@pytest.fixture(scope="module")
def authority():
    return trustme.CA()


def shake_hands(client: ssl.SSLContext, server: ssl.SSLContext, name: str = "localhost") -> ssl.SSLObject:
    """A handshake in memory; the server's end of it."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        client.wrap_bio(to_client, to_server, server_hostname=name),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    waiting = list(ends)
    for _ in range(10):
        for end in list(waiting):
            try:
                end.do_handshake()
                waiting.remove(end)
            except ssl.SSLWantReadError:
                pass
    assert not waiting
    return ends[1]


def server_context(authority: trustme.CA, *, asks: bool = False) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    if asks:
        authority.configure_trust(context)
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def test_a_broker_is_checked_against_the_trust_store(authority, tmp_path):
    trusted = authority.cert_pem.bytes().decode()
    path = tmp_path / "ca.pem"
    path.write_text(trusted)
    for texts in (
        {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(path)},
        {"ssl.truststore.certificates": trusted},
    ):
        shake_hands(client_context(texts), server_context(authority))
        with pytest.raises(ssl.SSLCertVerificationError):
            shake_hands(client_context(texts), server_context(trustme.CA()))
    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(client_context({}), server_context(authority))


def test_the_name_is_checked_unless_it_is_asked_not_to_be(authority):
    texts = {"ssl.truststore.certificates": authority.cert_pem.bytes().decode()}
    with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
        shake_hands(client_context(texts), server_context(authority), "elsewhere")
    free = client_context({**texts, "ssl.endpoint.identification.algorithm": ""})
    shake_hands(free, server_context(authority), "elsewhere")
    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(free, server_context(trustme.CA()), "elsewhere")


def test_a_client_shows_its_certificate(authority, tmp_path):
    issued = authority.issue_cert("me")
    chain = "".join(each.bytes().decode() for each in issued.cert_chain_pems)
    path = tmp_path / "me.pem"
    path.write_bytes(issued.private_key_and_cert_chain_pem.bytes())
    trusted = {
        "ssl.truststore.certificates": authority.cert_pem.bytes().decode(),
        "ssl.enabled.protocols": "TLSv1.2",
    }
    for own in (
        {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(path)},
        {"ssl.keystore.key": issued.private_key_pem.bytes().decode(), "ssl.keystore.certificate.chain": chain},
    ):
        end = shake_hands(client_context({**trusted, **own}), server_context(authority, asks=True))
        assert ("DNS", "me") in (end.getpeercert() or {})["subjectAltName"]
        assert end.version() == "TLSv1.2"
    with pytest.raises(ssl.SSLError, match="PEER_DID_NOT_RETURN_A_CERTIFICATE"):
        shake_hands(client_context(trusted), server_context(authority, asks=True))


@pytest.mark.parametrize(
    ("texts", "reason"),
    [
        ({"ssl.truststore.type": "JKS"}, "ssl.truststore.type"),
        ({"ssl.truststore.location": "trust.jks"}, "ssl.truststore.type"),
        ({"ssl.keystore.location": "own.p12"}, "ssl.keystore.type"),
        ({"ssl.truststore.certificates": "no pem"}, "ssl.truststore.certificates holds no certificates"),
        ({"ssl.truststore.location": "/nowhere.pem"}, "/nowhere.pem holds no certificates that can be read"),
        ({"ssl.truststore.location": "a", "ssl.truststore.certificates": "b"}, "not both"),
        ({"ssl.keystore.key": "k"}, "or neither"),
        ({"ssl.keystore.location": "/nowhere.pem"}, "/nowhere.pem holds no key"),
        ({"ssl.keystore.key": "hush", "ssl.keystore.certificate.chain": "c"}, "ssl.keystore.key holds no key"),
        ({"ssl.endpoint.identification.algorithm": "ldaps"}, "ssl.endpoint.identification.algorithm"),
        ({"ssl.enabled.protocols": "TLSv1"}, "ssl.enabled.protocols"),
    ],
)
def test_what_cannot_be_used_is_named(texts, reason):
    with pytest.raises(ConfigError, match=reason) as caught:
        client_context(texts)
    assert "hush" not in str(caught.value)


def test_an_encrypted_key_needs_its_password(authority, tmp_path):
    from cryptography.hazmat.primitives import serialization

    issued = authority.issue_cert("me")
    key = serialization.load_pem_private_key(issued.private_key_pem.bytes(), None)
    sealed = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.BestAvailableEncryption(b"open")
    )
    path = tmp_path / "me.pem"
    path.write_bytes(sealed + b"".join(each.bytes() for each in issued.cert_chain_pems))
    client_context({"ssl.keystore.location": str(path), "ssl.key.password": "open"})
    for texts in ({}, {"ssl.key.password": "shut"}):
        with pytest.raises(ConfigError, match=r"ssl\.key\.password does not open it"):
            client_context({"ssl.keystore.location": str(path), **texts})
