"""The metadata of the cluster as this node shows it to clients: the newest image that the node has acted on.

Always true: `image` only moves forward.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from strandline.metadata.image import MetadataImage


class MetadataView(Protocol):
    def image(self) -> MetadataImage:
        """The newest metadata that this node has acted on."""

    async def until(self, fits: Callable[[MetadataImage], bool], timeout_s: float) -> None:
        """Wait until the image fits, at most so many seconds."""

    def suspects(self) -> frozenset[int]:
        """Brokers to which this node has just lost a connection."""

    def departed(self) -> frozenset[int]:
        """Brokers that were fenced a moment ago."""
