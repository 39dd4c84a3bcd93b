"""The dependencies of a node's group shards: its configuration, the metadata it has acted on, randomness, the groups'
own settings.

Always true: a group's own settings are kept within the bounds of this broker, whatever they were when they were set.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from strandline.config.node import NodeConfig
from strandline.groups.dependencies import GroupConfig
from strandline.metadata.image import GROUP_RESOURCE, MetadataImage


class NodeGroupDependencies:
    def __init__(
        self, config: Callable[[], NodeConfig], applied: Callable[[], MetadataImage], randomness: random.Random
    ) -> None:
        """`applied`: the image that is being applied.
        A partition is led by what it says, before clients are shown it.
        """
        self._config = config
        self._applied = applied
        self.randomness = randomness

    @property
    def config(self) -> NodeConfig:
        return self._config()

    @property
    def image(self) -> MetadataImage:
        return self._applied()

    def group_config(self, group_id: str) -> GroupConfig:
        config, own = self._config(), self.image.config(GROUP_RESOURCE, group_id)
        return GroupConfig(
            _within(
                own.get("consumer.session.timeout.ms"),
                config.group_consumer_session_timeout_ms,
                config.group_consumer_min_session_timeout_ms,
                config.group_consumer_max_session_timeout_ms,
            ),
            _within(
                own.get("consumer.heartbeat.interval.ms"),
                config.group_consumer_heartbeat_interval_ms,
                config.group_consumer_min_heartbeat_interval_ms,
                config.group_consumer_max_heartbeat_interval_ms,
            ),
            _within(
                own.get("consumer.assignment.interval.ms"),
                config.group_consumer_assignment_interval_ms,
                config.group_consumer_min_assignment_interval_ms,
                config.group_consumer_max_assignment_interval_ms,
            ),
        )


def _within(own: str | None, default: int, least: int, most: int) -> int:
    return default if own is None else min(max(int(own), least), most)
