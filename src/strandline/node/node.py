"""One node: how it starts, what it is while it runs, how it stops.

A node is a broker, a controller, or both (`process.roles`). Either way it follows the metadata log; a controller that
votes helps to write it. Its parts are made by `assembly.py` once its log dirs are open.

Always true: a failed metadata log ends the node, because nothing it says afterwards could be trusted; a node that stops
hands over what it leads before it leaves: its partitions first, then the quorum; one that can't start gives back what it
had, and its log dirs are as clean as they were.
"""

from __future__ import annotations

import asyncio
import random
from functools import partial

from strandline.api.context import NodeContext
from strandline.config.dynamic import DynamicConfig
from strandline.config.node import NodeConfig
from strandline.ids import Uuid
from strandline.node import peer_tls
from strandline.node.assembly import NodeGround, NodeParts, assemble
from strandline.node.broker_lifecycle import LifecycleFailed, previous_broker_epoch
from strandline.node.broker_server import BrokerServer
from strandline.node.broker_state import UNKNOWN_EPOCH
from strandline.node.connection_counts import UNLIMITED
from strandline.node.controller_registration import keep_registered
from strandline.node.controller_server import ControllerServer
from strandline.node.log_dirs import LogDir, mark_clean, open_dirs, read_bootstrap
from strandline.node.logger import Logger
from strandline.node.observation.node import NodeObservation
from strandline.node.quorum.metadata_log import metadata_dir
from strandline.node.quorum.quorum import Quorum
from strandline.node.replicas import Replicas
from strandline.node.running import NodeFailed as NodeFailed
from strandline.node.running import Running
from strandline.ports import Clock, Disk


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
        self._dynamic_config = DynamicConfig(config)
        self._disk = disk
        self._clock = clock
        self._randomness = randomness
        self._logger = logger.bind(node=config.node_id)
        self._connections_max = connections_max
        self._running = Running(self._logger)
        self._incarnation_id = Uuid.draw(randomness)
        self._log_dirs: list[LogDir] = []
        self._previous_epoch = UNKNOWN_EPOCH
        """Under which this broker last stopped in order."""
        self._parts: NodeParts | None = None
        """None until the log dirs are open."""

    # What it is

    @property
    def config(self) -> NodeConfig:
        """The configuration that is in force now."""
        return self._dynamic_config.current

    @property
    def parts(self) -> NodeParts:
        assert self._parts is not None, "a node has its parts once its log dirs are open"
        return self._parts

    @property
    def context(self) -> NodeContext:
        """What its APIs see of it."""
        return self.parts.context

    @property
    def quorum(self) -> Quorum:
        return self.parts.quorum

    @property
    def broker_server(self) -> BrokerServer:
        server = self.parts.broker_server
        assert server is not None, "this node is no broker"
        return server

    @property
    def replicas(self) -> Replicas:
        return self.broker_server.replicas

    def observe(self) -> NodeObservation:
        """A live, read-only view of this node, for judges, stories and monitoring; to be kept as long as the node."""
        return NodeObservation(lambda: self._parts)

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
        # A key that can't be read fails the start before anything is written.
        peer_tls.context_to(self.config, self.config.controller_listener_names[0])
        parts = self._parts = assemble(await self._open_dirs())
        for listener in parts.listeners:
            await listener.bind()
            parts.endpoints.bound(listener.config.name, listener.port)
        await parts.monitoring.start()
        await self._join_quorum(parts)
        if parts.broker_server is not None:
            await self._join_cluster(parts, parts.broker_server)
        parts.publisher.go_live()
        image = parts.quorum.committed
        self._logger.info(
            "started",
            cluster_id=parts.context.cluster_id,
            clean=all(log_dir.clean for log_dir in self._log_dirs),
            topics=len(image.topics),
            partitions=sum(len(topic.partitions) for topic in image.topics.values()),
            metadata_offset=image.end_offset,
        )

    async def _open_dirs(self) -> NodeGround:
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
        return NodeGround(
            self._dynamic_config,
            self._disk,
            self._clock,
            self._randomness,
            self._logger,
            self._running,
            self._incarnation_id,
            self._connections_max,
            cluster_id,
            self._log_dirs,
            self._previous_epoch,
        )

    async def _join_quorum(self, parts: NodeParts) -> None:
        """Follow the metadata log from here on, and take part in its quorum if this is a controller."""
        controller, path = parts.controller_server, self.config.metadata_log_dir
        if controller is not None:
            controller.use_bootstrap(await self._disk.offload(lambda: read_bootstrap(self._disk, path), path))
        self._running.is_sound = False  # until it is known what the metadata log is like
        await parts.quorum.open()
        self._running.is_sound = True
        self._running.spawn(parts.quorum.run(parts.publisher.committed))
        self._running.spawn(parts.publisher.run())
        await self._serve(parts, controller=True)
        if controller is not None:
            self._spawn_controller(parts, controller)

    def _spawn_controller(self, parts: NodeParts, controller: ControllerServer) -> None:
        for job in controller.jobs():
            self._running.spawn(job)
        self._running.spawn(
            keep_registered(
                self.config.node_id,
                self._incarnation_id,
                parts.endpoints.of_controllers(),
                parts.published.watch,
                parts.channel,
                self._logger,
            )
        )

    async def _join_cluster(self, parts: NodeParts, server: BrokerServer) -> None:
        """Register as a broker, open the logs, be unfenced, and let clients in."""
        try:
            await server.start(lambda: parts.quorum.committed)
        except LifecycleFailed as error:
            raise NodeFailed(str(error)) from None
        await self._serve(parts, controller=False)
        for job in server.jobs():
            self._running.spawn(job)

    async def _serve(self, parts: NodeParts, *, controller: bool) -> None:
        for listener in parts.listeners:
            if listener.config.controller == controller:
                await listener.serve()
                self._running.spawn(listener.close_idle())

    async def failed(self) -> None:
        """Returns never; raises NodeFailed once the node can't go on."""
        await self._running.failed()

    # Stopping

    async def stop(self) -> None:
        """Hand over what this node leads, close the connections, put everything on the device, and mark that it is."""
        if self._parts is not None:
            await self._stop_parts(self._parts)
        await self._running.end()
        if self._running.is_sound:
            await self._close_dirs()
        self._logger.info("stopped", clean=self._running.is_sound)

    async def _stop_parts(self, parts: NodeParts) -> None:
        server = parts.broker_server
        if server is not None and server.lifecycle.has_begun:
            lifecycle = server.lifecycle
            await (lifecycle.close() if self._running.failure.done() else lifecycle.shut_down())
        # Members who still wait hear at once that they have to look for another coordinator.
        parts.groups.close()
        parts.transactions.coordinator.close()
        parts.transactions.sender.close()
        await self._stop_listeners(parts, controller=False)
        if server is not None:
            await server.close()
        # The mark of a clean shutdown, which the log dirs get last, may stand for the metadata log too.
        if parts.quorum.is_open:
            await parts.quorum.resign_and_close()
        await self._stop_listeners(parts, controller=True)
        await parts.peers.close()
        await parts.monitoring.stop()

    async def _stop_listeners(self, parts: NodeParts, *, controller: bool) -> None:
        for listener in parts.listeners:
            if listener.config.controller == controller:
                await listener.stop()

    async def _close_dirs(self) -> None:
        server = None if self._parts is None else self._parts.broker_server
        epoch = UNKNOWN_EPOCH if server is None else server.lifecycle.broker_epoch
        if epoch == UNKNOWN_EPOCH:
            epoch = self._previous_epoch
        hosted = server.replicas.log_dirs if server is not None and server.is_hosting else []
        if server is not None and hosted:
            await server.replicas.close(epoch)
        for log_dir in self._log_dirs:
            if log_dir not in hosted and self._is_in_order(log_dir):
                await self._disk.offload(partial(mark_clean, self._disk, log_dir, epoch), log_dir.path)

    def _is_in_order(self, log_dir: LogDir) -> bool:
        """Whether a log dir whose replicas were not opened may be marked: as it was found, but for the metadata log in it."""
        parts = self._parts
        if log_dir.clean or parts is None:
            return log_dir.clean
        holds_metadata = parts.quorum.is_open and log_dir.path == self.config.metadata_log_dir
        return holds_metadata and parts.broker_server is None
