"""Where records without a key go: to one partition until it has had a batch's worth, then to another (KIP-794).

Filling one batch at a time makes fewer and larger batches than taking turns record by record.
Always true: a partition without a leader is chosen only if none has one.
"""

from __future__ import annotations

import random

from strandline.client.core.cluster_metadata import ClusterMetadata


class StickyPartitioner:
    __slots__ = ("_bytes_per_partition", "_cluster", "_left_bytes", "_partition", "_randomness", "_topic")

    def __init__(
        self, topic: str, cluster: ClusterMetadata, bytes_per_partition: int, randomness: random.Random
    ) -> None:
        self._topic = topic
        self._cluster = cluster
        self._bytes_per_partition = bytes_per_partition
        self._randomness = randomness
        self._partition = -1
        self._left_bytes = 0

    def partition_for(self, size_bytes: int) -> int:
        """The partition of a record of this size. The topic's metadata is known."""
        if self._left_bytes <= 0:
            self._partition = self._choose()
            self._left_bytes = self._bytes_per_partition
        self._left_bytes -= size_bytes
        return self._partition

    def _choose(self) -> int:
        partitions = sorted(self._cluster.topics[self._topic].partitions)
        led = [index for index in partitions if self._cluster.leader(self._topic, index) is not None]
        others = [index for index in led or partitions if index != self._partition]
        return self._randomness.choice(others or led or partitions)
