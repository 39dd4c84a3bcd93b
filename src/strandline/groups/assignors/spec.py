"""The input of an assignor (a group, its members and topics) and its output (the target assignment).

Always true: a spec is plain values; an assignor neither keeps nor changes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from strandline.ids import Uuid

Assignment = dict[str, dict[Uuid, frozenset[int]]]
"""Member id -> topic id -> partitions; every member is there, without empty topics."""


@dataclass(frozen=True, slots=True)
class MemberSpec:
    """One member: what it wants, and what it was last given as its target."""

    instance_id: str | None = None
    rack_id: str | None = None
    subscribed_topic_ids: frozenset[Uuid] = frozenset()
    assigned: Mapping[Uuid, frozenset[int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TopicSpec:
    """One topic that exists."""

    name: str
    partitions: int
    racks: tuple[frozenset[str], ...] = ()
    """Of each partition's replicas; empty if no broker has a rack."""


@dataclass(frozen=True, slots=True)
class GroupSpec:
    members: Mapping[str, MemberSpec]
    topics: Mapping[Uuid, TopicSpec]


class Assignor(Protocol):
    @property
    def name(self) -> str:
        """As clients and the configuration call it."""

    def assign(self, spec: GroupSpec) -> Assignment:
        """The target assignment of every member."""
