"""TLS from this node to another one: which listener is dialled decides whether there is any.

Always true: a node shows the certificate of its own listener of that name (or of `listener.name.<name>.ssl.*` where it
has no such listener, as a mere broker has none for controllers); the other's is checked against the trust store, or
against this machine's if none is named, and must bear the name that was dialled unless
`ssl.endpoint.identification.algorithm` is empty.
"""

from __future__ import annotations

import ssl
import tempfile

from strandline.config.errors import ConfigError
from strandline.config.node import NodeConfig
from strandline.config.tls import TlsConfig, tls_config


def context_to(config: NodeConfig, listener: str) -> ssl.SSLContext | None:
    """The client's side for peers that listen under this name; None if they speak PLAINTEXT. ConfigError if it can't
    be."""
    protocol = config.protocols[listener]
    if protocol == "PLAINTEXT":
        return None
    if protocol != "SSL":
        raise ConfigError(f"listener.security.protocol.map: {listener} speaks {protocol}, and SASL is not served yet")
    own = config.listener(listener)
    tls = own.tls if own is not None else None
    return client_context(tls or tls_config(listener, config.layers.given), listener)


def client_context(tls: TlsConfig, listener: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2 if "TLSv1.2" in tls.enabled_protocols else ssl.TLSVersion.TLSv1_3
    if "TLSv1.3" not in tls.enabled_protocols:
        context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = tls.check_peer_name
    try:
        _trust(context, tls)
        _identify(context, tls)
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"listener {listener}: its key, certificates or trusted certificates can't be read, or ssl.key.password does not "
            f"open the key ({error})"
        ) from None
    return context


def _trust(context: ssl.SSLContext, tls: TlsConfig) -> None:
    if tls.truststore_location is None and tls.truststore_certificates is None:
        context.load_default_certs()
    else:
        context.load_verify_locations(cafile=tls.truststore_location, cadata=tls.truststore_certificates)


def _identify(context: ssl.SSLContext, tls: TlsConfig) -> None:
    """The certificate that we show."""
    # An encrypted key without a password would make OpenSSL ask for one on the terminal.
    password = tls.key_password or ""
    if tls.keystore_location is not None:
        context.load_cert_chain(tls.keystore_location, password=password)
        return
    # Python reads a key only from a file: it gets one for a moment, readable by no other user.
    with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:
        file.write(f"{tls.key}\n{tls.certificate_chain}\n")
        file.flush()
        context.load_cert_chain(file.name, password=password)
