"""Broker keys: consumer groups and their offsets.

Always true: the timeout that a member requests is kept within the bounds here.
"""

from __future__ import annotations

from strandline.config.key import CLUSTER_WIDE, HIGH, MEDIUM, READ_ONLY, Key
from strandline.config.types import (
    AT_LEAST_0,
    AT_LEAST_1,
    INT,
    KIB,
    LIST,
    LONG,
    MIB,
    MINUTE_MS,
    SECOND_MS,
    SHORT,
    STRING,
    ListOf,
    NumberRange,
    OneOf,
)

# fmt: off
KEYS = (
    Key("group.coordinator.rebalance.protocols", LIST,
        ("classic", "consumer"), ListOf(("classic", "consumer"), empty_allowed=False), MEDIUM, READ_ONLY,
        "The group protocols that are served."),
    Key("group.initial.rebalance.delay.ms", INT, 3 * SECOND_MS, None, MEDIUM, READ_ONLY,
        "How long an empty group waits for more members before its first rebalance."),
    Key("group.min.session.timeout.ms", INT, 6 * SECOND_MS, AT_LEAST_1, MEDIUM, READ_ONLY,
        "The shortest session timeout a member of a classic group may ask for."),
    Key("group.max.session.timeout.ms", INT, 30 * MINUTE_MS, None, MEDIUM, READ_ONLY,
        "The longest session timeout a member of a classic group may ask for."),
    Key("group.max.size", INT, 2_000, AT_LEAST_1, MEDIUM, READ_ONLY,
        "The most members of a classic group; one more is answered with GROUP_MAX_SIZE_REACHED."),
    Key("group.coordinator.max.groups.per.partition", INT, 5_000, AT_LEAST_1, MEDIUM, READ_ONLY,
        "The most groups of one partition of __consumer_offsets; the first request of one more is answered with "
        "POLICY_VIOLATION."),
    Key("group.config.max.resources", INT, 10_000, AT_LEAST_1, MEDIUM, READ_ONLY,
        "The most groups that have a configuration of their own, whether they exist or not; one more is answered with "
        "POLICY_VIOLATION."),
    Key("group.consumer.session.timeout.ms", INT, 45 * SECOND_MS, AT_LEAST_1, MEDIUM, READ_ONLY,
        "A member of a consumer group that was silent for this long leaves it."),
    Key("group.consumer.min.session.timeout.ms", INT, 45 * SECOND_MS, AT_LEAST_1, MEDIUM, READ_ONLY,
        "The shortest such timeout a group may be given."),
    Key("group.consumer.max.session.timeout.ms", INT, MINUTE_MS, AT_LEAST_1, MEDIUM, READ_ONLY,
        "The longest such timeout a group may be given."),
    Key("group.consumer.heartbeat.interval.ms", INT, 5 * SECOND_MS, AT_LEAST_1, MEDIUM, READ_ONLY,
        "How often the members of a consumer group send heartbeats."),
    Key("group.consumer.min.heartbeat.interval.ms", INT, 5 * SECOND_MS, AT_LEAST_1, MEDIUM, READ_ONLY,
        "The shortest such interval a group may be given."),
    Key("group.consumer.max.heartbeat.interval.ms", INT, 15 * SECOND_MS, AT_LEAST_1, MEDIUM, READ_ONLY,
        "The longest such interval a group may be given."),
    Key("group.consumer.assignment.interval.ms", INT, SECOND_MS, AT_LEAST_0, MEDIUM, CLUSTER_WIDE,
        "The least time between two assignments of a consumer group."),
    Key("group.consumer.min.assignment.interval.ms", INT, 0, AT_LEAST_0, MEDIUM, READ_ONLY,
        "The shortest such interval a group may be given."),
    Key("group.consumer.max.assignment.interval.ms", INT, 15 * SECOND_MS, AT_LEAST_0, MEDIUM, READ_ONLY,
        "The longest such interval a group may be given."),
    Key("group.consumer.max.size", INT, 2_000, AT_LEAST_1, MEDIUM, READ_ONLY,
        "The most members of a consumer group; one more is answered with GROUP_MAX_SIZE_REACHED."),
    Key("group.consumer.max.regexes", INT, 100, AT_LEAST_1, MEDIUM, READ_ONLY,
        "The most different patterns that the members of a consumer group subscribe by; one more is answered with "
        "INVALID_REGULAR_EXPRESSION."),
    Key("group.consumer.assignors", LIST,
        ("uniform", "range"), ListOf(("uniform", "range"), empty_allowed=False), MEDIUM, READ_ONLY,
        "The assignors that members may choose from, the default one first."),
    Key("group.consumer.migration.policy", STRING,
        "bidirectional", OneOf(("DISABLED", "DOWNGRADE", "UPGRADE", "BIDIRECTIONAL"), ignore_case=True), MEDIUM, READ_ONLY,
        "Whether a group may move between the classic and the consumer protocol while it lives."),
    Key("group.consumer.regex.refresh.interval.ms", INT, 10 * MINUTE_MS, NumberRange(10000), MEDIUM, READ_ONLY,
        "How often subscriptions by pattern are matched again.", internal=True),
    Key("offset.metadata.max.bytes", INT, 4 * KIB, None, HIGH, READ_ONLY,
        "The most bytes of metadata that a committed offset carries."),
    Key("offsets.commit.timeout.ms", INT, 5 * SECOND_MS, AT_LEAST_1, HIGH, READ_ONLY,
        "How long a commit waits for the offsets topic to be replicated."),
    Key("offsets.retention.minutes", INT, 10_080, AT_LEAST_1, HIGH, READ_ONLY,
        "How long the offsets of an empty group are kept."),
    Key("offsets.retention.check.interval.ms", LONG, 10 * MINUTE_MS, AT_LEAST_1, HIGH, READ_ONLY,
        "How often offsets are looked at for expiry."),
    Key("offsets.topic.num.partitions", INT, 50, AT_LEAST_1, HIGH, READ_ONLY,
        "The partitions of the offsets topic; it must not change once the topic exists."),
    Key("offsets.topic.replication.factor", SHORT, 3, AT_LEAST_1, HIGH, READ_ONLY,
        "The replicas of the offsets topic."),
    Key("offsets.topic.segment.bytes", INT, 100 * MIB, AT_LEAST_1, HIGH, READ_ONLY,
        "The segment size of the offsets topic."),
    Key("offsets.topic.compression.codec", INT, 0, NumberRange(0, 4), HIGH, READ_ONLY,
        "How batches of the offsets topic are compressed: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd."),
)
# fmt: on
