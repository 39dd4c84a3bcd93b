"""The image that a node's clients see: the newest one that the node has acted on.

Always true: it only moves forward; whoever waits for it (`watch`) is looked at once it has moved, or once somebody is suspected.
"""

from __future__ import annotations

import asyncio

from strandline.metadata.image import MetadataImage
from strandline.node.image_watch import ImageWatch
from strandline.node.suspects import Suspects


class Published:
    def __init__(self) -> None:
        self._image = MetadataImage()
        self.watch = ImageWatch(self.image)
        self.suspects = Suspects(asyncio.get_running_loop().time)

    def image(self) -> MetadataImage:
        return self._image

    def show(self, image: MetadataImage) -> None:
        """From now on this is the image that clients see."""
        before, self._image = self._image, image
        if before.brokers is not image.brokers:
            for broker_id, broker in image.brokers.items():
                if broker.fenced and broker_id in before.brokers and not before.brokers[broker_id].fenced:
                    self.suspects.fenced(broker_id)

    def suspect(self, node_id: int) -> None:
        """A connection to that node closed."""
        self.suspects.closed(node_id)
        self.watch.changed()
