"""Where the controllers are: a fixed set of voters, or a few addresses to ask.

Always true: at least one of the two is known; a controller is among its own voters and a mere broker is not.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from strandline.config.errors import ConfigError

_ADDRESS = r"(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9._-]+)):([0-9]{1,5})"


class BootstrapServer(NamedTuple):
    host: str
    port: int


class Voter(NamedTuple):
    id: int
    host: str
    port: int


def parse_address(text: str, key: str) -> BootstrapServer:
    """host:port, with an IPv6 host in brackets."""
    match = re.fullmatch(_ADDRESS, text)
    if match is None or not 0 <= int(match[3]) <= 65535:
        raise ConfigError(f"{key}: '{text}' is not host:port")
    return BootstrapServer(match[1] or match[2], int(match[3]))


def parse_voters(texts: Sequence[str]) -> tuple[Voter, ...]:
    """id@host:port for each voter; no id twice."""
    voters = []
    for text in texts:
        number, at, address = text.partition("@")
        if not at or not number.isascii() or not number.isdigit() or int(number) >= 2**31:
            raise ConfigError(f"controller.quorum.voters: '{text}' is not id@host:port")
        found = parse_address(address, "controller.quorum.voters")
        voters.append(Voter(int(number), found.host, found.port))
    if len({voter.id for voter in voters}) != len(voters):
        raise ConfigError("controller.quorum.voters names an id twice")
    return tuple(voters)


def parse_bootstrap_servers(texts: Sequence[str]) -> tuple[BootstrapServer, ...]:
    return tuple(parse_address(text, "controller.quorum.bootstrap.servers") for text in texts)


def check_membership(
    node_id: int, controller: bool, voters: Sequence[Voter], servers: Sequence[BootstrapServer]
) -> None:
    """ConfigError unless this node can find its quorum."""
    if not voters and not servers:
        raise ConfigError(
            "controller.quorum.bootstrap.servers or controller.quorum.voters must say where the controllers are"
        )
    among = node_id in {voter.id for voter in voters}
    if voters and controller and not among:
        raise ConfigError(f"controller.quorum.voters must contain this controller, node.id {node_id}")
    if among and not controller:
        raise ConfigError(
            f"controller.quorum.voters contains node.id {node_id}, but process.roles does not say controller"
        )
