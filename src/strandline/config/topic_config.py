"""The values that count for one topic.

Always true: it never changes; a topic whose overrides or whose broker's defaults change gets a new one. Attributes are plain
slots, because every append and every fetch reads some.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

from strandline.config.layers import DEFAULTS, EMPTY, Layers
from strandline.config.topic import TOPIC
from strandline.config.types import Value, Values


@dataclass(frozen=True, slots=True)
class TopicConfig:
    """Named as Kafka's keys, with underscores. -1 in a retention means without end."""

    cleanup_policy: tuple[str, ...]
    compact: bool
    delete: bool
    segment_bytes: int
    segment_ms: int
    segment_jitter_ms: int
    segment_index_bytes: int
    index_interval_bytes: int
    retention_bytes: int
    retention_ms: int
    file_delete_delay_ms: int
    flush_messages: int
    flush_ms: int
    max_message_bytes: int
    compression_type: str
    compression_gzip_level: int
    compression_lz4_level: int
    compression_zstd_level: int
    message_timestamp_type: str
    message_timestamp_before_max_ms: int
    message_timestamp_after_max_ms: int
    log_append_time: bool
    min_insync_replicas: int
    unclean_leader_election_enable: bool
    leader_replication_throttled_replicas: tuple[str, ...]
    follower_replication_throttled_replicas: tuple[str, ...]
    min_cleanable_dirty_ratio: float
    delete_retention_ms: int
    min_compaction_lag_ms: int
    max_compaction_lag_ms: int

    @classmethod
    def build(cls, layers: Layers = DEFAULTS, overrides: Mapping[str, str] = EMPTY) -> TopicConfig:
        """From the broker's layers and the topic's own overrides, which were checked when they were set."""
        values = effective(layers, overrides)
        known: Values = {field: values[name] for field, name in _KEY_OF.items()}
        policy = known["cleanup_policy"]
        known["compact"] = "compact" in policy
        known["delete"] = "delete" in policy
        known["log_append_time"] = known["message_timestamp_type"] == "LogAppendTime"
        if values["internal.segment.bytes"] is not None:
            known["segment_bytes"] = values["internal.segment.bytes"]
        return cls(**known)


def effective(layers: Layers, overrides: Mapping[str, str]) -> dict[str, Value]:
    """The value of every topic key. A name that is no key is passed over: another version may have set it."""
    return {
        name: key.parse(overrides[name]) if name in overrides else layers.topic_default(key)
        for name, key in TOPIC.items()
    }


_KEY_OF = {
    field.name: field.name.replace("_", ".") for field in fields(TopicConfig) if field.name.replace("_", ".") in TOPIC
}
