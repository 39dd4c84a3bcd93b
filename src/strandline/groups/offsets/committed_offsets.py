"""The offsets that the groups of a shard have committed, and those that transactions have yet to decide about.

Always true: of two commits for a partition the one that is later in the log counts, whenever its transaction ended
(TXN-T44); a group or topic without an offset is in no table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import count
from typing import NamedTuple

from strandline.groups.records import OffsetCommitKey, OffsetCommitValue
from strandline.ids import TopicPartition

NO_PRODUCER_ID = -1
_NOTHING: Mapping[str, Mapping[int, OffsetCommitValue]] = {}


class Pending(NamedTuple):
    """A commit inside of a transaction."""

    order: int
    value: OffsetCommitValue


class CommittedOffsets:
    def __init__(self) -> None:
        self.count = 0
        self._committed: dict[str, dict[str, dict[int, OffsetCommitValue]]] = {}
        self._pending: dict[int, dict[OffsetCommitKey, Pending]] = {}
        self._open: dict[str, dict[TopicPartition, set[int]]] = {}
        """The producers whose transactions have committed offsets for a partition."""
        self._decided: dict[OffsetCommitKey, int] = {}
        """The order of what was last committed, of partitions in open transactions."""
        self._order = count()

    # What there is

    def get(self, group_id: str, topic: str, partition: int) -> OffsetCommitValue | None:
        return self._committed.get(group_id, _NOTHING).get(topic, {}).get(partition)

    def of_group(self, group_id: str) -> Mapping[str, Mapping[int, OffsetCommitValue]]:
        """By topic and partition."""
        return self._committed.get(group_id, _NOTHING)

    def groups(self) -> Iterator[str]:
        """Those that have an offset, or may have one once a transaction ends."""
        yield from self._committed
        yield from (group_id for group_id in self._open if group_id not in self._committed)

    def has(self, group_id: str) -> bool:
        """It is one of those groups."""
        return group_id in self._committed or group_id in self._open

    def is_open(self, group_id: str, topic: str, partition: int) -> bool:
        """A transaction may yet change the offset."""
        return (topic, partition) in self._open.get(group_id, ())

    def has_open(self, group_id: str) -> bool:
        return group_id in self._open

    def items(self, group_id: str) -> Iterator[tuple[OffsetCommitKey, OffsetCommitValue]]:
        """What is committed, and what transactions would commit: so a partition may come up more than once."""
        for topic, partitions in self.of_group(group_id).items():
            for partition, value in partitions.items():
                yield OffsetCommitKey(group=group_id, topic=topic, partition=partition), value
        for (topic, partition), producers in self._open.get(group_id, {}).items():
            key = OffsetCommitKey(group=group_id, topic=topic, partition=partition)
            yield from ((key, self._pending[producer_id][key].value) for producer_id in sorted(producers))

    def keys(self, group_id: str) -> Iterable[OffsetCommitKey]:
        """What tombstones are needed for, so that nothing of the group remains; each once."""
        return {key: None for key, _ in self.items(group_id)}

    # What changes it

    def replay(self, key: OffsetCommitKey, value: OffsetCommitValue | None, producer_id: int = NO_PRODUCER_ID) -> None:
        if value is None:
            self._remove(key)
        elif producer_id == NO_PRODUCER_ID:
            self._commit(key, value, next(self._order))
        else:
            self._pending.setdefault(producer_id, {})[key] = Pending(next(self._order), value)
            self._open.setdefault(key.group, {}).setdefault((key.topic, key.partition), set()).add(producer_id)

    def end_transaction(self, producer_id: int, *, commit: bool) -> None:
        for key, (order, value) in self._pending.pop(producer_id, {}).items():
            if commit and order > self._decided.get(key, -1):
                self._commit(key, value, order)
            self._close(key, producer_id)

    def _commit(self, key: OffsetCommitKey, value: OffsetCommitValue, order: int) -> None:
        partitions = self._committed.setdefault(key.group, {}).setdefault(key.topic, {})
        self.count += key.partition not in partitions
        partitions[key.partition] = value
        if key.group in self._open and self.is_open(key.group, key.topic, key.partition):
            self._decided[key] = order

    def _remove(self, key: OffsetCommitKey) -> None:
        topics = self._committed.get(key.group, {})
        partitions = topics.get(key.topic, {})
        if partitions.pop(key.partition, None) is not None:
            self.count -= 1
            if not partitions:
                del topics[key.topic]
            if not topics:
                del self._committed[key.group]
        for producer_id in tuple(self._open.get(key.group, {}).get((key.topic, key.partition), ())):
            pending = self._pending[producer_id]
            del pending[key]
            if not pending:
                del self._pending[producer_id]
            self._close(key, producer_id)

    def _close(self, key: OffsetCommitKey, producer_id: int) -> None:
        by_partition = self._open[key.group]
        producers = by_partition[key.topic, key.partition]
        producers.remove(producer_id)
        if not producers:
            del by_partition[key.topic, key.partition]
            self._decided.pop(key, None)
        if not by_partition:
            del self._open[key.group]

    # Invariants

    def check_invariants(self) -> None:
        """What must hold between two turns of the event loop."""
        tables = [partitions for topics in self._committed.values() for partitions in topics.values()]
        assert all(self._committed.values()), f"a group without offsets among {list(self._committed)}"
        assert all(tables), "a topic without offsets"
        count = sum(map(len, tables))
        assert self.count == count, f"{count} offsets are committed, not {self.count}"
        assert all(self._pending.values()), f"a transaction without offsets among {list(self._pending)}"
        pending = {(key, producer_id) for producer_id, keys in self._pending.items() for key in keys}
        is_open = {
            (OffsetCommitKey(group=group_id, topic=topic, partition=partition), producer_id)
            for group_id, by_partition in self._open.items()
            for (topic, partition), producers in by_partition.items()
            for producer_id in producers
        }
        assert is_open == pending, f"open are {is_open}, pending {pending}"
        assert all(self._open.values()), f"a group without open offsets among {list(self._open)}"
        closed = self._decided.keys() - {key for key, _ in pending}
        assert not closed, f"no transaction is open for {closed}"
