"""What `quorum` and `kafka-metadata-quorum` share: reading the quorum's state, and a controller's configuration.

Always true: lags are counted from the leader's log end, times from its clock.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from typing import NamedTuple

from strandline.cli.errors import CommandRefused
from strandline.client.flow.descriptions import QuorumInfo, QuorumReplicaState, RaftEndpoint
from strandline.ids import ZERO_UUID, Uuid

NOT_KNOWN = -1


class QuorumReplicaRow(NamedTuple):
    """A voter or observer, with its lag behind the leader, and its status in Kafka's words."""

    replica: QuorumReplicaState
    lag: int
    status: str


def rows(quorum: QuorumInfo) -> list[QuorumReplicaRow]:
    """The leader, then the other voters, then the observers."""
    leader = leader_of(quorum)
    followers = [voter for voter in quorum.voters if voter.replica_id != quorum.leader_id]
    groups = (("Leader", [leader]), ("Follower", followers), ("Observer", quorum.observers))
    return [
        QuorumReplicaRow(replica, leader.log_end_offset - replica.log_end_offset, status)
        for status, replicas in groups
        for replica in replicas
    ]


def leader_of(quorum: QuorumInfo) -> QuorumReplicaState:
    for voter in quorum.voters:
        if voter.replica_id == quorum.leader_id:
            return voter
    raise CommandRefused(f"the leader of the quorum, {quorum.leader_id}, is not one of its voters; try again")


def follower_lag(quorum: QuorumInfo) -> tuple[int, int]:
    """The lag of the slowest voter behind the leader: in records, and in milliseconds (-1: unknown)."""
    leader = leader_of(quorum)
    slowest = min(quorum.voters, key=lambda voter: voter.log_end_offset)
    lag = leader.log_end_offset - slowest.log_end_offset
    if slowest.replica_id == leader.replica_id:
        return lag, 0
    if NOT_KNOWN in (leader.last_caught_up_ms, slowest.last_caught_up_ms):
        return lag, NOT_KNOWN
    return lag, leader.last_caught_up_ms - slowest.last_caught_up_ms


def age(timestamp_ms: int, now_ms: int) -> str:
    """The age of a timestamp as text."""
    return str(NOT_KNOWN) if timestamp_ms == NOT_KNOWN else f"{max(0, now_ms - timestamp_ms)} ms ago"


def nodes_text(quorum: QuorumInfo, replicas: tuple[QuorumReplicaState, ...]) -> str:
    """The ids, directories and endpoints of these, in Kafka's notation."""
    return "[" + ", ".join(_node_text(quorum, replica) for replica in replicas) + "]"


def _node_text(quorum: QuorumInfo, replica: QuorumReplicaState) -> str:
    parts = [f'"id": {replica.replica_id}']
    if replica.directory_id != ZERO_UUID:
        parts.append(f'"directoryId": "{replica.directory_id}"')
    if endpoints := quorum.endpoints.get(replica.replica_id):
        parts.append('"endpoints": [' + ", ".join(f'"{endpoint}"' for endpoint in endpoints) + "]")
    return "{" + ", ".join(parts) + "}"


class JoiningController(NamedTuple):
    """A controller that is being added as a voter, as its configuration and log dir describe it."""

    controller_id: int
    directory_id: Uuid
    endpoints: tuple[RaftEndpoint, ...]

    def __str__(self) -> str:
        endpoints = ", ".join(map(str, self.endpoints))
        return f"controller {self.controller_id} with directory id {self.directory_id} and endpoints: {endpoints}"


def read_controller(path: str) -> JoiningController:
    from strandline.config.node import NodeConfig
    from strandline.config.properties import load

    config = NodeConfig.build(load(path), insecure=True, hostname=socket.gethostname())
    if not config.controller:
        raise CommandRefused(
            f"process.roles in {path} does not contain controller; name the properties file of a controller"
        )
    endpoints = tuple(
        RaftEndpoint(listener.name, listener.advertised_host or listener.host or "localhost", listener.advertised_port)
        for name in config.controller_listener_names
        for listener in config.listeners
        if listener.name == name
    )
    return JoiningController(config.node_id, _directory_id(config.metadata_log_dir), endpoints)


def _directory_id(directory: str) -> Uuid:
    path = os.path.join(directory, "meta.properties")
    try:
        with open(path, encoding="iso-8859-1") as file:
            properties = dict(_pairs(file))
        return Uuid.parse(properties["directory.id"])
    except FileNotFoundError:
        raise CommandRefused(f"there is no {path}; `strandline storage format` creates it") from None
    except (KeyError, ValueError):
        raise CommandRefused(
            f"{path} names no directory id; start the controller once, or format its directory"
        ) from None


def _pairs(lines: Iterator[str]) -> Iterator[tuple[str, str]]:
    for line in lines:
        key, equals, value = line.strip().partition("=")
        if equals and not key.startswith("#"):
            yield key, value


def parse_directory_id(text: str, flag: str) -> Uuid:
    import click

    try:
        return Uuid.parse(text)
    except ValueError as error:
        raise click.UsageError(f"{flag}: {error}") from None
