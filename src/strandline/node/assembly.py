"""The parts of a node, built bottom-up: each gets what it needs when it is made, and nothing is assigned to it later.

    peers          connections to other nodes
    quorum         on the peers: the committed metadata, and decisions
    channel        on peers and quorum: requests to the active controller
    controller     on the quorum: what the active one does of its own accord
    broker         on the channel: lifecycle, replicas, cleaner, fetchers
    groups         on the replicas
    transactions   on the replicas, the peers and the groups
    context        what the APIs get of all these
    listeners      on the context
    monitoring     on all of them

Where a part has to reach one that is built later, it gets a signal (`signals.py`), and `_subscribe` says who acts on it.

Always true: nothing is opened, sent or written here; that is the node's life (`node.py`).
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import NoReturn

from strandline.api.access.controller import ControllerAccess
from strandline.api.access.hosted_partitions import HostedPartitions
from strandline.api.cluster.metadata_updates import SentMetadata
from strandline.api.cluster.topic_bytes import TopicBytes
from strandline.api.context import Connections, FetchResources, NodeContext, ReplicaFetchResources
from strandline.api.fetching.fetch_sessions import FetchSessions
from strandline.api.fetching.follower_sessions import FollowerSessions
from strandline.api.fetching.shared_reads import SharedReads
from strandline.api.requests.request_stats import RequestStats
from strandline.api.transactions.marker_writing import MarkerWriter
from strandline.config.dynamic import DynamicConfig
from strandline.controller.liveness import Liveness
from strandline.ids import Uuid
from strandline.metadata.features import SUPPORTED
from strandline.metadata.image import MetadataImage
from strandline.node.active_controller import ActiveController, ControllerRequests
from strandline.node.broker_addresses import BrokerAddresses
from strandline.node.broker_lifecycle import BrokerFacts, BrokerLifecycle
from strandline.node.broker_server import BrokerServer
from strandline.node.cleaner import Cleaner
from strandline.node.connection_counts import ConnectionCounts
from strandline.node.connection_resources import ConnectionResources
from strandline.node.controller_channel import ControllerChannel
from strandline.node.controller_server import ControllerServer
from strandline.node.coordinator import offsets_topic, transaction_topic
from strandline.node.coordinator.dependencies import NodeGroupDependencies
from strandline.node.coordinator.groups import GroupCoordinator
from strandline.node.coordinator.runner import RunnerDependencies
from strandline.node.coordinator.topic import CoordinatorTopic
from strandline.node.coordinator.transactions import NodeTransactionDependencies, TransactionCoordinator
from strandline.node.dir_assignments import DirAssignments
from strandline.node.events import Events
from strandline.node.fetching.fetchers import Fetchers
from strandline.node.fetching.throttles import Throttles
from strandline.node.isr_updates import IsrUpdates
from strandline.node.listener import Listener
from strandline.node.log_dirs import LogDir
from strandline.node.logger import Logger
from strandline.node.maintenance import Maintenance
from strandline.node.metadata_publisher import MetadataPublisher
from strandline.node.monitoring.server import MonitoringServer
from strandline.node.observation.node import NodeObservation
from strandline.node.own_endpoints import OwnEndpoints
from strandline.node.peers import Peers
from strandline.node.producer_ids import NoProducerIds, ProducerIds
from strandline.node.published_metadata import PublishedMetadata
from strandline.node.quorum.quorum import Quorum
from strandline.node.repair import Repair
from strandline.node.replicas import Replicas, directory_ids
from strandline.node.replication import Replication
from strandline.node.running import Running
from strandline.node.scrubber import Scrubber
from strandline.node.signals import MarkerSignals, PeerSignals, QuorumSignals, ReplicaSignals, Signal
from strandline.node.transactions.access import NodeTransactions
from strandline.node.transactions.broker_requests import BrokerRequests
from strandline.node.transactions.marker_sender import MarkerSender
from strandline.node.transactions.verifier import TransactionVerifier
from strandline.ports import Clock, Disk
from strandline.raft.messages import Address


@dataclass(frozen=True, slots=True)
class NodeGround:
    """What a node stands on: its configuration, the world, the log dirs that it has opened, and what runs in it."""

    dynamic_config: DynamicConfig
    disk: Disk
    clock: Clock
    randomness: random.Random
    logger: Logger
    running: Running
    incarnation_id: Uuid
    connections_max: int
    """For how many the process has descriptors."""
    cluster_id: str
    log_dirs: list[LogDir]
    """Those of the broker, and the one of the metadata log."""
    previous_broker_epoch: int
    """Under which this broker last stopped in order."""

    @property
    def metadata_log_dir(self) -> LogDir:
        path = self.dynamic_config.current.metadata_log_dir
        return next(log_dir for log_dir in self.log_dirs if log_dir.path == path)


@dataclass(frozen=True, slots=True)
class TransactionParts:
    coordinator: TransactionCoordinator
    sender: MarkerSender
    writer: MarkerWriter
    verifier: TransactionVerifier
    access: NodeTransactions


@dataclass(frozen=True, slots=True)
class NodeParts:
    events: Events
    published: PublishedMetadata
    endpoints: OwnEndpoints
    peers: Peers
    quorum: Quorum
    channel: ControllerChannel
    controller_server: ControllerServer | None
    """None for a node that is no controller."""
    broker_server: BrokerServer | None
    """None for a node that is no broker."""
    groups: GroupCoordinator
    transactions: TransactionParts
    publisher: MetadataPublisher
    context: NodeContext
    resources: ConnectionResources
    connection_counts: ConnectionCounts
    listeners: list[Listener]
    monitoring: MonitoringServer


@dataclass(frozen=True, slots=True)
class _Signals:
    peers: PeerSignals = field(default_factory=PeerSignals)
    quorum: QuorumSignals = field(default_factory=QuorumSignals)
    replicas: ReplicaSignals = field(default_factory=ReplicaSignals)
    markers: MarkerSignals = field(default_factory=MarkerSignals)
    connection_closed: Signal[int] = field(default_factory=Signal)
    """A client's connection of that number, to whichever listener, is no more."""


def assemble(ground: NodeGround) -> NodeParts:
    config, signals = ground.dynamic_config.current, _Signals()
    events = Events(ground.clock, ground.logger, ground.incarnation_id)
    published = PublishedMetadata()
    liveness = Liveness(config.broker_session_timeout_ms / 1000)
    endpoints = OwnEndpoints(config.listeners)
    peers = Peers(
        ground.dynamic_config,
        ground.clock,
        ground.randomness,
        ground.logger,
        on_closed=signals.peers.closed,
        on_opened=signals.peers.opened,
    )
    quorum = _quorum(ground, peers, endpoints, signals.quorum)
    active_controller = ActiveController(config.node_id, quorum, endpoints)
    channel = ControllerChannel(peers, active_controller.locate, config, ground.randomness, ground.logger)
    controller_server = (
        ControllerServer(config, quorum, liveness, ground.clock, ground.logger) if config.controller else None
    )
    follower_sessions = FollowerSessions(ground.randomness)
    broker_server = (
        _broker_server(ground, events, published, peers, quorum, channel, endpoints, follower_sessions, signals)
        if config.broker
        else None
    )
    hosted = _hosted_partitions(broker_server)
    requests = ControllerRequests(channel, ground.dynamic_config)
    groups = _groups(ground, hosted, _applied_image(broker_server), requests)
    transactions = _transactions(ground, events, hosted, broker_server, peers, groups, requests, signals)
    context = _context(
        ground,
        published,
        ControllerAccess(quorum, quorum.decide, liveness, ask=requests.ask, forward=channel.forward),
        hosted,
        _replica_fetches(broker_server, follower_sessions),
        groups,
        transactions,
        NoProducerIds().allocate if broker_server is None else broker_server.producer_ids.allocate,
        signals.connection_closed,
    )
    resources = ConnectionResources.of(config)
    connection_counts = ConnectionCounts(ground.connections_max)
    listeners = [
        Listener(listener, context, ground.logger, resources, context.request_stats, connection_counts)
        for listener in config.listeners
    ]
    parts = NodeParts(
        events=events,
        published=published,
        endpoints=endpoints,
        peers=peers,
        quorum=quorum,
        channel=channel,
        controller_server=controller_server,
        broker_server=broker_server,
        groups=groups,
        transactions=transactions,
        publisher=MetadataPublisher(
            config.node_id,
            quorum,
            published,
            controller_server,
            broker_server,
            (groups, transactions.coordinator, transactions.sender),
            events,
        ),
        context=context,
        resources=resources,
        connection_counts=connection_counts,
        listeners=listeners,
        monitoring=MonitoringServer(NodeObservation(lambda: parts), config, ground.disk, ground.clock, ground.logger),
    )
    _subscribe(parts, signals)
    return parts


def _quorum(ground: NodeGround, peers: Peers, endpoints: OwnEndpoints, signals: QuorumSignals) -> Quorum:
    return Quorum(
        ground.dynamic_config.current,
        ground.disk,
        ground.clock,
        ground.randomness,
        ground.logger,
        peers,
        cluster_id=ground.cluster_id,
        directory_id=ground.metadata_log_dir.directory_id,
        clean=ground.metadata_log_dir.clean,
        on_failed=ground.running.fail,
        on_active=signals.activated,
        on_inactive=signals.deactivated,
        on_leader_changed=signals.leader_changed,
        endpoints=lambda: {e.listener: Address(e.host, e.port) for e in endpoints.of_controllers()},
    )


def _broker_server(
    ground: NodeGround,
    events: Events,
    published: PublishedMetadata,
    peers: Peers,
    quorum: Quorum,
    channel: ControllerChannel,
    endpoints: OwnEndpoints,
    follower_sessions: FollowerSessions,
    signals: _Signals,
) -> BrokerServer:
    dynamic_config, config = ground.dynamic_config, ground.dynamic_config.current
    disk, clock, randomness, logger = ground.disk, ground.clock, ground.randomness, ground.logger
    running = ground.running
    log_dirs = [log_dir for log_dir in ground.log_dirs if log_dir.path in config.log_dirs]
    facts = BrokerFacts(
        ground.cluster_id,
        ground.incarnation_id,
        endpoints.of_brokers,
        SUPPORTED,
        directory_ids(log_dirs),
        ground.previous_broker_epoch,
    )
    lifecycle = BrokerLifecycle(config, channel, facts, logger, running.leave)

    def broker_epoch() -> int:
        return lifecycle.broker_epoch

    isr_updates = IsrUpdates(channel, config.node_id, broker_epoch, randomness, logger, running.ended)
    dir_assignments = DirAssignments(
        channel, config.node_id, broker_epoch, lambda: quorum.committed, randomness, logger, running.ended
    )
    replicas = Replicas(
        dynamic_config,
        disk,
        clock,
        randomness,
        logger,
        log_dirs,
        signals.replicas,
        broker_epoch=broker_epoch,
        propose_isr=isr_updates.submit,
        note=events.note,
        on_all_dirs_failed=running.fail,
        on_task_ended=running.ended,
    )
    cleaner = Cleaner(replicas, disk, clock, logger, running.ended)
    addresses = BrokerAddresses(dynamic_config, lambda: replicas.image)
    throttles = Throttles(dynamic_config)
    fetchers = Fetchers(
        config,
        clock,
        randomness,
        logger,
        throttles,
        address_of=addresses.of,
        broker_epoch=broker_epoch,
        on_opened=signals.peers.opened,
        on_closed=signals.peers.leader_lost,
        on_storage_error=replicas.storage_error,
        on_task_ended=running.ended,
    )
    repair = Repair(
        config.node_id,
        peers,
        config.inter_broker_listener,
        addresses.of,
        clock,
        replicas.dependencies.note,
        replicas.storage_error,
        logger,
    )
    scrubber = Scrubber(replicas.partitions.values, clock, repair.damaged, replicas.storage_error)
    return BrokerServer(
        dynamic_config,
        disk,
        published.watch,
        replicas=replicas,
        cleaner=cleaner,
        maintenance=Maintenance(replicas, clock, logger, cleaner.is_cleaning),
        lifecycle=lifecycle,
        replication=Replication(
            replicas, fetchers, throttles, isr_updates, dir_assignments, repair, scrubber, follower_sessions
        ),
        producer_ids=ProducerIds(channel, config.node_id, broker_epoch, logger),
    )


def _hosted_partitions(server: BrokerServer | None) -> HostedPartitions:
    if server is None:
        return HostedPartitions({}, {}, (), dict, storage_failed=_hosts_nothing, damaged=_hosts_nothing)
    replicas = server.replicas
    return HostedPartitions(
        by_name=replicas.partitions,
        by_id=replicas.partitions_by_id,
        unopened=replicas.unopened,
        log_dirs=lambda: {log_dir.path: log_dir.online for log_dir in replicas.log_dirs},
        storage_failed=replicas.storage_error,
        damaged=server.replication.repair.damaged,
    )


def _hosts_nothing(partition: object, error: Exception) -> NoReturn:
    raise AssertionError("a node that is no broker hosts no replicas")


def _applied_image(server: BrokerServer | None) -> Callable[[], MetadataImage]:
    """The image that is being applied: a partition is led by what it says, before clients are shown it."""
    return MetadataImage if server is None else lambda: server.replicas.image


def _replica_fetches(server: BrokerServer | None, sessions: FollowerSessions) -> ReplicaFetchResources:
    if server is None:
        return ReplicaFetchResources(sessions, lambda partition: False, lambda partition, size_bytes: None)
    return ReplicaFetchResources(sessions, server.replication.is_leader_throttled, server.replication.replicated)


def _groups(
    ground: NodeGround,
    hosted: HostedPartitions,
    applied_image: Callable[[], MetadataImage],
    requests: ControllerRequests,
) -> GroupCoordinator:
    """The coordinator of the groups whose partition of `__consumer_offsets` this node leads."""
    dynamic_config = ground.dynamic_config
    topic = CoordinatorTopic(
        offsets_topic.CONSUMER_OFFSETS,
        lambda: offsets_topic.settings(dynamic_config.current),
        requests.ask,
        ground.running.spawn_short,
        ground.logger,
    )
    group_dependencies = NodeGroupDependencies(lambda: dynamic_config.current, applied_image, ground.randomness)
    return GroupCoordinator(group_dependencies, _runner_dependencies(ground, hosted, applied_image), topic)


def _transactions(
    ground: NodeGround,
    events: Events,
    hosted: HostedPartitions,
    broker_server: BrokerServer | None,
    peers: Peers,
    groups: GroupCoordinator,
    requests: ControllerRequests,
    signals: _Signals,
) -> TransactionParts:
    """The coordinator of the transactional ids whose partition of `__transaction_state` this node leads."""
    dynamic_config, image, spawn = ground.dynamic_config, _applied_image(broker_server), ground.running.spawn_short
    node_id = dynamic_config.current.node_id
    producer_ids = NoProducerIds() if broker_server is None else broker_server.producer_ids

    def timeout_s() -> float:
        return dynamic_config.current.request_timeout_ms / 1000

    def requests_for(purpose: str) -> BrokerRequests:
        addresses = BrokerAddresses(dynamic_config, image)
        return BrokerRequests(peers, addresses.of, lambda: dynamic_config.current.inter_broker_listener, purpose)

    writer = MarkerWriter(hosted, groups, ground.clock, timeout_s)
    sender = MarkerSender(
        node_id,
        image,
        requests_for("transaction-markers"),
        writer,
        timeout_s,
        spawn,
        ground.logger,
        signals.markers.marked,
        signals.markers.refused,
    )
    coordinator = TransactionCoordinator(
        NodeTransactionDependencies(lambda: dynamic_config.current, image, producer_ids.take, sender, events),
        _runner_dependencies(ground, hosted, image),
        CoordinatorTopic(
            transaction_topic.TRANSACTION_STATE,
            lambda: transaction_topic.settings(dynamic_config.current),
            requests.ask,
            spawn,
            ground.logger,
        ),
    )
    verifier = TransactionVerifier(
        node_id, image, coordinator, requests_for("transaction-verification"), timeout_s, spawn
    )
    access = NodeTransactions(coordinator, verifier, producer_ids)
    return TransactionParts(coordinator, sender, writer, verifier, access)


def _runner_dependencies(
    ground: NodeGround, hosted: HostedPartitions, applied_image: Callable[[], MetadataImage]
) -> RunnerDependencies:
    """Of every coordinator, whatever it coordinates."""
    return RunnerDependencies(
        applied_image,
        ground.disk,
        ground.clock,
        ground.logger,
        on_storage_error=hosted.storage_failed,
        on_corrupt=hosted.damaged,
        on_task_ended=ground.running.ended,
    )


def _context(
    ground: NodeGround,
    published: PublishedMetadata,
    controller: ControllerAccess,
    hosted: HostedPartitions,
    followers: ReplicaFetchResources,
    groups: GroupCoordinator,
    transactions: TransactionParts,
    allocate_producer_id: Callable[[], Awaitable[int]],
    connection_closed: Callable[[int], None],
) -> NodeContext:
    config = ground.dynamic_config.current
    return NodeContext(
        dynamic_config=ground.dynamic_config,
        cluster_id=ground.cluster_id,
        disk=ground.disk,
        clock=ground.clock,
        randomness=ground.randomness,
        metadata=published,
        controller=controller,
        hosted=hosted,
        fetches=FetchResources(
            FetchSessions(config.max_incremental_fetch_session_cache_slots, ground.randomness),
            SharedReads(),
            TopicBytes(),
        ),
        followers=followers,
        groups=groups,
        transactions=transactions.access,
        markers=transactions.writer,
        connections=Connections(SentMetadata(), connection_closed),
        request_stats=RequestStats(),
        allocate_producer_id=allocate_producer_id,
        spawn=ground.running.spawn_short,
        warn=ground.logger.warning,
    )


# Who acts on what


def _subscribe(parts: NodeParts, signals: _Signals) -> None:
    """Subscribers act in the order in which they stand here."""
    quorum, published, controller = parts.quorum, parts.published, parts.controller_server
    context, broker = parts.context, parts.broker_server
    signals.peers.opened.subscribe(published.reached, context.controller.liveness.peer_reached)
    # A closed connection is the first sign of a node that is gone (docs/decisions/0005).
    signals.peers.closed.subscribe(lambda node_id, purpose: published.suspect(node_id))
    signals.peers.closed.subscribe(lambda node_id, purpose: quorum.disconnected(node_id))
    signals.peers.leader_lost.subscribe(lambda node_id, purpose: published.suspect(node_id))
    signals.quorum.leader_changed.subscribe(lambda: _note_leader(quorum, parts.events), parts.channel.leader_changed)
    signals.connection_closed.subscribe(context.connections.metadata_seen.forget)
    signals.connection_closed.subscribe(context.followers.sessions.connection_closed)
    if controller is not None:
        _subscribe_controller(controller, signals)
    if broker is not None:
        _subscribe_broker(broker, quorum, parts.groups, parts.transactions.coordinator, signals)


def _note_leader(quorum: Quorum, events: Events) -> None:
    epoch, leader_id = quorum.leader
    if leader_id >= 0:
        events.note("controller active", f"node {leader_id} leads the quorum", controller=leader_id, epoch=epoch)


def _subscribe_controller(controller: ControllerServer, signals: _Signals) -> None:
    signals.quorum.activated.subscribe(controller.on_active)
    signals.quorum.deactivated.subscribe(controller.on_inactive)
    signals.peers.closed.subscribe(lambda node_id, purpose: controller.peer_closed(node_id))
    signals.peers.leader_lost.subscribe(lambda node_id, purpose: controller.peer_closed(node_id))
    signals.connection_closed.subscribe(controller.connection_closed)


def _subscribe_broker(
    broker: BrokerServer,
    quorum: Quorum,
    groups: GroupCoordinator,
    transactions: TransactionCoordinator,
    signals: _Signals,
) -> None:
    lifecycle, replication, cleaner = broker.lifecycle, broker.replication, broker.cleaner

    def heartbeat_anew(node_id: int, purpose: str) -> None:
        if lifecycle.has_begun and node_id == quorum.leader[1]:
            lifecycle.controller_changed()

    signals.peers.closed.subscribe(heartbeat_anew)
    signals.quorum.leader_changed.subscribe(lifecycle.controller_changed)
    replicas = signals.replicas
    replicas.role_changed.subscribe(replication.role_changed, groups.role, transactions.role)
    signals.markers.marked.subscribe(transactions.marked)
    signals.markers.refused.subscribe(transactions.refused)
    replicas.hosted.subscribe(replication.hosted)
    replicas.unopened.subscribe(replication.unopened)
    replicas.dropping.subscribe(cleaner.dropping)
    replicas.truncated.subscribe(cleaner.truncated)
    replicas.damaged.subscribe(replication.repair.damaged)
    replicas.dir_failed.subscribe(lifecycle.dir_failed)
