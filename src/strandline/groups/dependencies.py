"""The dependencies of a group shard on its node: configuration, metadata, randomness.

Always true: `config` and `image` are the newest that the node has acted on.
"""

from __future__ import annotations

import random
from typing import NamedTuple, Protocol

from strandline.config.node import NodeConfig
from strandline.metadata.image import MetadataImage


class GroupConfig(NamedTuple):
    """What a group of the consumer protocol is given: the broker's values, or the group's own."""

    session_timeout_ms: int
    heartbeat_interval_ms: int
    assignment_interval_ms: int


class GroupDependencies(Protocol):
    @property
    def config(self) -> NodeConfig: ...

    @property
    def image(self) -> MetadataImage: ...

    @property
    def randomness(self) -> random.Random: ...

    def group_config(self, group_id: str) -> GroupConfig: ...
