"""What newly committed metadata asks of this node: the controller hears of it at once, the broker acts on it, clients see it.

Always true: images are acted on one after the other, in their order; of several that came meanwhile only the newest
counts. Clients never see an image before the broker has acted on it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Protocol

from strandline.metadata.image import MetadataImage
from strandline.node.broker_server import BrokerServer
from strandline.node.controller_server import ControllerServer
from strandline.node.events import Events
from strandline.node.published_metadata import PublishedMetadata
from strandline.node.quorum.quorum import Quorum
from strandline.node.tasks import to_the_end


class ImageFollower(Protocol):
    """A part that acts on an image once the broker has."""

    def image_applied(self, image: MetadataImage) -> None: ...


class MetadataPublisher:
    def __init__(
        self,
        node_id: int,
        quorum: Quorum,
        published: PublishedMetadata,
        controller_server: ControllerServer | None,
        broker_server: BrokerServer | None,
        coordinators: Sequence[ImageFollower],
        events: Events,
    ) -> None:
        self._node_id = node_id
        self._quorum = quorum
        self._published = published
        self._controller_server = controller_server
        self._broker_server = broker_server
        self._coordinators = coordinators
        self._events = events
        self._committed = asyncio.Event()
        self._is_live = False

    def go_live(self) -> None:
        """The node has started: what changes from here on happens now, and is worth an event."""
        self._is_live = True

    async def committed(self, image: MetadataImage) -> None:
        """There is a newer image. Opening a thousand logs takes long, and the controller must go on deciding meanwhile: a
        broker acts on its own."""
        if self._controller_server is not None:
            self._controller_server.committed(image)
        self._committed.set()

    async def run(self) -> None:
        """For as long as the node lives."""
        server = self._broker_server
        while True:
            await self._committed.wait()
            self._committed.clear()
            image = self._quorum.committed
            if server is not None:
                await to_the_end(server.apply(image, partial(self._published.show, image)))
            self._published.show(image)
            for coordinator in self._coordinators:
                coordinator.image_applied(image)
            self._events.applied(image, self._node_id, live=self._is_live)
            if server is not None:
                server.lifecycle.metadata_applied(image.end_offset - 1)
            self._published.watch.changed()
