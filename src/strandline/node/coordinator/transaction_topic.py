"""`__transaction_state`: its name, and how it is created (TXN-T5).

Always true: it is compacted and never compressed, and no leader is elected that may lack a record of it.
"""

from __future__ import annotations

from strandline.config.node import NodeConfig
from strandline.node.coordinator.topic import TopicSettings

TRANSACTION_STATE = "__transaction_state"


def settings(config: NodeConfig) -> TopicSettings:
    return TopicSettings(
        config.transaction_state_log_num_partitions,
        config.transaction_state_log_replication_factor,
        {
            "cleanup.policy": "compact",
            "compression.type": "uncompressed",
            "min.insync.replicas": str(config.transaction_state_log_min_isr),
            "segment.bytes": str(config.transaction_state_log_segment_bytes),
            "unclean.leader.election.enable": "false",
        },
    )
