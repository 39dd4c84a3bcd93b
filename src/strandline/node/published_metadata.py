"""The metadata that a node's clients see: the newest image that the node has acted on.

Always true: it only moves forward; a waiting request is completed (`until`) when the image has moved to one that fits;
each is looked at once per new image, and whenever a broker comes under suspicion.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from strandline.metadata.image import MetadataImage
from strandline.node.image_watch import ImageWatch
from strandline.node.suspects import Suspects


class PublishedMetadata:
    def __init__(self) -> None:
        self._image = MetadataImage()
        self._suspects = Suspects(asyncio.get_running_loop().time)
        self.watch = ImageWatch(self.image)

    # What the APIs see

    def image(self) -> MetadataImage:
        return self._image

    async def until(self, fits: Callable[[MetadataImage], bool], timeout_s: float) -> None:
        await self.watch.until(fits, timeout_s)

    def suspects(self) -> frozenset[int]:
        """Brokers to which this node has just lost a connection."""
        return self._suspects.now()

    def departed(self) -> frozenset[int]:
        """Brokers that were fenced a moment ago."""
        return self._suspects.departed()

    # What the node notes

    def show(self, image: MetadataImage) -> None:
        """From now on this is the image that clients see."""
        assert image.end_offset >= self._image.end_offset, "clients never see older metadata than before"
        before, self._image = self._image, image
        if before.brokers is not image.brokers:
            for broker_id, broker in image.brokers.items():
                if broker.fenced and broker_id in before.brokers and not before.brokers[broker_id].fenced:
                    self._suspects.fenced(broker_id)

    def suspect(self, node_id: int) -> None:
        """A connection to that node closed."""
        self._suspects.closed(node_id)
        self.watch.changed()

    def reached(self, node_id: int) -> None:
        """A connection to that node is open."""
        self._suspects.reached(node_id)
