"""Rows about a group for tables and JSON: partitions with offset and lag, members, and the state of the group.

Always true: an assigned partition has a row even if nothing is committed for it, and a committed one even if it is not assigned
to a member.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from strandline.client.flow.group_descriptions import CONSUMER, GroupDescription, MemberDescription, OffsetAndMetadata
from strandline.ids import TopicPartition


class OffsetRow(NamedTuple):
    group: str
    topic: str
    partition: int
    offset: int | None
    leader_epoch: int | None
    log_end_offset: int | None
    consumer_id: str | None
    host: str | None
    client_id: str | None

    @property
    def lag(self) -> int | None:
        if self.offset is None or self.log_end_offset is None:
            return None
        return self.log_end_offset - self.offset


class MemberRow(NamedTuple):
    group: str
    consumer_id: str
    instance_id: str | None
    host: str
    client_id: str
    assigned: tuple[TopicPartition, ...]
    target: tuple[TopicPartition, ...]
    epoch: int | None
    target_epoch: int | None
    upgraded: bool | None


class StateRow(NamedTuple):
    group: str
    coordinator_host: str
    coordinator_port: int
    coordinator_id: int
    strategy: str
    state: str
    epoch: int | None
    target_epoch: int | None
    members: int


def offset_rows(
    group: GroupDescription, committed: Mapping[TopicPartition, OffsetAndMetadata], ends: Mapping[TopicPartition, int]
) -> list[OffsetRow]:
    """Assigned partitions, those of the member with the most first; then those that are only committed."""
    assigned_members = sorted((m for m in group.members if m.assignment), key=lambda member: -len(member.assignment))
    assigned = {key for member in assigned_members for key in member.assignment}
    owned: list[tuple[MemberDescription | None, list[TopicPartition]]] = [
        (m, sorted(m.assignment)) for m in assigned_members
    ]
    owned.append((None, sorted(key for key in committed if key not in assigned)))
    return [
        OffsetRow(
            group.group_id,
            *key,
            committed[key].offset if key in committed else None,
            _known(committed[key].leader_epoch) if key in committed else None,
            ends.get(key),
            None if member is None else member.member_id,
            None if member is None else member.host,
            None if member is None else member.client_id,
        )
        for member, keys in owned
        for key in keys
    ]


def _known(leader_epoch: int) -> int | None:
    return None if leader_epoch < 0 else leader_epoch


def partitions_of(
    group: GroupDescription, committed: Mapping[TopicPartition, OffsetAndMetadata]
) -> list[TopicPartition]:
    return sorted({key for member in group.members for key in member.assignment} | committed.keys())


def member_rows(group: GroupDescription) -> list[MemberRow]:
    return [
        MemberRow(
            group.group_id,
            member.member_id,
            member.group_instance_id,
            member.host,
            member.client_id,
            member.assignment,
            member.target_assignment or (),
            member.member_epoch,
            group.assignment_epoch,
            None if member.is_classic is None or group.type != CONSUMER else not member.is_classic,
        )
        for member in group.members
    ]


def state_row(group: GroupDescription) -> StateRow:
    return StateRow(
        group.group_id,
        group.coordinator.host,
        group.coordinator.port,
        group.coordinator.node_id,
        group.assignor,
        group.state,
        group.group_epoch,
        group.assignment_epoch,
        len(group.members),
    )
