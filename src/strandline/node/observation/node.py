"""What can be seen of a node: its replicas, its part in the quorum, its group shards, its transactions, its
registration, its log dirs, its events, its requests and connections.

    observed = node.observe()                       once for each node; it stays true as the node changes
    observed.replica("orders", 0).high_watermark
    observed.quorum.role                            None until Raft has begun

Judges, stories and what is served over HTTP (`node/monitoring/`: `/replicas`, `/events`, `/metrics`, `/health`) see a
node through this, and through nothing else: how a part keeps what is shown is known here only. Judges have groups as
they are, with `ObservedShard.shard`. Not seen through this, and shown over HTTP: what the HTTP server itself refused,
and whether the process walks records in machine code.

Always true: looking changes nothing, draws no chance and waits for nothing, but for `events.wait`; a view copies
nothing that grows with what the node holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from strandline.groups.shard import GroupShard
from strandline.ids import Uuid
from strandline.metadata.image import MetadataImage
from strandline.node.broker_server import BrokerServer
from strandline.node.broker_state import UNKNOWN_EPOCH, BrokerState
from strandline.node.coordinator.runner import ShardRunner
from strandline.node.observation.cleaner import ObservedCleanerStats
from strandline.node.observation.connections import ObservedConnections
from strandline.node.observation.events import ObservedEvents
from strandline.node.observation.quorum import ObservedQuorum
from strandline.node.observation.replicas import ObservedReplica
from strandline.node.observation.requests import ObservedLargeRequests, ObservedRequests
from strandline.node.observation.shards import ObservedGroupStats, ObservedShard
from strandline.node.observation.topics import ObservedTopics
from strandline.node.observation.transactions import ObservedTransactions
from strandline.replica.partition import Partition
from strandline.replica.topic_stats import BrokerTopicStats
from strandline.transactions.shard import TransactionShard

if TYPE_CHECKING:
    from strandline.node.assembly import NodeParts


class ObservedLogDir(Protocol):
    @property
    def path(self) -> str: ...

    @property
    def directory_id(self) -> Uuid: ...

    @property
    def online(self) -> bool: ...


class NodeObservation:
    """All of a node. Of a node that is no broker there are no replicas, no shards, no registration and no traffic.

    Before the log dirs of a node are open there is nothing to be seen; its roles, published metadata, events, requests
    and connections must not be asked for then.
    """

    def __init__(self, parts: Callable[[], NodeParts | None]) -> None:
        """`parts` are None until the log dirs of the node are open."""
        self._parts = parts
        self._quorum: ObservedQuorum | None = None
        self._replicas: dict[Partition, ObservedReplica] = {}
        self._shards: dict[int, ObservedShard] = {}

    @property
    def _opened(self) -> NodeParts:
        parts = self._parts()
        assert parts is not None, "a node has its parts once its log dirs are open"
        return parts

    def _broker_server(self) -> BrokerServer | None:
        parts = self._parts()
        return None if parts is None else parts.broker_server

    def _runners(self) -> Mapping[int, ShardRunner[GroupShard]]:
        parts = self._parts()
        return {} if parts is None else parts.groups.runners

    # What it is

    @property
    def is_broker(self) -> bool:
        return self._opened.broker_server is not None

    @property
    def is_controller(self) -> bool:
        return self._opened.controller_server is not None

    @property
    def cluster_id(self) -> str:
        return self._opened.context.cluster_id

    @property
    def published(self) -> MetadataImage:
        """As clients are shown it: the newest image that this node has acted on."""
        return self._opened.published.image()

    @property
    def events(self) -> ObservedEvents:
        return self._opened.events

    @property
    def quorum(self) -> ObservedQuorum | None:
        """None until Raft has begun."""
        if self._quorum is None:
            parts = self._parts()
            if parts is not None and parts.quorum.has_begun:
                self._quorum = ObservedQuorum(parts.quorum, parts.context.controller.liveness)
        return self._quorum

    # Replicas

    @property
    def replicas(self) -> Iterable[ObservedReplica]:
        """In the order in which they were opened."""
        server = self._broker_server()
        if server is None:
            return ()
        self._forget_gone(server)
        return map(self._observed, server.replicas.partitions.values())

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
            known = self._replicas[partition] = ObservedReplica(partition, self._fetched_from)
            if (server := self._broker_server()) is not None:
                self._forget_gone(server)
        return known

    def _forget_gone(self, server: BrokerServer) -> None:
        """A replica that is dropped is not kept here, with its log, once there is another look."""
        if len(self._replicas) > len(server.replicas.partitions):
            self._replicas = {each: observed for each, observed in self._replicas.items() if not each.gone}

    def _fetched_from(self, partition: Partition) -> int | None:
        server = self._broker_server()
        return None if server is None else server.replication.fetchers.leader_of(partition)

    @property
    def log_dirs(self) -> Sequence[ObservedLogDir]:
        server = self._broker_server()
        return () if server is None else server.replicas.log_dirs

    @property
    def failed_isr_updates(self) -> int:
        """ISR changes that the controller refused or did not answer."""
        server = self._broker_server()
        return 0 if server is None else server.replication.failed_isr_updates

    @property
    def topics(self) -> ObservedTopics:
        """What was written to and read from them."""
        server = self._broker_server()
        return BrokerTopicStats() if server is None else server.replicas.topic_stats

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

    @property
    def cleaner_stats(self) -> ObservedCleanerStats | None:
        server = self._broker_server()
        return None if server is None else server.cleaner.stats

    @property
    def uncleanable(self) -> Iterable[tuple[ObservedReplica, ObservedLogDir]]:
        """Those whose log can't be cleaned, and where they are."""
        server = self._broker_server()
        uncleanable = {} if server is None else server.cleaner.uncleanable
        return ((self._observed(partition), log_dir) for partition, log_dir in uncleanable.items())

    # The broker's life

    @property
    def broker_state(self) -> BrokerState:
        """NOT_RUNNING for a node that is no broker."""
        server = self._broker_server()
        return BrokerState.NOT_RUNNING if server is None else server.lifecycle.state

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

    @property
    def shards(self) -> Iterator[ObservedShard]:
        """Of each partition of `__consumer_offsets` that the node leads."""
        for index in self._shards.keys() - self._runners().keys():
            del self._shards[index]
        return (shard for index in self._runners() if (shard := self.shard(index)) is not None)

    def shard(self, partition: int) -> ObservedShard | None:
        """Of this partition of `__consumer_offsets`, while the node leads it; the same object in one leader epoch."""
        runner = self._runners().get(partition)
        if runner is None:
            return None
        known = self._shards.get(partition)
        if known is None or known._runner is not runner:
            known = self._shards[partition] = ObservedShard(runner)
        return known

    @property
    def group_stats(self) -> ObservedGroupStats:
        return self._opened.groups.stats

    # Transactions

    @property
    def transactions(self) -> ObservedTransactions:
        """Those that the node coordinates, and its part in those of others."""
        return ObservedTransactions(self._opened.transactions)

    @property
    def transaction_shards(self) -> Iterator[TransactionShard]:
        """Of each partition of `__transaction_state` that the node leads and has read. Not to be changed."""
        return iter(()) if self._parts() is None else self.transactions.shards

    @property
    def transaction_max_timeout_ms(self) -> int:
        """`transaction.max.timeout.ms`: no producer may ask for a longer timeout."""
        return self._opened.context.config.transaction_max_timeout_ms

    # Requests and connections

    @property
    def requests(self) -> ObservedRequests:
        return self._opened.context.request_stats

    @property
    def large_requests(self) -> Sequence[ObservedLargeRequests]:
        """Those of clients, and those of brokers and controllers."""
        limits = self._opened.context.limits
        return limits.client_requests, limits.cluster_requests

    @property
    def fetch_session_count(self) -> int:
        """Of consumers."""
        return len(self._opened.context.fetches.sessions)

    @property
    def connections(self) -> ObservedConnections:
        parts = self._opened
        return ObservedConnections(parts.listeners, parts.connection_counts, parts.resources)

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

    def _all(self) -> Iterator[ObservedReplica | ObservedQuorum | ObservedShard | ObservedTransactions]:
        yield from self.replicas
        if self.quorum is not None:
            yield self.quorum
        yield from self.shards
        if self._parts() is not None:
            yield self.transactions
