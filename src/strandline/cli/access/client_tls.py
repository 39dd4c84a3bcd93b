"""Kafka's `ssl.*` client properties as a TLS context.

Always true: certificates are PEM; the broker's is checked against the trust store, or against this machine's if none is named;
`ssl.endpoint.identification.algorithm` says whether its name must match the host name. No error message shows a secret.
"""

from __future__ import annotations

import ssl
import tempfile
from collections.abc import Callable, Mapping

from strandline.config.errors import ConfigError

KEYS = (
    "ssl.truststore.type",
    "ssl.truststore.location",
    "ssl.truststore.certificates",
    "ssl.keystore.type",
    "ssl.keystore.location",
    "ssl.keystore.certificate.chain",
    "ssl.keystore.key",
    "ssl.key.password",
    "ssl.enabled.protocols",
    "ssl.endpoint.identification.algorithm",
)


def client_context(texts: Mapping[str, str]) -> ssl.SSLContext:
    """The context for these properties; ConfigError names the one that cannot be used."""
    from strandline.config.broker import BROKER  # slow to import, and the names above are needed without it
    from strandline.config.tls import JAVA_STORES

    values = {name: BROKER[name].parse(texts[name]) if name in texts else BROKER[name].default_value for name in KEYS}

    def text(name: str) -> str | None:
        found = values[name]
        assert found is None or isinstance(found, str)
        return found or None

    for store in ("ssl.keystore", "ssl.truststore"):
        if (text(f"{store}.location") or "").lower().endswith(JAVA_STORES):
            BROKER[f"{store}.type"].parse("JKS")  # raises the sentence on how to convert a Java store
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    protocols = values["ssl.enabled.protocols"]
    assert isinstance(protocols, tuple)
    context.minimum_version = ssl.TLSVersion.TLSv1_2 if "TLSv1.2" in protocols else ssl.TLSVersion.TLSv1_3
    if "TLSv1.3" not in protocols:
        context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = text("ssl.endpoint.identification.algorithm") is not None
    _trust(context, text)
    _identify(context, text)
    return context


def _trust(context: ssl.SSLContext, text: Callable[[str], str | None]) -> None:
    location, certificates = text("ssl.truststore.location"), text("ssl.truststore.certificates")
    if location and certificates:
        raise ConfigError("give ssl.truststore.location or ssl.truststore.certificates, not both")
    if not location and not certificates:
        context.load_default_certs()
        return
    try:
        context.load_verify_locations(cafile=location, cadata=certificates)
    except OSError as error:
        what = f"ssl.truststore.location {location}" if location else "ssl.truststore.certificates"
        raise ConfigError(f"{what} holds no certificates that can be read ({_reason(error)})") from None


def _identify(context: ssl.SSLContext, text: Callable[[str], str | None]) -> None:
    """Load the client certificate, if one was given."""
    location, chain, key = (
        text("ssl.keystore.location"),
        text("ssl.keystore.certificate.chain"),
        text("ssl.keystore.key"),
    )
    if bool(chain) != bool(key):
        raise ConfigError("give both ssl.keystore.certificate.chain and ssl.keystore.key, or neither")
    if location and chain:
        raise ConfigError("give ssl.keystore.location or ssl.keystore.key and its chain, not both")
    # An encrypted key without a password would make OpenSSL ask for one on the terminal.
    password = text("ssl.key.password") or ""
    try:
        if location:
            context.load_cert_chain(location, password=password)
        elif chain:
            # Python reads a key only from a file: a temporary one that only its owner can read.
            with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:
                file.write(f"{key}\n{chain}\n")
                file.flush()
                context.load_cert_chain(file.name, password=password)
    except (OSError, ValueError) as error:
        what = f"ssl.keystore.location {location}" if location else "ssl.keystore.key"
        raise ConfigError(
            f"{what} holds no key and certificate chain that can be read, or ssl.key.password does not open it "
            f"({_reason(error)})"
        ) from None


def _reason(error: Exception) -> str:
    if isinstance(error, ssl.SSLError):
        return (error.reason or "not PEM").replace("_", " ").lower()
    return getattr(error, "strerror", None) or str(error)
