"""What `topics` and `kafka-topics` share: finding and describing topics, and their durability.

Always true: a topic that is deleted between two requests is left out, and is not an error.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

import click

from strandline.cli.topics.durability import DurabilityVerdict, judge
from strandline.client.blocking import Admin
from strandline.client.flow.descriptions import (
    ConfigEntry,
    ConfigResource,
    PartitionDescription,
    Reassignment,
    ResourceType,
    TopicDescription,
)
from strandline.errors import ErrorCode, KafkaError
from strandline.ids import TopicPartition

DEFAULT_CONFIG = 5
"""Kafka's number for a default value."""


class TopicView(NamedTuple):
    """A topic, its configuration, and (on request) the reassignments of its partitions."""

    topic: TopicDescription
    configs: tuple[ConfigEntry, ...]
    reassignments: Mapping[int, Reassignment] = MappingProxyType({})

    @property
    def overrides(self) -> list[ConfigEntry]:
        """Values that were set, on the topic or on the brokers."""
        return [entry for entry in self.configs if entry.source != DEFAULT_CONFIG]

    @property
    def replication_factor(self) -> int:
        if not self.topic.partitions:
            return 0
        first = self.topic.partitions[0]
        return replica_count(first, self.reassignments.get(first.partition))

    @property
    def min_insync_replicas(self) -> int:
        return int(self._value("min.insync.replicas") or 1)

    @property
    def verdict(self) -> DurabilityVerdict:
        unclean = self._value("unclean.leader.election.enable") == "true"
        return judge(self.replication_factor, self.min_insync_replicas, unclean)

    def _value(self, name: str) -> str | None:
        return next((entry.value for entry in self.configs if entry.name == name), None)


def has_leader(partition: PartitionDescription) -> bool:
    return partition.leader >= 0


def replica_count(partition: PartitionDescription, moving: Reassignment | None = None) -> int:
    """The number of replicas, without those that a reassignment is adding."""
    if moving is None or not {*moving.adding, *moving.removing} & set(partition.replicas):
        return len(partition.replicas)
    return len(moving.replicas) - len(moving.adding)


def is_under_replicated(partition: PartitionDescription, moving: Reassignment | None = None) -> bool:
    return len(partition.isr) < replica_count(partition, moving)


def is_under_min_isr(partition: PartitionDescription, min_insync_replicas: int) -> bool:
    return not has_leader(partition) or len(partition.isr) < min_insync_replicas


def is_at_min_isr(partition: PartitionDescription, min_insync_replicas: int) -> bool:
    return len(partition.isr) == min_insync_replicas


def find(admin: Admin, pattern: str | None, *, exclude_internal: bool = False) -> list[str]:
    """The topics whose whole name matches a regular expression, or a comma-separated list of them; all without a pattern."""
    names = [listing.name for listing in admin.list_topics(include_internal=not exclude_internal)]
    if pattern is None:
        return names
    try:
        expression = re.compile("|".join(part.strip() for part in pattern.strip("\"'").split(",")))
    except re.error as error:
        raise click.UsageError(f"--topic {pattern} is not a regular expression: {error}") from None
    return [name for name in names if expression.fullmatch(name)]


def reassignments(admin: Admin) -> dict[TopicPartition, Reassignment]:
    """All reassignments in progress; none if the cluster does not support or allow the request."""
    try:
        return admin.list_partition_reassignments()
    except KafkaError as error:
        if error.code in (ErrorCode.UNSUPPORTED_VERSION, ErrorCode.CLUSTER_AUTHORIZATION_FAILED):
            return {}
        raise


def describe(admin: Admin, names: Iterable[str], *, with_reassignments: bool = False) -> list[TopicView]:
    """The existing topics among these names, sorted. Reassignments are known to the active controller only."""
    requested = sorted(set(names))
    if not requested:
        return []
    described = admin.describe_topics(requested)
    configs = admin.describe_configs([ConfigResource(ResourceType.TOPIC, name) for name in requested])
    moving: dict[str, dict[int, Reassignment]] = {}
    for (name, index), reassignment in (reassignments(admin) if with_reassignments else {}).items():
        moving.setdefault(name, {})[index] = reassignment
    views = []
    for name in requested:
        topic, entries = described[name], configs[ConfigResource(ResourceType.TOPIC, name)]
        for answer in (topic, entries):
            if isinstance(answer, KafkaError) and answer.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise answer
        if not isinstance(topic, KafkaError) and not isinstance(entries, KafkaError):
            views.append(TopicView(topic, tuple(entries), moving.get(name, {})))
    return views
