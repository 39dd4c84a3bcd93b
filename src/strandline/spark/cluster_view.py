"""The cluster as the driver sees it through a client: topics with their ids, offsets, sizes, a group's offsets.

Always true: every answer is what a broker just said, except topics, which are cached for `metadata_ttl_ms` if that is set. A
partition that is not there is left out of an answer; any other trouble that lasts longer than the client tries is raised.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from strandline.client.blocking import Admin, Client
from strandline.client.flow.descriptions import ConfigResource, ResourceType, TopicDescription
from strandline.client.flow.offsets import EARLIEST, LATEST, OffsetAndTimestamp
from strandline.errors import ErrorCode, KafkaError
from strandline.ids import TopicPartition
from strandline.spark.bounds import ObservedTopic, Topics

K = TypeVar("K")
V = TypeVar("V")

NOT_THERE = frozenset(
    {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.INVALID_TOPIC_EXCEPTION}
)


class ClientClusterView:
    """An `ObservedCluster` of `bounds.py` that asks the brokers."""

    def __init__(
        self,
        client: Client,
        *,
        read_committed: bool = False,
        metadata_ttl_ms: int | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._admin = Admin(client)
        self._read_committed = read_committed
        self._ttl_s = None if metadata_ttl_ms is None else metadata_ttl_ms / 1000
        self._now = now
        self._seen: tuple[float, frozenset[str] | None, Topics] | None = None

    def topics(self, names: Iterable[str] | None) -> Topics:
        wanted = None if names is None else frozenset(names)
        now = self._now()
        if self._seen is not None and self._ttl_s is not None:
            seen_at, asked, topics = self._seen
            if asked == wanted and now - seen_at < self._ttl_s:
                return topics
        topics = {
            name: ObservedTopic(described.topic_id, frozenset(p.partition for p in described.partitions))
            for name, described in self._described(wanted).items()
        }
        self._seen = now, wanted, topics
        return topics

    def forget_topics(self) -> None:
        """Drop the cached topics."""
        self._seen = None

    def earliest(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return {key: answer.offset for key, answer in self._offsets(dict.fromkeys(partitions, EARLIEST)).items()}

    def latest(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return {key: answer.offset for key, answer in self._offsets(dict.fromkeys(partitions, LATEST)).items()}

    def by_timestamp(self, timestamps_ms: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        answers = self._offsets(timestamps_ms)
        return {key: None if answer.offset < 0 else answer.offset for key, answer in answers.items()}

    def group_offsets(self, group_id: str, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        # An offset that a transaction is about to commit is waited for: where the group stands is not decided before.
        found = self._admin.list_group_offsets({group_id: list(partitions)}, require_stable=True)[group_id]
        if isinstance(found, KafkaError):
            raise found
        return {key: answer.offset for key, answer in there(found).items() if answer is not None}

    def sizes_bytes(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        leaders = self._leader_ids(partitions)
        dirs = self._admin.describe_log_dirs(sorted(set(leaders.values())), leaders)
        return {
            key: replica.size_bytes
            for key, node_id in leaders.items()
            for log_dir in dirs[node_id]
            for replica in (log_dir.replicas.get(key),)
            if replica is not None and not replica.is_future
        }

    def leaders(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, str]:
        hosts = {broker.node_id: broker.host for broker in self._admin.describe_cluster().brokers}
        return {key: hosts[node_id] for key, node_id in self._leader_ids(partitions).items() if node_id in hosts}

    def log_append_time(self, topics: Iterable[str]) -> frozenset[str]:
        resources = [ConfigResource(ResourceType.TOPIC, name) for name in sorted(topics)]
        answers = self._admin.describe_configs(resources)
        return frozenset(
            resource.name
            for resource, entries in there(answers).items()
            if any(entry.name == "message.timestamp.type" and entry.value == "LogAppendTime" for entry in entries)
        )

    def _described(self, names: frozenset[str] | None) -> dict[str, TopicDescription]:
        wanted = [topic.name for topic in self._admin.list_topics()] if names is None else sorted(names)
        return there(self._admin.describe_topics(wanted)) if wanted else {}

    def _leader_ids(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        wanted = set(partitions)
        described = self._described(frozenset(topic for topic, _ in wanted))
        return {
            (name, p.partition): p.leader
            for name, topic in described.items()
            for p in topic.partitions
            if (name, p.partition) in wanted and p.leader >= 0
        }

    def _offsets(self, timestamps: Mapping[TopicPartition, int]) -> dict[TopicPartition, OffsetAndTimestamp]:
        if not timestamps:
            return {}
        return there(self._admin.list_offsets(timestamps, read_committed=self._read_committed))


def there(answers: Mapping[K, V | KafkaError]) -> dict[K, V]:
    """Without what does not exist; the first other error is raised."""
    found: dict[K, V] = {}
    for key, answer in answers.items():
        if not isinstance(answer, KafkaError):
            found[key] = answer
        elif answer.code not in NOT_THERE:
            raise answer
    return found
