"""The throttle of a reassignment: the configurations that define it, setting and clearing them.

A broker's rate applies only to the throttled replicas that a topic names: for leaders all that may be copied from, for followers
those that are being added.

Always true: a throttle is set on exactly the brokers and topics of the moves; clearing it changes no other configuration.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from strandline.cli.access.connection import value_of
from strandline.cli.errors import CommandRefused
from strandline.cli.reassignment.reassignment_plan import Assignment
from strandline.client.blocking import Admin
from strandline.client.flow.descriptions import ConfigResource, Reassignment, ResourceType
from strandline.config.alter import Alteration, Op
from strandline.errors import ErrorCode
from strandline.ids import TopicPartition

LEADER_RATE, FOLLOWER_RATE = "leader.replication.throttled.rate", "follower.replication.throttled.rate"
LOG_DIR_RATE = "replica.alter.log.dirs.io.max.bytes.per.second"
LEADER_REPLICAS, FOLLOWER_REPLICAS = "leader.replication.throttled.replicas", "follower.replication.throttled.replicas"
UNITS = {"": 1, "k": 1000, "m": 1000**2, "g": 1000**3, "ki": 1024, "mi": 1024**2, "gi": 1024**3}


class ThrottledMove(NamedTuple):
    """The brokers that one partition is copied from, and to."""

    sources: frozenset[int]
    destinations: frozenset[int]


def parse_rate(text: str) -> int:
    """The bytes per second in `10MB/s`, `512KiB` or `1000000`."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmg]i?)?b?(?:/s)?", text.strip().lower())
    if match is None or float(match[1]) <= 0:
        raise CommandRefused(f"'{text}' is not a rate; write it like 10MB/s, 512KiB/s or 1000000 (bytes per second)")
    return int(float(match[1]) * UNITS[match[2] or ""])


def moves(
    under_way: Mapping[TopicPartition, Reassignment], targets: Assignment, current: Assignment
) -> dict[TopicPartition, ThrottledMove]:
    """All moves after `targets` has begun, including those in progress."""
    found = {
        partition: ThrottledMove(frozenset(one.replicas) - frozenset(one.adding), frozenset(one.adding))
        for partition, one in under_way.items()
    }
    for partition, replicas in targets.items():
        sources = found[partition].sources if partition in found else frozenset(current[partition])
        found[partition] = ThrottledMove(sources, frozenset(replicas) - sources)
    return found


def topic_configs(moving: Mapping[TopicPartition, ThrottledMove]) -> dict[str, dict[str, str]]:
    """The throttled replicas of each topic, as configurations."""
    leaders: dict[str, set[str]] = {}
    followers: dict[str, set[str]] = {}
    for (topic, index), move in moving.items():
        leaders.setdefault(topic, set()).update(f"{index}:{broker}" for broker in move.sources)
        followers.setdefault(topic, set()).update(f"{index}:{broker}" for broker in move.destinations)
    return {
        topic: {
            LEADER_REPLICAS: ",".join(sorted(leaders[topic])),
            FOLLOWER_REPLICAS: ",".join(sorted(followers[topic])),
        }
        for topic in sorted(leaders)
    }


def set_throttle(admin: Admin, moving: Mapping[TopicPartition, ThrottledMove], rate_bytes: int) -> None:
    """Set the throttle before the moves begin: topics first, so that the rate never applies to other replicas."""
    topics = {
        ConfigResource(ResourceType.TOPIC, topic): [Alteration(key, Op.SET, value) for key, value in configs.items()]
        for topic, configs in topic_configs(moving).items()
    }
    brokers = sorted({broker for move in moving.values() for broker in move.sources | move.destinations})
    _alter(admin, topics)
    _alter(
        admin,
        {
            ConfigResource(ResourceType.BROKER, str(broker)): [
                Alteration(key, Op.SET, str(rate_bytes)) for key in (LEADER_RATE, FOLLOWER_RATE)
            ]
            for broker in brokers
        },
    )


def clear_broker_throttles(admin: Admin, brokers: Iterable[int]) -> None:
    _clear(admin, ResourceType.BROKER, map(str, sorted(brokers)), (LEADER_RATE, FOLLOWER_RATE, LOG_DIR_RATE))


def clear_topic_throttles(admin: Admin, topics: Iterable[str]) -> None:
    _clear(admin, ResourceType.TOPIC, sorted(topics), (LEADER_REPLICAS, FOLLOWER_REPLICAS))


def _clear(admin: Admin, kind: ResourceType, named: Iterable[str], keys: tuple[str, ...]) -> None:
    alterations = {ConfigResource(kind, name): [Alteration(key, Op.DELETE, None) for key in keys] for name in named}
    for answer in admin.alter_configs(alterations).values():
        # The throttle of a topic that was deleted meanwhile is gone with it.
        if answer is None or answer.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            value_of(answer)


def _alter(admin: Admin, alterations: Mapping[ConfigResource, list[Alteration]]) -> None:
    for answer in admin.alter_configs(alterations).values():
        value_of(answer)
