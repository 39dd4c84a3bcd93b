"""Partitions as requests name them: each topic once, with the indexes of its partitions.

Always true: topics, and the partitions of each, stay in the order in which they came.
"""

from __future__ import annotations

from collections.abc import Iterable

from strandline.ids import TopicPartition


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    indexes: dict[str, list[int]] = {}
    for topic, partition in partitions:
        indexes.setdefault(topic, []).append(partition)
    return indexes
