"""The broker in a node: it registers, hosts what the metadata assigns to it, and lets clients in.

Always true: nothing on the log dirs is judged by metadata older than this broker's registration, so a log is never
taken for a stray one because the node has not caught up; clients are let in only when every local log is open and the
broker is unfenced.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from strandline.config.dynamic import DynamicConfig
from strandline.metadata.image import BROKER_RESOURCE, CLUSTER_DEFAULT, MetadataImage
from strandline.node.broker_lifecycle import BrokerLifecycle
from strandline.node.cleaner import Cleaner
from strandline.node.image_watch import ImageWatch
from strandline.node.maintenance import Maintenance
from strandline.node.producer_ids import ProducerIds
from strandline.node.replicas import Replicas
from strandline.node.replication import Replication
from strandline.node.tasks import AsyncWork, to_the_end
from strandline.ports import Disk


class BrokerServer:
    def __init__(
        self,
        dynamic_config: DynamicConfig,
        disk: Disk,
        watch: ImageWatch,
        *,
        replicas: Replicas,
        cleaner: Cleaner,
        maintenance: Maintenance,
        lifecycle: BrokerLifecycle,
        replication: Replication,
        producer_ids: ProducerIds,
    ) -> None:
        self.replicas = replicas
        self.cleaner = cleaner
        self.lifecycle = lifecycle
        self.replication = replication
        self.producer_ids = producer_ids
        self._dynamic_config = dynamic_config
        self._disk = disk
        self._watch = watch
        self._maintenance = maintenance
        self._applying = asyncio.Lock()
        self.is_hosting = False
        """The log dirs were looked through: images are applied as they come."""

    async def start(self, image: Callable[[], MetadataImage]) -> None:
        """Register, catch up, open the logs, and be unfenced. `image` is the newest committed metadata."""
        await self.lifecycle.register()
        await self._watch.until(lambda image: image.end_offset > self.lifecycle.broker_epoch)
        await to_the_end(self._begin_hosting(image))
        await self.lifecycle.unfence()

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
        own = image.config(BROKER_RESOURCE, str(self._dynamic_config.current.node_id))
        if self._dynamic_config.update(defaults, own):
            self.replicas.config_changed()
            self.replication.throttles.config_changed()
        await self.replicas.apply(image, publish)
        self.cleaner.applied(image)

    def jobs(self) -> list[AsyncWork[None]]:
        return [*self._maintenance.jobs(), self.cleaner.run(), *self.replication.jobs()]

    async def close(self) -> None:
        """Nothing is fetched or sent any more."""
        await self.replication.close()
        await self.producer_ids.close()
