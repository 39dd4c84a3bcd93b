"""One node: its parts, how it starts, how it stops.

Always true: clients are let in only when the metadata is loaded, every local log is open and the broker is registered and
unfenced; a failed metadata log ends the node, because nothing it says afterwards could be trusted.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Coroutine
from dataclasses import replace
from typing import Any

from strandline.api.api_versions import SUPPORTED_FEATURES
from strandline.api.context import Broker
from strandline.api.fetch_sessions import FetchSessions
from strandline.api.topic_bytes import TopicBytes
from strandline.config.errors import ConfigError
from strandline.config.node import NodeConfig
from strandline.controller import producer_ids
from strandline.controller.brokers import Registration, register_alone
from strandline.ids import Uuid
from strandline.metadata.image import BROKER_RESOURCE, CLUSTER_DEFAULT, Endpoint, MetadataImage
from strandline.node.listener import Listener
from strandline.node.log_dirs import open_dirs
from strandline.node.maintenance import Maintenance
from strandline.node.metadata_log import MetadataLog, describe, metadata_dir
from strandline.node.read_budget import ReadBudget
from strandline.node.replicas import Logger, Replicas, directory_ids
from strandline.ports import Clock, Disk

SECURITY_PROTOCOLS = {"PLAINTEXT": 0, "SSL": 1, "SASL_PLAINTEXT": 2, "SASL_SSL": 3}


class NodeFailed(Exception):
    """The node can't go on; says why."""


class Node:
    def __init__(self, config: NodeConfig, disk: Disk, clock: Clock, randomness: random.Random, logger: Logger) -> None:
        self.config = config
        self._disk = disk
        self._clock = clock
        self._randomness = randomness
        self._logger = logger.bind(node=config.node_id)
        self._tasks: list[asyncio.Task[None]] = []
        self._failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._producer_ids = iter(range(0))
        self._producer_id_block = asyncio.Lock()
        self.broker_epoch = -1
        self.listeners: list[Listener] = []
        self.metadata: MetadataLog
        self.replicas: Replicas
        self.broker: Broker

    # Starting

    async def start(self) -> None:
        _check_alone(self.config)
        paths = list(dict.fromkeys((*self.config.log_dirs, self.config.metadata_log_dir)))
        cluster_id, log_dirs = await self._disk.offload(lambda: open_dirs(self._disk, paths, self.config.node_id))
        metadata_log_dir = next(log_dir for log_dir in log_dirs if log_dir.path == self.config.metadata_log_dir)
        self.metadata = MetadataLog(
            self._disk, metadata_dir(metadata_log_dir.path), self.config.node_id, self._clock, self._fail
        )
        topic_config = replace(
            self.config.topic_defaults,
            segment_bytes=self.config.metadata_log_segment_bytes,
            segment_ms=self.config.metadata_log_segment_ms,
            flush_messages=1,
        )
        await self.metadata.open(topic_config, clean=metadata_log_dir.clean)
        if self.metadata.truncated_bytes:
            self._logger.warning(
                "metadata log cut at its first bad batch", truncated_bytes=self.metadata.truncated_bytes
            )
        data_dirs = [log_dir for log_dir in log_dirs if log_dir.path in self.config.log_dirs]
        self.replicas = Replicas(
            self.config,
            self._disk,
            self._clock,
            self._randomness,
            self._logger,
            data_dirs,
            self._fail,
            self._ended,
        )
        self.broker = self._make_broker(cluster_id)
        image = self.metadata.committed
        await self._disk.offload(lambda: self.replicas.find(image))
        await self._apply(image)
        self._spawn(self.metadata.run(self._apply))
        budget = ReadBudget(self.config.queued_max_request_bytes)
        self.listeners = [Listener(listener, self.broker, self._logger, budget) for listener in self.config.listeners]
        for listener in self.listeners:
            await listener.bind()
        await self._register()
        for listener in self.listeners:
            await listener.serve()
            self._spawn(listener.close_idle())
        for job in Maintenance(self.replicas, self._clock, self._logger).jobs():
            self._spawn(job)
        self._logger.info(
            "started",
            cluster_id=cluster_id,
            clean=all(log_dir.clean for log_dir in log_dirs),
            **describe(self.metadata.committed),
        )

    def _make_broker(self, cluster_id: str) -> Broker:
        slots = self.config.max_incremental_fetch_session_cache_slots
        return Broker(
            config=self.config,
            cluster_id=cluster_id,
            disk=self._disk,
            clock=self._clock,
            randomness=self._randomness,
            fetch_sessions=FetchSessions(slots, self._randomness),
            topic_bytes=TopicBytes(),
            image=lambda: self.metadata.committed,
            decide=self.metadata.decide,
            partitions=self.replicas.partitions,
            partitions_by_id=self.replicas.partitions_by_id,
            log_dirs=lambda: {log_dir.path: log_dir.online for log_dir in self.replicas.log_dirs},
            on_storage_error=self.replicas.storage_error,
            allocate_producer_id=self._allocate_producer_id,
        )

    async def _register(self) -> None:
        """Tell the cluster who and where we are; with one node, that is all it takes to be unfenced."""
        wanted = Registration(
            self.config.node_id,
            Uuid.draw(self._randomness),
            [
                Endpoint(
                    listener.config.name,
                    listener.config.advertised_host,
                    listener.config.advertised_port or listener.port,
                    SECURITY_PROTOCOLS[listener.config.protocol],
                )
                for listener in self.listeners
                if not listener.config.controller
            ],
            SUPPORTED_FEATURES,
            directory_ids(self.replicas.log_dirs),
            self.config.broker_rack,
        )
        self.broker_epoch = await self.metadata.decide(lambda image: register_alone(image, wanted))

    async def _apply(self, image: MetadataImage) -> None:
        """Do what a newly committed image asks of this node."""
        defaults = image.config(BROKER_RESOURCE, CLUSTER_DEFAULT)
        own = image.config(BROKER_RESOURCE, str(self.config.node_id))
        if (defaults, own) != (self.config.layers.dynamic_default, self.config.layers.dynamic_broker):
            self.config = self.config.with_dynamic(defaults, own)
            self.replicas.use_config(self.config)
            self.broker.config = self.config
        await self.replicas.apply(image)

    async def _allocate_producer_id(self) -> int:
        async with self._producer_id_block:
            producer_id = next(self._producer_ids, None)
            if producer_id is None:
                block = await self.metadata.decide(
                    lambda image: producer_ids.allocate(image, self.config.node_id, self.broker_epoch)
                )
                self._producer_ids = iter(block)
                producer_id = next(self._producer_ids)
            return producer_id

    # Running

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        task.add_done_callback(self._ended)
        self._tasks.append(task)

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._logger.error("a part of the node failed", exc_info=error)
            self._fail(str(error))

    def _fail(self, reason: str) -> None:
        if not self._failed.done():
            self._failed.set_exception(NodeFailed(reason))

    async def failed(self) -> None:
        """Returns never; raises NodeFailed once the node can't go on."""
        await asyncio.shield(self._failed)

    # Stopping

    async def stop(self) -> None:
        """Let nobody in, put everything on the device, leave word that it is."""
        for listener in self.listeners:
            await listener.stop()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        failed = self._failed.done()
        if not failed:
            # The mark of a clean shutdown, which the data dirs get last, may stand for the metadata log too.
            await self._disk.offload(self.metadata.close)
            await self.replicas.close(self.broker_epoch)
        self._failed.cancel()
        self._logger.info("stopped", clean=not failed)


def _check_alone(config: NodeConfig) -> None:
    """Refuse what a quorum of one can't be."""
    if not (config.broker and config.controller):
        raise ConfigError(
            "process.roles must be broker,controller: until there is a quorum of several nodes, one node is both"
        )
    others = [voter.id for voter in config.quorum_voters if voter.id != config.node_id]
    if others:
        raise ConfigError(
            f"controller.quorum.voters names other nodes ({', '.join(map(str, others))}), and a quorum of several is not there "
            "yet: name only this node"
        )
