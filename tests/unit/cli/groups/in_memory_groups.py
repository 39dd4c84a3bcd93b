"""An admin client without a cluster: topics with log ends, groups with members and offsets, in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from strandline.client.core.cluster_metadata import BrokerMetadata
from strandline.client.flow.descriptions import PartitionDescription, TopicDescription
from strandline.client.flow.group_descriptions import (
    CLASSIC,
    GroupDescription,
    GroupListing,
    MemberDescription,
    OffsetAndMetadata,
)
from strandline.client.flow.offsets import OffsetAndTimestamp
from strandline.errors import ErrorCode, KafkaError
from strandline.ids import ZERO_UUID

Key = tuple[str, int]
COORDINATOR = BrokerMetadata(1, "127.0.0.1", 9092, None)


def member(name: str, *partitions: Key, client: str = "c", host: str = "/127.0.0.1") -> MemberDescription:
    return MemberDescription(name, None, client, host, partitions)


class InMemoryGroups:
    """Answers as Admin does. Logs begin at 0; what was written has no time, so that no time finds a record."""

    def __init__(self, ends: Mapping[Key, int]) -> None:
        self.ends = dict(ends)
        self.stable: dict[Key, int] = {}
        """Last stable offsets, where a transaction is open."""
        self.groups: dict[str, GroupDescription] = {}
        self.offsets: dict[str, dict[Key, int]] = {}

    def add(self, name: str, offsets: Mapping[Key, int], *members: MemberDescription, state: str = "") -> None:
        state = state or ("Stable" if members else "Empty")
        self.groups[name] = GroupDescription(name, CLASSIC, state, "consumer", "range", COORDINATOR, members)
        self.offsets[name] = dict(offsets)

    @contextmanager
    def connect(self, access: object) -> Iterator[InMemoryGroups]:
        yield self

    def _each(self, names: Iterable[str], what: Callable[[str], Any]) -> dict[str, Any]:
        missing = ErrorCode.GROUP_ID_NOT_FOUND
        return {name: what(name) if name in self.groups else KafkaError(missing, "Not found.") for name in names}

    def list_groups(self, states: Iterable[str] = (), types: Iterable[str] = ()) -> list[GroupListing]:
        listings = [GroupListing(g.group_id, g.protocol_type, g.state, g.type) for g in self.groups.values()]
        return [g for g in listings if g.state in (list(states) or [g.state]) and g.type in (list(types) or [g.type])]

    def describe_groups(self, names: Iterable[str]) -> dict[str, Any]:
        return self._each(names, lambda name: self.groups[name])

    def list_group_offsets(self, groups: Mapping[str, None]) -> dict[str, Any]:
        return {
            name: {key: OffsetAndMetadata(offset) for key, offset in self.offsets.get(name, {}).items()}
            for name in groups
        }

    def describe_topics(self, names: Iterable[str]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name in names:
            partitions = tuple(
                PartitionDescription(index, 1, 0, (1,), (1,), (), (), ())
                for topic, index in sorted(self.ends)
                if topic == name
            )
            unknown = KafkaError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition."
            )
            found[name] = TopicDescription(name, ZERO_UUID, False, partitions) if partitions else unknown
        return found

    def list_offsets(self, asked: Mapping[Key, int], *, read_committed: bool = False) -> dict[Key, Any]:
        ends = self.ends | self.stable if read_committed else self.ends

        def at(key: Key, time: int) -> int:
            return ends[key] if time == -1 else 0 if time == -2 else -1

        return {key: OffsetAndTimestamp(at(key, time), -1, -1) for key, time in asked.items()}

    def alter_group_offsets(self, name: str, offsets: Mapping[Key, OffsetAndMetadata]) -> dict[Key, Any]:
        if name not in self.groups:
            self.add(name, {})
        self.offsets[name] |= {key: at.offset for key, at in offsets.items()}
        return dict.fromkeys(offsets)

    def delete_groups(self, names: Iterable[str]) -> dict[str, Any]:
        def delete(name: str) -> KafkaError | None:
            if self.groups[name].members:
                return KafkaError(ErrorCode.NON_EMPTY_GROUP, f"group '{name}' has members")
            del self.groups[name]
            return None

        return self._each(names, delete)

    def delete_group_offsets(self, name: str, partitions: Iterable[Key]) -> dict[Key, Any]:
        read = {topic for m in self.groups[name].members for topic, _ in m.assignment}
        refused = KafkaError(ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, f"group '{name}' reads this topic")
        return {key: refused if key[0] in read else None for key in partitions}
