"""Bootstrap addresses: `host:port,host:port`, IPv6 in brackets.

Always true: an address that is accepted has a host and a port of 1-65535.
"""

from __future__ import annotations

from collections.abc import Sequence

Address = tuple[str, int]


def parse_addresses(text: str | Sequence[str]) -> list[Address]:
    """Each address once, in the order given; ValueError names the one that is none."""
    parts = text.split(",") if isinstance(text, str) else list(text)
    addresses = list(dict.fromkeys(parse_address(part.strip()) for part in parts if part.strip()))
    if not addresses:
        raise ValueError("bootstrap servers are empty; give at least one host:port")
    return addresses


def parse_address(text: str) -> Address:
    host, colon, port = text.rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    if not colon or not host or not port.isascii() or not port.isdigit() or (":" in host and not bracketed):
        raise ValueError(f"'{text}' is not host:port")
    if not 1 <= int(port) <= 65535:
        raise ValueError(f"'{text}' has no port of 1-65535")
    return host[1:-1] if bracketed else host, int(port)


def show(address: Address) -> str:
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
