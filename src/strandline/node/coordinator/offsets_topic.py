"""`__consumer_offsets`: its name, and how it is created.

Always true: it is compacted, and its records are compressed as the coordinator wrote them.
"""

from __future__ import annotations

from strandline.config.node import NodeConfig
from strandline.node.coordinator.topic import TopicSettings

CONSUMER_OFFSETS = "__consumer_offsets"


def settings(config: NodeConfig) -> TopicSettings:
    return TopicSettings(
        config.offsets_topic_num_partitions,
        config.offsets_topic_replication_factor,
        {
            "cleanup.policy": "compact",
            "compression.type": "producer",
            "segment.bytes": str(config.offsets_topic_segment_bytes),
        },
    )
