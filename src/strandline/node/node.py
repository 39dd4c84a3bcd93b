"""One node: its parts, how it starts, how it stops.

A node is a broker, a controller, or both (`process.roles`). Either way it follows the metadata log; a controller that
votes helps to write it.

Always true: a failed metadata log ends the node, because nothing it says afterwards could be trusted; a node that stops
hands over what it leads before it leaves: its partitions first, then the quorum; one that can't start gives back what
it had, and its log dirs are as clean as they were.
"""

from __future__ import annotations

import asyncio
import random
from functools import partial
from typing import Any

from strandline.api.cluster.metadata_updates import SentMetadata
from strandline.api.cluster.topic_bytes import TopicBytes
from strandline.api.context import Connections, FetchResources, NodeContext, ReplicaFetchResources
from strandline.api.controller_access import ControllerAccess
from strandline.api.fetching.fetch_sessions import FetchSessions
from strandline.api.fetching.follower_sessions import FollowerSessions
from strandline.api.fetching.shared_reads import SharedReads
from strandline.api.hosted_partitions import HostedPartitions
from strandline.api.requests.error_reply import contains_error
from strandline.api.requests.request_stats import RequestStats
from strandline.config.dynamic import DynamicConfig
from strandline.config.node import NodeConfig
from strandline.controller.liveness import Liveness
from strandline.errors import ErrorCode, KafkaError
from strandline.ids import Uuid
from strandline.metadata.features import SUPPORTED
from strandline.metadata.image import Endpoint, MetadataImage
from strandline.node.broker_lifecycle import BrokerFacts, BrokerLifecycle, LifecycleFailed, previous_broker_epoch
from strandline.node.broker_server import BrokerServer
from strandline.node.broker_state import UNKNOWN_EPOCH, BrokerState
from strandline.node.connection_counts import UNLIMITED, ConnectionCounts
from strandline.node.connection_resources import ConnectionResources
from strandline.node.controller_channel import ControllerChannel
from strandline.node.controller_registration import keep_registered
from strandline.node.controller_server import ControllerServer
from strandline.node.coordinator.coordinator import GroupCoordinator
from strandline.node.coordinator.offsets_topic import OffsetsTopic
from strandline.node.coordinator.runner import Parts
from strandline.node.coordinator.stats import CoordinatorStats
from strandline.node.coordinator.surroundings import NodeGroupSurroundings
from strandline.node.events import Events
from strandline.node.listener import Listener
from strandline.node.log_dirs import LogDir, mark_clean, open_dirs, read_bootstrap
from strandline.node.logger import Logger
from strandline.node.monitoring.monitored_node import MonitoredNode
from strandline.node.monitoring.server import MonitoringServer
from strandline.node.observation.node import NodeObservation
from strandline.node.peers import Peers
from strandline.node.producer_ids import ProducerIds
from strandline.node.published import PublishedMetadata
from strandline.node.quorum.metadata_log import metadata_dir
from strandline.node.quorum.quorum import Quorum
from strandline.node.replicas import Replicas, directory_ids
from strandline.node.replication import Replication
from strandline.node.running import NodeFailed as NodeFailed
from strandline.node.running import Running
from strandline.node.tasks import to_the_end
from strandline.ports import Clock, Disk
from strandline.raft.messages import Address
from strandline.replica.topic_stats import BrokerTopicStats

SECURITY_PROTOCOLS = {"PLAINTEXT": 0, "SSL": 1, "SASL_PLAINTEXT": 2, "SASL_SSL": 3}


class Node:
    def __init__(
        self,
        config: NodeConfig,
        disk: Disk,
        clock: Clock,
        randomness: random.Random,
        logger: Logger,
        *,
        connections_max: int = UNLIMITED,
    ) -> None:
        """`connections_max`: for how many the process has descriptors."""
        self._config = DynamicConfig(config)
        self.connection_counts = ConnectionCounts(connections_max)
        self.resources = ConnectionResources.of(config)
        self._disk = disk
        self._clock = clock
        self._randomness = randomness
        self._logger = logger.bind(node=config.node_id)
        self._running = Running(self._logger)
        self._incarnation_id = Uuid.draw(randomness)
        self._request_stats = RequestStats()
        self._monitoring: MonitoringServer | None = None
        self.events = Events(clock, self._logger, self._incarnation_id)
        self._liveness = Liveness(config.broker_session_timeout_ms / 1000)
        self._published = PublishedMetadata()
        self._committed = asyncio.Event()
        self._peers = Peers(self._config, clock, randomness, self._logger, self._peer_closed, self._peer_reached)
        self._channel = ControllerChannel(self._peers, self._leader, config, randomness, self._logger)
        self._log_dirs: list[LogDir] = []
        self._previous_epoch = UNKNOWN_EPOCH
        """Under which this broker last stopped in order."""
        self._is_serving = False
        self._in_quorum = False
        self.listeners: list[Listener] = []
        self.quorum: Quorum
        self.context: NodeContext
        self.broker_server: BrokerServer | None = None
        self.controller_server: ControllerServer | None = None
        self._lifecycle: BrokerLifecycle | None = None
        self._producer_ids: ProducerIds | None = None
        self.groups = self._make_groups()

    @property
    def config(self) -> NodeConfig:
        """The configuration that is in force now."""
        return self._config.current

    @property
    def replicas(self) -> Replicas:
        assert self.broker_server is not None, "a node that is no broker hosts no replicas"
        return self.broker_server.replicas

    def observe(self) -> NodeObservation:
        """A live, read-only view of this node, for judges, stories and monitoring; to be kept as long as the node."""
        return NodeObservation(
            lambda: getattr(self, "quorum", None), lambda: self.broker_server, self.groups, self._request_stats
        )

    # Starting

    async def start(self) -> None:
        """Returns when the node does what it is for: a broker serves clients, a controller takes part in the quorum. If
        that fails (NodeFailed, StorageError, OSError), or is cancelled, all is given back before it raises."""
        starting = asyncio.get_running_loop().create_task(self._start())
        try:
            await asyncio.wait((starting, self._running.failure), return_when=asyncio.FIRST_COMPLETED)
            if self._running.failure.done():
                await self.failed()
            starting.result()
        except (Exception, asyncio.CancelledError):
            starting.cancel()
            await asyncio.gather(starting, return_exceptions=True)
            await self.stop()
            raise

    async def _start(self) -> None:
        paths = list(dict.fromkeys((*self.config.log_dirs, self.config.metadata_log_dir)))
        for path in (*paths, metadata_dir(self.config.metadata_log_dir)):
            self._disk.dedicate_workers(path)
        self._previous_epoch = await self._disk.offload(
            lambda: previous_broker_epoch(self._disk, self.config.log_dirs), ""
        )
        required = [self.config.metadata_log_dir]
        cluster_id, self._log_dirs = await self._disk.offload(
            lambda: open_dirs(self._disk, paths, self.config.node_id, required), ""
        )
        for log_dir in self._log_dirs:
            if not log_dir.online:
                self._logger.error("log dir is offline until a restart", path=log_dir.path, error=log_dir.problem)
        if self.config.broker:
            self.broker_server = self._make_broker_server()
        self.context = self._context(cluster_id)
        self.listeners = [
            Listener(listener, self.context, self._logger, self.resources, self._request_stats, self.connection_counts)
            for listener in self.config.listeners
        ]
        for listener in self.listeners:
            await listener.bind()
        await self._open_monitoring()
        await self._join_quorum(cluster_id)
        if self.broker_server is not None:
            await self._join_cluster(self.broker_server, cluster_id)
        self._is_serving = True
        image = self.quorum.committed
        self._logger.info(
            "started",
            cluster_id=cluster_id,
            clean=all(log_dir.clean for log_dir in self._log_dirs),
            topics=len(image.topics),
            partitions=sum(len(topic.partitions) for topic in image.topics.values()),
            metadata_offset=image.end_offset,
        )

    async def _open_monitoring(self) -> None:
        """What people and their monitoring may see of this node."""
        view = MonitoredNode(
            self.context,
            lambda: self.quorum if self._in_quorum else None,
            lambda: BrokerState.NOT_RUNNING if self._lifecycle is None else self._lifecycle.state,
            self.events,
            self._request_stats,
            BrokerTopicStats() if self.broker_server is None else self.replicas.topic_stats,
            self.groups,
            None if self.broker_server is None else self.broker_server.cleaner,
            connection_counts=self.connection_counts,
            resources=self.resources,
            connections=lambda: {listener.config.name: len(listener) for listener in self.listeners},
            failed_isr_updates=self._failed_isr_updates,
        )
        self._monitoring = MonitoringServer(view, self._logger)
        await self._monitoring.start()

    def _failed_isr_updates(self) -> int:
        server = self.broker_server
        return 0 if server is None or server.replication is None else server.replication.failed_isr_updates

    def _make_broker_server(self) -> BrokerServer:
        return BrokerServer(
            self._config,
            self._disk,
            self._clock,
            self._randomness,
            self._logger,
            [log_dir for log_dir in self._log_dirs if log_dir.path in self.config.log_dirs],
            self._published.watch,
            self._running.fail,
            self._running.ended,
        )

    def _make_groups(self) -> GroupCoordinator:
        """The coordinator of the groups whose partition of `__consumer_offsets` this node leads."""
        parts = Parts(
            NodeGroupSurroundings(lambda: self.config, lambda: self.replicas.dependencies.image, self._randomness),
            self._disk,
            self._clock,
            self._logger,
            CoordinatorStats(),
            on_storage_error=lambda partition, error: self.replicas.storage_error(partition, error),
            on_corrupt=lambda partition, error: self.context.hosted.damaged(partition, error),
            on_task_ended=self._running.ended,
        )
        topic = OffsetsTopic(lambda: self.config, self._ask_controller, self._running.spawn_short, self._logger)
        return GroupCoordinator(parts, topic)

    async def _join_quorum(self, cluster_id: str) -> None:
        """Follow the metadata log from here on, and take part in its quorum if this is a controller."""
        its_dir = next(log_dir for log_dir in self._log_dirs if log_dir.path == self.config.metadata_log_dir)
        self.quorum = self.context.controller.quorum = Quorum(
            self.config,
            self._disk,
            self._clock,
            self._randomness,
            self._logger,
            self._peers,
            cluster_id=cluster_id,
            directory_id=its_dir.directory_id,
            clean=its_dir.clean,
            on_failed=self._running.fail,
            endpoints={e.listener: Address(e.host, e.port) for e in self._endpoints(controller=True)},
        )
        self.quorum.on_leader_changed = self._leader_changed
        if self.config.controller:
            bootstrap = await self._disk.offload(lambda: read_bootstrap(self._disk, its_dir.path), its_dir.path)
            self.controller_server = ControllerServer(
                self.config, self.quorum, self._liveness, self._clock, self._logger, bootstrap
            )
            self.quorum.on_active = self.controller_server.on_active
            self.quorum.on_inactive = self.controller_server.on_inactive
        self._running.is_sound = False  # until it is known what the metadata log is like
        await self.quorum.open()
        self._running.is_sound = self._in_quorum = True
        self._running.spawn(self.quorum.run(self._note_committed))
        self._running.spawn(self._publish())
        await self._serve(controller=True)
        if self.controller_server is not None:
            for job in self.controller_server.jobs():
                self._running.spawn(job)
            self._running.spawn(
                keep_registered(
                    self.config.node_id,
                    self._incarnation_id,
                    self._endpoints(controller=True),
                    self._published.watch,
                    self._channel,
                    self._logger,
                )
            )

    async def _join_cluster(self, server: BrokerServer, cluster_id: str) -> None:
        """Register as a broker, open the logs, be unfenced, and let clients in."""
        facts = BrokerFacts(
            cluster_id,
            self._incarnation_id,
            self._endpoints(controller=False),
            SUPPORTED,
            directory_ids(server.replicas.log_dirs),
            self._previous_epoch,
        )
        self._lifecycle = lifecycle = BrokerLifecycle(
            self.config, self._channel, facts, self._logger, self._running.leave
        )
        self._producer_ids = ProducerIds(
            self._channel, self.config.node_id, lambda: lifecycle.broker_epoch, self._logger
        )
        replication = Replication(
            server.replicas,
            self._clock,
            self._randomness,
            self._logger,
            self._channel,
            self._peers,
            self.context.followers.sessions,
            broker_epoch=lambda: lifecycle.broker_epoch,
            committed=lambda: self.quorum.committed,
            on_opened=self._peer_reached,
            on_closed=self._follower_cut_off,
            on_task_ended=self._running.ended,
        )
        server.replicas.dependencies.on_event = self.events.note
        self.context.followers.is_throttled = replication.is_leader_throttled
        self.context.followers.replicated = replication.replicated
        self.context.hosted.damaged = replication.repair.damaged
        replication.on_role = self.groups.role
        try:
            await server.start(lifecycle, replication, lambda: self.quorum.committed)
        except LifecycleFailed as error:
            raise NodeFailed(str(error)) from None
        await self._serve(controller=False)
        for job in server.jobs():
            self._running.spawn(job)

    async def _serve(self, *, controller: bool) -> None:
        for listener in self.listeners:
            if listener.config.controller == controller:
                await listener.serve()
                self._running.spawn(listener.close_idle())

    def _endpoints(self, *, controller: bool) -> list[Endpoint]:
        """Where others find this node."""
        return [
            Endpoint(
                listener.config.name,
                listener.config.advertised_host,
                listener.config.advertised_port or listener.port,
                SECURITY_PROTOCOLS[listener.config.protocol],
            )
            for listener in self.listeners
            if listener.config.controller == controller
        ]

    def _context(self, cluster_id: str) -> NodeContext:
        server = self.broker_server
        return NodeContext(
            dynamic_config=self._config,
            cluster_id=cluster_id,
            disk=self._disk,
            clock=self._clock,
            randomness=self._randomness,
            metadata=self._published,
            controller=ControllerAccess(
                quorum=None,  # type: ignore[arg-type]  # it is opened next, before any connection is accepted
                decide=lambda decision: self.quorum.decide(decision),
                liveness=self._liveness,
                ask=self._ask_controller,
                forward=self._channel.forward,
            ),
            hosted=HostedPartitions(
                by_name={} if server is None else server.replicas.partitions,
                by_id={} if server is None else server.replicas.partitions_by_id,
                unopened=() if server is None else server.replicas.unopened,
                log_dirs=lambda: {} if server is None else {d.path: d.online for d in server.replicas.log_dirs},
                storage_failed=lambda partition, error: self.replicas.storage_error(partition, error),
                damaged=lambda partition, error: None,
            ),
            fetches=FetchResources(
                FetchSessions(self.config.max_incremental_fetch_session_cache_slots, self._randomness),
                SharedReads(),
                TopicBytes(),
            ),
            followers=ReplicaFetchResources(
                FollowerSessions(self._randomness), lambda partition: False, lambda partition, size_bytes: None
            ),
            groups=self.groups,
            connections=Connections(SentMetadata(), self._connection_closed),
            request_stats=self._request_stats,
            allocate_producer_id=self._allocate_producer_id,
            spawn=self._running.spawn_short,
            warn=self._logger.warning,
        )

    # What the parts report

    async def _note_committed(self, image: MetadataImage) -> None:
        """Opening a thousand logs takes long, and the controller must go on deciding meanwhile: a broker acts on its
        own."""
        if self.controller_server is not None:
            self.controller_server.committed(image)
        self._committed.set()

    async def _publish(self) -> None:
        """Do what newly committed images ask of this node; of several that came meanwhile only the newest counts."""
        while True:
            await self._committed.wait()
            self._committed.clear()
            image = self.quorum.committed
            if self.broker_server is not None:
                await to_the_end(self.broker_server.apply(image, partial(self._published.show, image)))
            self._published.show(image)
            self.groups.image_applied(image)
            self.events.applied(image, self.config.node_id, live=self._is_serving)
            if self._lifecycle is not None:
                self._lifecycle.metadata_applied(image.end_offset - 1)
            self._published.watch.changed()

    def _leader(self) -> tuple[int, int, Address | None]:
        epoch, leader_id = self.quorum.leader
        if leader_id == self.config.node_id:
            # Where it listens indeed: a port may be the system's choice.
            own = self._endpoints(controller=True)[0]
            return epoch, leader_id, Address(own.host, own.port)
        return epoch, leader_id, self.quorum.leader_address()

    def _leader_changed(self) -> None:
        epoch, leader_id = self.quorum.leader
        if leader_id >= 0:
            self.events.note(
                "controller active", f"node {leader_id} leads the quorum", controller=leader_id, epoch=epoch
            )
        self._channel.leader_changed()
        if self._lifecycle is not None:
            self._lifecycle.controller_changed()

    def _connection_closed(self, connection_id: int) -> None:
        self.context.connections.metadata_seen.forget(connection_id)
        self.context.followers.sessions.connection_closed(connection_id)
        if self.controller_server is not None:
            self.controller_server.connection_closed(connection_id)

    def _peer_closed(self, node_id: int, purpose: str) -> None:
        """A connection that this node had opened to another one closed: its broker may be gone
        (docs/decisions/0005)."""
        self._published.suspect(node_id)
        self.quorum.disconnected(node_id)
        if self.controller_server is not None:
            self.controller_server.peer_closed(node_id)
        if self._lifecycle is not None and node_id == self.quorum.leader[1]:
            self._lifecycle.controller_changed()

    def _peer_reached(self, node_id: int) -> None:
        self._published.reached(node_id)
        self._liveness.peer_reached(node_id)

    def _follower_cut_off(self, node_id: int, purpose: str) -> None:
        """The connection to a leader that we follow closed: that broker may be gone; the quorum is not concerned."""
        self._published.suspect(node_id)
        if self.controller_server is not None:
            self.controller_server.peer_closed(node_id)

    async def _ask_controller(self, api_key: int, message: Any) -> Any:
        timeout_s = self.config.request_timeout_ms / 1000
        return await self._channel.ask(api_key, message, timeout_s, retry=True, error_of=_not_controller)

    async def _allocate_producer_id(self) -> int:
        if self._producer_ids is None:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "this node is no broker")
        return await self._producer_ids.allocate()

    async def failed(self) -> None:
        """Returns never; raises NodeFailed once the node can't go on."""
        await self._running.failed()

    # Stopping

    async def stop(self) -> None:
        """Hand over what this node leads, close the connections, put everything on the device, and mark that it is."""
        if self._lifecycle is not None:
            await (self._lifecycle.close() if self._running.failure.done() else self._lifecycle.shut_down())
        # Members who still wait hear at once that they have to look for another coordinator.
        self.groups.close()
        await self._stop_listeners(controller=False)
        if self.broker_server is not None and self.broker_server.replication is not None:
            await self.broker_server.replication.close()
        if self._producer_ids is not None:
            await self._producer_ids.close()
        # The mark of a clean shutdown, which the log dirs get last, may stand for the metadata log too.
        if self._in_quorum:
            await self.quorum.resign_and_close()
        await self._stop_listeners(controller=True)
        await self._peers.close()
        if self._monitoring is not None:
            await self._monitoring.stop()
        await self._running.end()
        if self._running.is_sound:
            await self._close_dirs()
        self._logger.info("stopped", clean=self._running.is_sound)

    async def _stop_listeners(self, *, controller: bool) -> None:
        for listener in self.listeners:
            if listener.config.controller == controller:
                await listener.stop()

    async def _close_dirs(self) -> None:
        epoch = UNKNOWN_EPOCH if self._lifecycle is None else self._lifecycle.broker_epoch
        if epoch == UNKNOWN_EPOCH:
            epoch = self._previous_epoch
        server = self.broker_server
        hosted = server.replicas.log_dirs if server is not None and server.is_hosting else []
        if server is not None and hosted:
            await server.replicas.close(epoch)
        for log_dir in self._log_dirs:
            if log_dir not in hosted and self._is_in_order(log_dir):
                await self._disk.offload(partial(mark_clean, self._disk, log_dir, epoch), log_dir.path)

    def _is_in_order(self, log_dir: LogDir) -> bool:
        """Whether a log dir whose replicas were not opened may be marked: as it was found, but for the metadata log in
        it."""
        is_opened = self._in_quorum and log_dir.path == self.config.metadata_log_dir
        return log_dir.clean or (is_opened and self.broker_server is None)


def _not_controller(response: Any) -> int:
    """NOT_CONTROLLER if the response says that anywhere."""
    return ErrorCode.NOT_CONTROLLER if contains_error(response, ErrorCode.NOT_CONTROLLER) else ErrorCode.NONE
