"""Whether a cluster is whole: one controller, the same metadata everywhere, every replica in sync and caught up.

Always true: asking changes nothing; after all faults are undone, each of these comes true within a bounded virtual time.
"""

from __future__ import annotations

from collections.abc import Callable

from strandline.histories.batches import all_batches, walk
from strandline.histories.cluster import SimulatedCluster
from strandline.histories.compaction.cleaned_batches import records
from strandline.histories.compaction.plan import COMPACTED
from strandline.histories.replica_observation import Key, ReplicaObservation
from strandline.histories.transactions.plan import COPIES, LEDGER
from strandline.ids import TopicPartition
from strandline.metadata.image import PartitionImage
from strandline.node.coordinator.offsets_topic import CONSUMER_OFFSETS
from strandline.node.coordinator.transaction_topic import TRANSACTION_STATE
from strandline.node.observation.logs import ObservedLog

ALSO = (CONSUMER_OFFSETS, COMPACTED, TRANSACTION_STATE, LEDGER, COPIES)
"""Topics that are looked at if they are there."""


class Convergence:
    def __init__(
        self,
        cluster: SimulatedCluster,
        replicas: ReplicaObservation,
        keys: list[TopicPartition],
        missed_deletion: Callable[[int, bytes], bool],
    ) -> None:
        """`missed_deletion`: whether a replica of the compacted topic came too late for the tombstone of a key."""
        self._cluster = cluster
        self._replicas = replicas
        self.names = keys
        self._missed_deletion = missed_deletion

    # The partitions of the load

    def is_known(self) -> bool:
        return all(topic in self._replicas.image.topics for topic, _ in self.names)

    def key(self, number: int) -> Key:
        topic, partition = self.names[number]
        return self._replicas.image.topics[topic].topic_id, partition

    def state(self, number: int) -> PartitionImage:
        topic, partition = self.names[number]
        return self._replicas.image.topics[topic].partitions[partition]

    @property
    def _all(self) -> list[tuple[Key, PartitionImage]]:
        """Those of the load, and those of the offsets topic once there is one."""
        topics = self._replicas.image.topics
        names = [*dict.fromkeys(topic for topic, _ in self.names), *ALSO]
        found = [topics[name] for name in names if name in topics]
        return [((topic.topic_id, index), state) for topic in found for index, state in enumerate(topic.partitions)]

    # Whole, caught up, agreed

    def is_started(self) -> bool:
        return all(member.is_started for member in self._cluster.members.values())

    def is_in_sync(self) -> bool:
        """As the controller has it, which must know every broker as it is now: one that restarted may have lost
        records."""
        if not all(self._replicas.is_current(broker_id) for broker_id in self._cluster.shape.brokers):
            return False
        return all(
            s.has_leader and set(s.isr) == set(s.replicas) and not s.elr and not s.adding_replicas for _, s in self._all
        )

    def is_whole(self) -> bool:
        """Faults may begin again."""
        return self.is_started() and self._cluster.leader() is not None and self.is_in_sync()

    def is_caught_up(self) -> bool:
        """Every replica has everything, and knows that it is committed."""
        for key, state in self._all:
            replicas = [self._replicas.replicas.get((i, key)) for i in state.replicas]
            ends = {None if r is None else (r.log_end_offset, r.high_watermark) for r in replicas}
            if len(ends) != 1 or None in ends or len(set(next(iter(ends)) or ())) != 1:
                return False
        return self.is_in_sync()

    def is_agreed(self) -> bool:
        """Every node follows the same controller, and has applied all that is in its log."""
        cluster = self._cluster
        leader = cluster.leader()
        looks = {node_id: cluster.seen(node_id) for node_id in cluster.members}
        truth = None if leader is None else looks[leader]
        if truth is None or not self.is_started():
            return False
        return truth.log_end_offset == truth.high_watermark and all(
            seen is not None
            and (seen.epoch, seen.leader_id) == (truth.epoch, leader)
            and seen.image.end_offset == seen.high_watermark == truth.high_watermark
            for seen in looks.values()
        )

    def differing_replicas(self) -> list[str]:
        """Once it has converged: replicas that are not the same, byte by byte, as far as all their logs go back."""
        found = []
        for key, state in self._all:
            logs = {i: self._replicas.log(i, key) for i in state.replicas}
            if self._replicas.is_compacted(key):
                found += self._differing_values(key, {i: log for i, log in logs.items() if log is not None})
                continue
            start = max((log.log_start_offset for log in logs.values() if log is not None), default=0)
            contents = {i: None if log is None else self._bytes(i, log, start) for i, log in logs.items()}
            if None in contents.values() or len(set(contents.values())) != 1:
                sizes = {i: None if content is None else len(content) for i, content in contents.items()}
                name = self._replicas.image.topics_by_id[key[0]].name
                found.append(f"the replicas of {name}-{key[1]} differ in their bytes from {start} on: {sizes}")
        return found

    def _differing_values(self, key: Key, logs: dict[int, ObservedLog]) -> list[str]:
        """Where cleaning has come further on one than on another, the newest value of each key is the same all the
        same."""
        name = f"{self._replicas.image.topics_by_id[key[0]].name}-{key[1]}"
        first: tuple[int, dict[bytes, tuple[int, bytes | None]]] | None = None
        for node_id, log in logs.items():
            newest = {r.key: (r.offset, r.value) for batch in all_batches(log) for r in records(batch)}
            values = {each: found for each, found in newest.items() if found[1] is not None}
            if first is None:
                first = node_id, values
            elif first[1] != values:
                differing = sorted(
                    k
                    for k in {*first[1], *values}
                    if first[1].get(k) != values.get(k)
                    and not any(self._missed_deletion(i, k) for i in (first[0], node_id))
                )
                if not differing:
                    continue
                return [f"the newest values of {name} differ between n{first[0]} and n{node_id}: {differing[:3]}"]
        return []

    def _bytes(self, node_id: int, log: ObservedLog, start: int) -> bytes:
        """Of the batches that begin there or later."""
        disk = self._cluster.members[node_id].machine.disk
        found = bytearray()
        for segment in log.segments:
            data = disk.peek(segment.file.path) or b""
            position = 0
            for batch, end in walk(data):
                if batch.base_offset >= start:
                    found += data[position:end]
                position = end
        return bytes(found)

    def describe(self) -> str:
        parts = []
        for key, state in self._all:
            topic, partition = self._replicas.image.topics_by_id[key[0]].name, key[1]
            ends = {
                i: (r.log_end_offset, r.high_watermark)
                for i in state.replicas
                if (r := self._replicas.replicas.get((i, key)))
            }
            parts.append(f"{topic}-{partition}: leader {state.leader}, ISR {state.isr}, ELR {state.elr}, {ends}")
        return "; ".join([*parts, self._cluster.describe()])
