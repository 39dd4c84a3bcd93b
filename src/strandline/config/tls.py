"""What one SSL listener needs to speak TLS.

Always true: the key and its chain come either from one PEM file or from the configuration itself, never half from each; secrets
do not show in a repr. The files are read and loaded by the code that opens the listener.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from strandline.config.broker import BROKER
from strandline.config.errors import ConfigError
from strandline.config.types import Value

JAVA_STORES = (".jks", ".p12", ".pfx", ".pkcs12", ".keystore", ".truststore")


class TlsConfig(NamedTuple):
    """Paths or PEM texts; `client_auth` is none, requested or required; the protocols are TLSv1.2 and TLSv1.3."""

    keystore_location: str | None
    certificate_chain: str | None
    key: str | None
    key_password: str | None
    truststore_location: str | None
    truststore_certificates: str | None
    client_auth: str
    enabled_protocols: tuple[str, ...]
    check_peer_name: bool

    def __repr__(self) -> str:
        return f"TlsConfig(client_auth={self.client_auth}, enabled_protocols={','.join(self.enabled_protocols)})"


def tls_config(listener: str, text_of: Callable[[str], str | None]) -> TlsConfig:
    """The settings of one listener: `listener.name.<listener>.ssl.*` where given, else `ssl.*`."""

    def value(name: str) -> Value:
        text = text_of(f"listener.name.{listener.lower()}.{name}")
        text = text_of(name) if text is None else text
        return BROKER[name].default_value if text is None else BROKER[name].parse(text)

    def text(name: str) -> str | None:
        found = value(name)
        assert found is None or isinstance(found, str)
        return found or None

    location, chain, key = (
        text("ssl.keystore.location"),
        text("ssl.keystore.certificate.chain"),
        text("ssl.keystore.key"),
    )
    trusted_location, trusted = text("ssl.truststore.location"), text("ssl.truststore.certificates")
    for name, path in (("ssl.keystore", location), ("ssl.truststore", trusted_location)):
        if path and path.lower().endswith(JAVA_STORES):
            BROKER[f"{name}.type"].parse("JKS")  # raises the sentence on how to convert a Java store
    if bool(chain) != bool(key):
        raise ConfigError(
            f"listener {listener}: give both ssl.keystore.certificate.chain and ssl.keystore.key, or neither"
        )
    if bool(location) == bool(chain):
        raise ConfigError(
            f"listener {listener} speaks SSL: give its key and certificate chain, either as one PEM file in "
            "ssl.keystore.location or in ssl.keystore.key and ssl.keystore.certificate.chain"
        )
    if trusted_location and trusted:
        raise ConfigError(f"listener {listener}: give ssl.truststore.location or ssl.truststore.certificates, not both")
    client_auth, protocols = value("ssl.client.auth"), value("ssl.enabled.protocols")
    assert isinstance(client_auth, str)
    assert isinstance(protocols, tuple)
    if client_auth != "none" and not (trusted_location or trusted):
        raise ConfigError(
            f"listener {listener} has ssl.client.auth={client_auth}: say which certificates are trusted, with "
            "ssl.truststore.location or ssl.truststore.certificates"
        )
    return TlsConfig(
        keystore_location=location,
        certificate_chain=chain,
        key=key,
        key_password=text("ssl.key.password"),
        truststore_location=trusted_location,
        truststore_certificates=trusted,
        client_auth=client_auth,
        enabled_protocols=protocols,
        check_peer_name=bool(text("ssl.endpoint.identification.algorithm")),
    )
