"""What can be seen of a node: its replicas, its part in the quorum, its group shards, its registration, its log dirs.

    observed = node.observe()                       once for each node; it stays true as the node changes
    observed.replica("orders", 0).high_watermark
    observed.quorum.role                            None until Raft has begun

Judges, stories, `/replicas` and the metrics see a node through this, and through nothing else: how a part keeps what is
shown is known here only.

Always true: looking changes nothing, draws no chance and waits for nothing; a view copies nothing that grows with what
the node holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from strandline.groups.shard import GroupShard
from strandline.ids import Uuid
from strandline.node.broker_server import BrokerServer
from strandline.node.broker_state import UNKNOWN_EPOCH
from strandline.node.coordinator.runner import ShardRunner
from strandline.node.observation.quorum import ObservedQuorum
from strandline.node.observation.replicas import ObservedReplica
from strandline.node.observation.shards import ObservedShard
from strandline.replica.partition import Partition

if TYPE_CHECKING:
    from strandline.node.assembly import NodeParts

FORGET_AT_MIN = 64


class ObservedLogDir(Protocol):
    @property
    def path(self) -> str: ...

    @property
    def directory_id(self) -> Uuid: ...

    @property
    def online(self) -> bool: ...


class NodeObservation:
    """All of a node. Of a node that is no broker there are no replicas, no shards and no registration."""

    def __init__(self, parts: Callable[[], NodeParts | None]) -> None:
        """`parts` are None until the log dirs of the node are open."""
        self._parts = parts
        self._quorum: ObservedQuorum | None = None
        self._replicas: dict[Partition, ObservedReplica] = {}
        self._forget_at = FORGET_AT_MIN
        """With so many replicas known, those that are gone are forgotten."""
        self._shards: dict[int, ObservedShard] = {}

    @property
    def quorum(self) -> ObservedQuorum | None:
        """None until Raft has begun."""
        if self._quorum is None:
            parts = self._parts()
            if parts is not None and parts.quorum.has_begun:
                self._quorum = ObservedQuorum(parts.quorum, parts.context.controller.liveness)
        return self._quorum

    def _broker_server(self) -> BrokerServer | None:
        parts = self._parts()
        return None if parts is None else parts.broker_server

    def _runners(self) -> Mapping[int, ShardRunner[GroupShard]]:
        parts = self._parts()
        return {} if parts is None else parts.groups.runners

    # Replicas

    @property
    def replicas(self) -> Iterable[ObservedReplica]:
        """In the order in which they were opened."""
        server = self._broker_server()
        return () if server is None else map(self._observed, server.replicas.partitions.values())

    def replica(self, topic: str, index: int) -> ObservedReplica | None:
        server = self._broker_server()
        partition = None if server is None else server.replicas.partitions.get((topic, index))
        return None if partition is None else self._observed(partition)

    def replica_by_id(self, topic_id: bytes, index: int) -> ObservedReplica | None:
        server = self._broker_server()
        partition = None if server is None else server.replicas.partitions_by_id.get((topic_id, index))
        return None if partition is None else self._observed(partition)

    def _observed(self, partition: Partition) -> ObservedReplica:
        known = self._replicas.get(partition)
        if known is None:
            if len(self._replicas) >= self._forget_at:
                self._replicas = {each: observed for each, observed in self._replicas.items() if not each.gone}
                self._forget_at = 2 * len(self._replicas) + FORGET_AT_MIN
            known = self._replicas[partition] = ObservedReplica(partition, self._fetched_from)
        return known

    def _fetched_from(self, partition: Partition) -> int | None:
        server = self._broker_server()
        return None if server is None else server.replication.fetchers.leader_of(partition)

    @property
    def log_dirs(self) -> Sequence[ObservedLogDir]:
        server = self._broker_server()
        return () if server is None else server.replicas.log_dirs

    # Compaction

    @property
    def cleanings(self) -> int:
        """How many have ended since the node started."""
        server = self._broker_server()
        return 0 if server is None else server.cleaner.stats.cleanings

    @property
    def is_cleaning(self) -> bool:
        """Some log is being compacted."""
        server = self._broker_server()
        return server is not None and server.cleaner.is_busy

    # The broker's life

    @property
    def broker_epoch(self) -> int:
        """Under which it is registered; -1 before."""
        server = self._broker_server()
        return UNKNOWN_EPOCH if server is None else server.lifecycle.broker_epoch

    @property
    def is_settled(self) -> bool:
        """It hosts every replica that belongs to it, and is not about to stop."""
        server = self._broker_server()
        return server is not None and server.is_hosting and not server.replication.fetchers.is_closed

    # Groups

    @property
    def has_shards(self) -> bool:
        """It coordinates some groups, or begins to."""
        return bool(self._runners())

    def shard(self, partition: int) -> ObservedShard | None:
        """Of this partition of `__consumer_offsets`, while the node leads it; the same object in one leader epoch."""
        runner = self._runners().get(partition)
        if runner is None:
            return None
        known = self._shards.get(partition)
        if known is None or known._runner is not runner:
            known = self._shards[partition] = ObservedShard(runner)
        return known

    # Requests

    @property
    def errors(self) -> Mapping[tuple[int, int], int]:
        """How often which error code was answered, by API key and code."""
        parts = self._parts()
        return {} if parts is None else parts.context.request_stats.errors

    # Invariants

    def check_invariants(self) -> None:
        """Of everything that is kept here: AssertionError says what does not hold."""
        for observed in self._all():
            observed.check_invariants()

    def _all(self) -> Iterator[ObservedReplica | ObservedQuorum | ObservedShard]:
        yield from self.replicas
        if self.quorum is not None:
            yield self.quorum
        for index in self._runners():
            if (shard := self.shard(index)) is not None:
                yield shard
