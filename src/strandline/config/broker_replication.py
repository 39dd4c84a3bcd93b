"""Broker keys: how replicas follow, who is in sync, and who may lead.

Always true: with the defaults, only a replica that holds every committed record becomes leader.
"""

from __future__ import annotations

from strandline.config.key import CLUSTER_WIDE, HIGH, LOW, MEDIUM, READ_ONLY, Key
from strandline.config.types import (
    AT_LEAST_0,
    AT_LEAST_1,
    BOOLEAN,
    INT,
    LONG,
    MIB,
    MINUTE_MS,
    SECOND_MS,
    STRING,
    OneOf,
)

LEADER_SELECTOR = "org.apache.kafka.common.replica.LeaderSelector"
RACK_AWARE_SELECTOR = "org.apache.kafka.common.replica.RackAwareReplicaSelector"

# fmt: off
KEYS = (
    Key("min.insync.replicas", INT, 1, AT_LEAST_1, HIGH, CLUSTER_WIDE,
        "A write with acks=all is refused while fewer replicas than this are in sync."),
    Key("unclean.leader.election.enable", BOOLEAN, False, None, HIGH, CLUSTER_WIDE,
        "Whether a replica that was not in sync may lead when no other can; it loses records."),
    Key("unclean.leader.election.interval.ms", LONG, 5 * MINUTE_MS, AT_LEAST_1, MEDIUM, READ_ONLY,
        "How often partitions without a leader are looked at for an unclean election.", internal=True),
    Key("auto.leader.rebalance.enable", BOOLEAN, True, None, HIGH, READ_ONLY,
        "Whether leadership returns to the preferred replicas by itself."),
    Key("leader.imbalance.check.interval.seconds", LONG, 300, AT_LEAST_1, HIGH, READ_ONLY,
        "How often leadership is looked at for that."),
    Key("replica.lag.time.max.ms", LONG, 30 * SECOND_MS, AT_LEAST_1, HIGH, READ_ONLY,
        "A follower that has not been at the log end for this long leaves the ISR."),
    Key("replica.fetch.wait.max.ms", INT, 500, None, HIGH, READ_ONLY,
        "How long a leader may hold a follower's fetch when there is nothing new."),
    Key("replica.fetch.min.bytes", INT, 1, None, HIGH, READ_ONLY,
        "The least a follower's fetch waits for."),
    Key("replica.fetch.max.bytes", INT, MIB, AT_LEAST_0, MEDIUM, READ_ONLY,
        "The most bytes a follower asks for from one partition; a larger first batch still comes."),
    Key("replica.fetch.response.max.bytes", INT, 10 * MIB, AT_LEAST_0, MEDIUM, READ_ONLY,
        "The most bytes a follower asks for in one answer."),
    Key("replica.fetch.backoff.ms", INT, SECOND_MS, AT_LEAST_0, MEDIUM, READ_ONLY,
        "How long a follower leaves a partition alone after its fetch failed."),
    Key("replica.socket.timeout.ms", INT, 30 * SECOND_MS, None, HIGH, READ_ONLY,
        "How long a follower waits for the answer to a fetch."),
    Key("replica.high.watermark.checkpoint.interval.ms", LONG, 5 * SECOND_MS, AT_LEAST_1, HIGH, READ_ONLY,
        "How often the high watermarks are written down."),
    Key("replica.selector.class", STRING, None, OneOf((LEADER_SELECTOR, RACK_AWARE_SELECTOR)), MEDIUM, READ_ONLY,
        "Which replica a consumer is sent to: the leader, or (RackAwareReplicaSelector) a replica in its own rack. Both are "
        "built in; no class is loaded."),
    Key("leader.replication.throttled.rate", LONG, None, AT_LEAST_0, MEDIUM, CLUSTER_WIDE,
        "Bytes a second that a leader gives to followers which are not in sync, of the partitions that a topic's "
        "leader.replication.throttled.replicas names."),
    Key("follower.replication.throttled.rate", LONG, None, AT_LEAST_0, MEDIUM, CLUSTER_WIDE,
        "Bytes a second that a follower takes while it is not in sync, of the partitions that a topic's "
        "follower.replication.throttled.replicas names."),
    Key("replication.quota.window.num", INT, 11, AT_LEAST_1, LOW, READ_ONLY,
        "Over how many windows the rate of throttled replication is measured."),
    Key("replication.quota.window.size.seconds", INT, 1, AT_LEAST_1, LOW, READ_ONLY,
        "How long each of these windows is."),
)
# fmt: on
