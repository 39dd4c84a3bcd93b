"""Topic keys: what one topic may say for itself, and the broker keys that speak for it when it does not.

Always true: the first synonym that is set on the broker gives the default; a topic key without a synonym has a fixed default.
What Kafka takes although it has no effect is stored with a warning: a tool that copies a topic's configuration sends it as a
whole, and would lose all of it for one key.
"""

from __future__ import annotations

from strandline.config.key import CLUSTER_WIDE, MEDIUM, Key, Synonym, Treatment, Where, refused, table
from strandline.config.types import (
    AT_LEAST_0,
    AT_LEAST_1,
    BOOLEAN,
    DAY_MS,
    DOUBLE,
    GIB,
    HOUR_MS,
    INT,
    KIB,
    LIST,
    LONG,
    LONG_MAX,
    MIB,
    MINUTE_MS,
    STRING,
    Check,
    ListOf,
    NumberRange,
    OneOf,
    ThrottledReplicas,
    Type,
    Value,
)

# fmt: off
HONOURED = (
    Key("cleanup.policy", LIST, ("delete",), ListOf(("compact", "delete")), MEDIUM, CLUSTER_WIDE,
        "What happens to old segments: delete them, compact them to the last value of each key, both, or (empty) nothing.",
        where=Where.TOPIC, synonyms=(("log.cleanup.policy", 1),)),
    Key("compression.type", STRING,
        "producer", OneOf(("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")), MEDIUM, CLUSTER_WIDE,
        "How batches are compressed on disk; producer keeps what the producer chose.",
        where=Where.TOPIC, synonyms=(("compression.type", 1),)),
    Key("compression.gzip.level", INT, -1, NumberRange(1, 9, also=-1), MEDIUM, CLUSTER_WIDE,
        "The level when the broker compresses with gzip.",
        where=Where.TOPIC, synonyms=(("compression.gzip.level", 1),)),
    Key("compression.lz4.level", INT, 9, NumberRange(1, 17), MEDIUM, CLUSTER_WIDE,
        "The level when the broker compresses with lz4.",
        where=Where.TOPIC, synonyms=(("compression.lz4.level", 1),)),
    Key("compression.zstd.level", INT, 3, NumberRange(-131072, 22), MEDIUM, CLUSTER_WIDE,
        "The level when the broker compresses with zstd.",
        where=Where.TOPIC, synonyms=(("compression.zstd.level", 1),)),
    Key("delete.retention.ms", LONG, DAY_MS, AT_LEAST_0, MEDIUM, CLUSTER_WIDE,
        "How long a compacted topic keeps a tombstone after its last cleaning.",
        where=Where.TOPIC, synonyms=(("log.cleaner.delete.retention.ms", 1),)),
    Key("file.delete.delay.ms", LONG, MINUTE_MS, AT_LEAST_0, MEDIUM, CLUSTER_WIDE,
        "How long a deleted segment keeps its file, for readers that are still in it.",
        where=Where.TOPIC, synonyms=(("log.segment.delete.delay.ms", 1),)),
    Key("flush.messages", LONG, LONG_MAX, AT_LEAST_1, MEDIUM, CLUSTER_WIDE,
        "A partition is synced to the device after this many records.",
        where=Where.TOPIC, synonyms=(("log.flush.interval.messages", 1),)),
    Key("flush.ms", LONG, LONG_MAX, AT_LEAST_0, MEDIUM, CLUSTER_WIDE,
        "A partition is synced when unsynced records are this old.",
        where=Where.TOPIC, synonyms=(("log.flush.interval.ms", 1), ("log.flush.scheduler.interval.ms", 1),)),
    Key("index.interval.bytes", INT, 4 * KIB, AT_LEAST_0, MEDIUM, CLUSTER_WIDE,
        "An index entry is written after this many bytes of records.",
        where=Where.TOPIC, synonyms=(("log.index.interval.bytes", 1),)),
    Key("internal.segment.bytes", INT, None, AT_LEAST_1, MEDIUM, CLUSTER_WIDE,
        "Overrides segment.bytes without a lower bound, for tests.",
        where=Where.TOPIC, internal=True),
    Key("follower.replication.throttled.replicas", LIST, (), ThrottledReplicas(), MEDIUM, CLUSTER_WIDE,
        "Whose copying follower.replication.throttled.rate binds on the follower's side: partition:broker,..., or * for all.",
        where=Where.TOPIC),
    Key("leader.replication.throttled.replicas", LIST, (), ThrottledReplicas(), MEDIUM, CLUSTER_WIDE,
        "Whose copying leader.replication.throttled.rate binds on the leader's side: partition:broker,..., or * for all.",
        where=Where.TOPIC),
    Key("max.compaction.lag.ms", LONG, LONG_MAX, AT_LEAST_1, MEDIUM, CLUSTER_WIDE,
        "A record stays uncompacted for at most this long.",
        where=Where.TOPIC, synonyms=(("log.cleaner.max.compaction.lag.ms", 1),)),
    Key("max.message.bytes", INT, 1_048_588, AT_LEAST_0, MEDIUM, CLUSTER_WIDE,
        "A batch larger than this, after compression, is refused.",
        where=Where.TOPIC, synonyms=(("message.max.bytes", 1),)),
    Key("message.timestamp.after.max.ms", LONG, HOUR_MS, AT_LEAST_0, MEDIUM, CLUSTER_WIDE,
        "A record whose timestamp is further in the future is refused.",
        where=Where.TOPIC, synonyms=(("log.message.timestamp.after.max.ms", 1),)),
    Key("message.timestamp.before.max.ms", LONG, LONG_MAX, AT_LEAST_0, MEDIUM, CLUSTER_WIDE,
        "A record whose timestamp is further in the past is refused.",
        where=Where.TOPIC, synonyms=(("log.message.timestamp.before.max.ms", 1),)),
    Key("message.timestamp.type", STRING, "CreateTime", OneOf(("CreateTime", "LogAppendTime")), MEDIUM, CLUSTER_WIDE,
        "Whether a record carries the time it was made (CreateTime) or the time it was appended (LogAppendTime).",
        where=Where.TOPIC, synonyms=(("log.message.timestamp.type", 1),)),
    Key("min.cleanable.dirty.ratio", DOUBLE, 0.5, NumberRange(0, 1), MEDIUM, CLUSTER_WIDE,
        "A log is compacted when at least this part of it is dirty.",
        where=Where.TOPIC, synonyms=(("log.cleaner.min.cleanable.ratio", 1),)),
    Key("min.compaction.lag.ms", LONG, 0, AT_LEAST_0, MEDIUM, CLUSTER_WIDE,
        "A record stays uncompacted for at least this long.",
        where=Where.TOPIC, synonyms=(("log.cleaner.min.compaction.lag.ms", 1),)),
    Key("min.insync.replicas", INT, 1, AT_LEAST_1, MEDIUM, CLUSTER_WIDE,
        "A write with acks=all is refused while fewer replicas than this are in sync.",
        where=Where.TOPIC, synonyms=(("min.insync.replicas", 1),)),
    Key("retention.bytes", LONG, -1, None, MEDIUM, CLUSTER_WIDE,
        "The oldest segments of a partition are deleted while it holds more than this; -1 for no limit.",
        where=Where.TOPIC, synonyms=(("log.retention.bytes", 1),)),
    Key("retention.ms", LONG, 7 * DAY_MS, NumberRange(-1), MEDIUM, CLUSTER_WIDE,
        "Segments whose newest record is older are deleted; -1 keeps them for ever.",
        where=Where.TOPIC,
        synonyms=(("log.retention.ms", 1), ("log.retention.minutes", MINUTE_MS), ("log.retention.hours", HOUR_MS),)),
    Key("segment.bytes", INT, GIB, NumberRange(MIB), MEDIUM, CLUSTER_WIDE,
        "A segment is closed before it would grow past this size.",
        where=Where.TOPIC, synonyms=(("log.segment.bytes", 1),)),
    Key("segment.index.bytes", INT, 10 * MIB, NumberRange(4), MEDIUM, CLUSTER_WIDE,
        "A segment is closed when one of its indexes has reached this size.",
        where=Where.TOPIC, synonyms=(("log.index.size.max.bytes", 1),)),
    Key("segment.jitter.ms", LONG, 0, AT_LEAST_0, MEDIUM, CLUSTER_WIDE,
        "At most this much is randomly taken off segment.ms, so that segments do not all close at once.",
        where=Where.TOPIC, synonyms=(("log.roll.jitter.ms", 1), ("log.roll.jitter.hours", HOUR_MS),)),
    Key("segment.ms", LONG, 7 * DAY_MS, AT_LEAST_1, MEDIUM, CLUSTER_WIDE,
        "A segment is closed when its first record is this old.",
        where=Where.TOPIC, synonyms=(("log.roll.ms", 1), ("log.roll.hours", HOUR_MS),)),
    Key("unclean.leader.election.enable", BOOLEAN, False, None, MEDIUM, CLUSTER_WIDE,
        "Whether a replica that was not in sync may lead when no other can; it loses records.",
        where=Where.TOPIC, synonyms=(("unclean.leader.election.enable", 1),)),
)

TIERED_STORAGE = refused("Tiered storage is not built; all data stays in log.dirs.", (
    ("remote.storage.enable", BOOLEAN, False, None, MEDIUM),
), Where.TOPIC)


def _ignored(
    name: str, type_: Type, default: Value, check: Check | None, doc: str, synonyms: tuple[Synonym, ...] = ()
) -> Key:
    return Key(name, type_, default, check, MEDIUM, CLUSTER_WIDE, doc, Treatment.IGNORED, Where.TOPIC, synonyms)


WITHOUT_TIERED_STORAGE = "It is for tiered storage, which is off for every topic; all data stays in log.dirs."
IGNORED = (
    _ignored("remote.log.copy.disable", BOOLEAN, False, None, WITHOUT_TIERED_STORAGE),
    _ignored("remote.log.delete.on.disable", BOOLEAN, False, None, WITHOUT_TIERED_STORAGE),
    _ignored("local.retention.ms", LONG, -2, NumberRange(-2), WITHOUT_TIERED_STORAGE, (("log.local.retention.ms", 1),)),
    _ignored("local.retention.bytes", LONG, -2, NumberRange(-2), WITHOUT_TIERED_STORAGE, (("log.local.retention.bytes", 1),)),
    _ignored("preallocate", BOOLEAN, False, None,
             "Segments grow as they are written, so there is nothing to preallocate.", (("log.preallocate", 1),)),
)
"""Accepted with a warning."""

AFTER_4_3 = tuple(
    key._replace(internal=True)
    for key in refused("It came after Kafka 4.3, and the part that it belongs to is not built.", (
        ("errors.deadletterqueue.group.enable", BOOLEAN, None, None, MEDIUM),
        ("remote.copy.lag.bytes", LONG, None, None, MEDIUM),
        ("remote.copy.lag.ms", LONG, None, None, MEDIUM),
    ), Where.TOPIC)
)
# fmt: on

TOPIC = table(HONOURED, IGNORED, TIERED_STORAGE, AFTER_4_3)
"""Every topic key by name."""
