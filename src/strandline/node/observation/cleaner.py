"""What can be seen of the cleaner."""

from __future__ import annotations

from typing import Protocol


class ObservedCleanerStats(Protocol):
    """Since the node started, or as of the last look at the logs."""

    @property
    def looked_at_ms(self) -> int:
        """On the wall clock; 0 if no log was compacted yet."""

    @property
    def max_dirty_ratio(self) -> float: ...

    @property
    def max_overdue_s(self) -> float:
        """By how much a log has passed its `max.compaction.lag.ms`, at most."""

    @property
    def cleanings(self) -> int: ...

    @property
    def bytes_read(self) -> int: ...

    @property
    def bytes_written(self) -> int: ...

    @property
    def last_recopy_ratio(self) -> float:
        """Bytes that the last cleaning wrote, of those that it read."""

    @property
    def last_clean_s(self) -> float: ...
