"""An address that a node listens on for people and tools, as one text: `host:port`.

Always true: no host stands for loopback, so that nothing is open to other hosts unless the configuration names one.
"""

from __future__ import annotations

import re

from strandline.config.types import Value, invalid

LOOPBACK = "127.0.0.1"
_ADDRESS = r"(?:\[(?P<v6>[0-9A-Fa-f:.%a-z]+)\]|(?P<host>[A-Za-z0-9._-]*)):(?P<port>[0-9]{1,5})"


def parse_address(text: str) -> tuple[str, int] | None:
    """Host and port, an IPv6 host without its brackets; None if the text is not that."""
    match = re.fullmatch(_ADDRESS, text)
    if match is None or int(match["port"]) > 65535:
        return None
    return match["v6"] or match["host"] or LOOPBACK, int(match["port"])


class AddressOrNothing:
    def check(self, name: str, value: Value) -> None:
        if value and parse_address(str(value)) is None:
            raise invalid(name, value, "Write it as host:port, an IPv6 host in brackets; empty turns it off.")

    def __str__(self) -> str:
        return "host:port, :port or empty"
