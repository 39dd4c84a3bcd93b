"""The addresses that a node binds and the addresses that it advertises.

Always true: every listener has a security protocol and a name of its own; without `insecure`, a PLAINTEXT listener is bound to
loopback only, because any client that reaches it may read and write everything.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from strandline.config.errors import ConfigError
from strandline.config.tls import TlsConfig, tls_config

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
LOOPBACK = "127.0.0.1"

_ENDPOINT = (
    r"(?P<name>[A-Za-z0-9._-]+)://(?:\[(?P<v6>[0-9A-Fa-f:.%a-z]*)\]|(?P<host>[A-Za-z0-9._-]*)):(?P<port>[0-9]{1,5})"
)


class ListenerConfig(NamedTuple):
    """One address. An empty `host` binds every interface; port 0 lets the system choose, and is then advertised as chosen."""

    name: str
    protocol: str
    host: str
    port: int
    advertised_host: str
    advertised_port: int
    controller: bool
    tls: TlsConfig | None = None


class ListenerEndpoint(NamedTuple):
    name: str
    host: str
    port: int


def parse_endpoint(text: str) -> ListenerEndpoint:
    """NAME://host:port, with an IPv6 host in brackets."""
    match = re.fullmatch(_ENDPOINT, text)
    if match is None or int(match["port"]) > 65535:
        raise ConfigError(
            f"'{text}' is not a listener of listeners or advertised.listeners; write it as NAME://host:port"
        )
    return ListenerEndpoint(match["name"].upper(), match["v6"] or match["host"] or "", int(match["port"]))


def parse_protocol_map(text: str) -> dict[str, str]:
    """NAME:PROTOCOL,NAME:PROTOCOL as a mapping."""
    protocols: dict[str, str] = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        name, _, protocol = entry.rpartition(":")
        if not name or protocol.strip().upper() not in PROTOCOLS:
            raise ConfigError(
                f"listener.security.protocol.map: '{entry}' is not NAME:PROTOCOL with one of {', '.join(PROTOCOLS)}"
            )
        protocols[name.strip().upper()] = protocol.strip().upper()
    return protocols


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches that host. A name other than localhost counts as reachable by others."""
    import ipaddress  # once, at the start

    try:
        return host.lower() == "localhost" or ipaddress.ip_address(host.split("%")[0]).is_loopback
    except ValueError:
        return False


def build_listeners(
    bound: Sequence[str],
    advertised: Sequence[str] | None,
    protocol_map: Mapping[str, str],
    controller_names: Sequence[str],
    text_of: Callable[[str], str | None],
    hostname: str,
    *,
    insecure: bool,
) -> tuple[list[ListenerConfig], list[str]]:
    """The listeners, in the order given, and warnings about those that are kept to loopback."""
    endpoints = [parse_endpoint(text) for text in bound]
    _check_distinct(endpoints)
    published = {endpoint.name: endpoint for endpoint in map(parse_endpoint, advertised or ())}
    if stray := sorted(published.keys() - {endpoint.name for endpoint in endpoints}):
        raise ConfigError(f"advertised.listeners names {', '.join(stray)}, which listeners does not have")
    listeners: list[ListenerConfig] = []
    warnings: list[str] = []
    for endpoint in endpoints:
        protocol = protocol_map.get(endpoint.name)
        if protocol is None:
            raise ConfigError(
                f"listeners: {endpoint.name} has no security protocol; add it to listener.security.protocol.map"
            )
        if protocol.startswith("SASL"):
            raise ConfigError(
                f"listeners: {endpoint.name} speaks {protocol}, and SASL is not served yet; use SSL with ssl.client.auth=required"
            )
        host, public = endpoint.host, published.get(endpoint.name)
        if protocol == "PLAINTEXT" and not insecure:
            host, warning = _keep_to_loopback(endpoint, public)
            warnings += warning
        public_host = public.host if public else host or hostname
        if public_host in ("", "0.0.0.0", "::"):
            raise ConfigError(
                f"listeners: {endpoint.name} would tell clients to connect to '{public_host}'; "
                f"give advertised.listeners={endpoint.name}://<a host they can reach>:{endpoint.port}"
            )
        listeners.append(
            ListenerConfig(
                name=endpoint.name,
                protocol=protocol,
                host=host,
                port=endpoint.port,
                advertised_host=public_host,
                advertised_port=public.port if public else endpoint.port,
                controller=endpoint.name in controller_names,
                tls=tls_config(endpoint.name, text_of) if protocol == "SSL" else None,
            )
        )
    return listeners, warnings


def brokers_among_clients(listeners: Sequence[ListenerConfig], inter_broker: str, previous: str | None) -> list[str]:
    """Warnings about listeners on which any client may act as a broker (SEC-T7)."""
    if sum(not listener.controller for listener in listeners) == 1:
        return [
            f"listeners: {inter_broker} serves clients and brokers alike, so that any client can act as a broker and have records "
            "acknowledged that no other broker has; give brokers a listener of their own (inter.broker.listener.name)"
        ]
    if previous is not None:
        return [
            f"previous.inter.broker.listener.name: any client can act as a broker on {previous}; remove it once every broker was "
            f"restarted with inter.broker.listener.name={inter_broker}"
        ]
    return []


def _keep_to_loopback(endpoint: ListenerEndpoint, public: ListenerEndpoint | None) -> tuple[str, list[str]]:
    """The host to bind for a PLAINTEXT listener: loopback for one without a host, unless another host is advertised."""
    if is_loopback(endpoint.host):
        return endpoint.host, []
    if not endpoint.host and (public is None or is_loopback(public.host)):
        return LOOPBACK, [
            f"listeners: {endpoint.name}://:{endpoint.port} is PLAINTEXT and names no host; bound to {LOOPBACK} only. "
            "Give --insecure to bind every interface."
        ]
    where = f"host {endpoint.host}" if endpoint.host else "every interface"
    raise ConfigError(
        f"listeners: {endpoint.name} would be PLAINTEXT on {where}, open to anyone who can reach it: "
        "use SSL, bind 127.0.0.1, or give --insecure"
    )


def _check_distinct(endpoints: Sequence[ListenerEndpoint]) -> None:
    names, ports = [endpoint.name for endpoint in endpoints], [endpoint.port for endpoint in endpoints if endpoint.port]
    if len(set(names)) != len(names):
        raise ConfigError("listeners: each listener must have a different name")
    addresses = {(endpoint.host, endpoint.port) for endpoint in endpoints if endpoint.port}
    if len(addresses) != len(ports):
        raise ConfigError("listeners: each listener must have a different port")
