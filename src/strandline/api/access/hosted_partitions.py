"""The partitions that this node hosts, as its APIs find them, and whom they report a damaged one to.

Always true: a partition is in both mappings or in neither; one whose log dir failed before it could be opened is in `unopened`
alone.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass

from strandline.ids import TopicPartition
from strandline.log.errors import CorruptBatch
from strandline.replica.partition import Partition


@dataclass(slots=True)
class HostedPartitions:
    by_name: dict[TopicPartition, Partition]
    """By topic name and index."""
    by_id: dict[tuple[bytes, int], Partition]
    """By topic id and index, for versions that name topics by id."""
    unopened: Container[TopicPartition]
    """Partitions that belong here and whose log dir failed before they could be opened."""
    log_dirs: Callable[[], Mapping[str, bool]]
    """Absolute paths of the log dirs, and whether each is online."""
    storage_failed: Callable[[Partition, OSError], None]
    """A log dir failed under this partition."""
    damaged: Callable[[Partition, CorruptBatch], None]
    """A stretch of this partition's log is damaged."""
