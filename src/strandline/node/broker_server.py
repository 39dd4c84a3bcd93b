"""The broker in a node: it registers, hosts what the metadata assigns to it, and lets clients in.

Always true: nothing on the log dirs is judged by metadata older than this broker's registration, so a log is never
taken for a stray one because the node has not caught up; clients are let in only when every local log is open and the
broker is unfenced.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine
from typing import Any

from strandline.config.dynamic import DynamicConfig
from strandline.metadata.image import BROKER_RESOURCE, CLUSTER_DEFAULT, MetadataImage
from strandline.node.broker_lifecycle import BrokerLifecycle
from strandline.node.cleaner import Cleaner
from strandline.node.image_watch import ImageWatch
from strandline.node.log_dirs import LogDir
from strandline.node.logger import Logger
from strandline.node.maintenance import Maintenance
from strandline.node.replicas import Replicas
from strandline.node.replication import Replication
from strandline.node.tasks import to_the_end
from strandline.ports import Clock, Disk


class BrokerServer:
    def __init__(
        self,
        config: DynamicConfig,
        disk: Disk,
        clock: Clock,
        randomness: random.Random,
        logger: Logger,
        log_dirs: list[LogDir],
        watch: ImageWatch,
        on_failed: Callable[[str], None],
        on_task_ended: Callable[[asyncio.Task[None]], None],
    ) -> None:
        self._config = config
        self.replicas = Replicas(config, disk, clock, randomness, logger, log_dirs, on_failed, on_task_ended)
        self.cleaner = Cleaner(self.replicas, disk, clock, logger, on_task_ended)
        self.lifecycle: BrokerLifecycle
        self.replication: Replication | None = None
        self._disk = disk
        self._clock = clock
        self._logger = logger
        self._watch = watch
        self._applying = asyncio.Lock()
        self.is_hosting = False
        """The log dirs were looked through: images are applied as they come."""

    async def start(
        self, lifecycle: BrokerLifecycle, replication: Replication, image: Callable[[], MetadataImage]
    ) -> None:
        """Register, catch up, open the logs, and be unfenced."""
        self.lifecycle = lifecycle
        self.replication = replication
        self.replicas.on_dir_failed = lambda log_dir: lifecycle.dir_failed(log_dir.directory_id)
        await lifecycle.register()
        await self._watch.until(lambda image: image.end_offset > lifecycle.broker_epoch)
        await to_the_end(self._begin_hosting(image))
        await lifecycle.unfence()

    async def _begin_hosting(self, image: Callable[[], MetadataImage]) -> None:
        async with self._applying:
            caught_up = image()
            for log_dir, error in await self._disk.offload(lambda: self.replicas.find(caught_up), ""):
                self.replicas.dir_failed(log_dir, error)
            await self._apply(caught_up)
            self.is_hosting = True
        await self.apply(image())

    async def apply(self, image: MetadataImage, publish: Callable[[], None] = lambda: None) -> None:
        """Do what a newly committed image asks of this node."""
        if self.is_hosting:
            async with self._applying:
                await self._apply(image, publish)

    async def _apply(self, image: MetadataImage, publish: Callable[[], None] = lambda: None) -> None:
        defaults = image.config(BROKER_RESOURCE, CLUSTER_DEFAULT)
        own = image.config(BROKER_RESOURCE, str(self._config.current.node_id))
        if self._config.update(defaults, own):
            self.replicas.config_changed()
            if self.replication is not None:
                self.replication.throttles.config_changed()
        await self.replicas.apply(image, publish)
        self.cleaner.applied(image)

    def jobs(self) -> list[Coroutine[Any, Any, None]]:
        replication = [] if self.replication is None else self.replication.jobs()
        maintenance = Maintenance(self.replicas, self._clock, self._logger, self.cleaner.is_cleaning)
        return [*maintenance.jobs(), self.cleaner.run(), *replication]
