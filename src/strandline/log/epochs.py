"""Leader epochs of one partition: at which offset each leader began.

Always true: epochs and start offsets both rise strictly. An epoch ends where the next one begins, and the latest one at the
log end. This is what lets two logs find the point where they part without trusting a watermark (KIP-101, KIP-279).
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import pairwise

UNDEFINED_EPOCH = -1
UNDEFINED_EPOCH_OFFSET = -1
_NEVER = 2**63 - 1


class LeaderEpochs:
    """The entries in memory; the owner of the log writes them to `leader-epoch-checkpoint`."""

    def __init__(self, entries: list[tuple[int, int]] | None = None) -> None:
        self.entries: list[tuple[int, int]] = []
        self.latest = UNDEFINED_EPOCH
        self.dirty = False
        for epoch, start_offset in entries or ():
            self.assign(epoch, start_offset)
        self.dirty = False

    def assign(self, epoch: int, start_offset: int) -> None:
        """From `start_offset` on the log is written in `epoch`. An entry that this contradicts was never committed: it goes."""
        if epoch < 0 or start_offset < 0 or (epoch == self.latest and self.entries[-1][1] <= start_offset):
            return
        while self.entries and (self.entries[-1][0] >= epoch or self.entries[-1][1] >= start_offset):
            self.entries.pop()
        self.entries.append((epoch, start_offset))
        self.latest = epoch
        self.dirty = True

    def end_offset_for(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """The largest epoch at most `epoch` and where it ends in this log; (-1, -1) if that can't be said."""
        if epoch == UNDEFINED_EPOCH or epoch > self.latest:
            return UNDEFINED_EPOCH, UNDEFINED_EPOCH_OFFSET
        if epoch == self.latest:
            return epoch, log_end_offset
        following = bisect_right(self.entries, epoch, key=lambda entry: entry[0])
        end_offset = self.entries[following][1]
        if not following:
            # All of that epoch is gone from the log: the one that asks must start from our log start.
            return epoch, end_offset
        return self.entries[following - 1][0], end_offset

    def epoch_at(self, offset: int) -> int:
        """The epoch in which the record at `offset` was written; -1 if unknown."""
        following = bisect_right(self.entries, offset, key=lambda entry: entry[1])
        return self.entries[following - 1][0] if following else UNDEFINED_EPOCH

    def span_at(self, offset: int) -> tuple[int, int]:
        """The epoch in which the record at `offset` was written, -1 if unknown, and where that epoch ends, if it does."""
        following = bisect_right(self.entries, offset, key=lambda entry: entry[1])
        end_offset = self.entries[following][1] if following < len(self.entries) else _NEVER
        return (self.entries[following - 1][0] if following else UNDEFINED_EPOCH), end_offset

    def truncate_from_end(self, end_offset: int) -> None:
        """Forget the epochs that began at or after `end_offset`."""
        kept = [entry for entry in self.entries if entry[1] < end_offset]
        if len(kept) != len(self.entries):
            self.replace(kept)

    def truncate_from_start(self, start_offset: int) -> None:
        """Forget the epochs that ended before `start_offset`; the one that holds it now begins there."""
        following = bisect_right(self.entries, start_offset, key=lambda entry: entry[1])
        if following:
            kept = [(self.entries[following - 1][0], start_offset), *self.entries[following:]]
            if kept != self.entries:
                self.replace(kept)

    def clear(self) -> None:
        self.replace([])

    def replace(self, entries: list[tuple[int, int]]) -> None:
        self.entries = entries
        self.latest = entries[-1][0] if entries else UNDEFINED_EPOCH
        self.dirty = True

    def check_invariants(self) -> None:
        for (epoch, start_offset), (next_epoch, next_start_offset) in pairwise(self.entries):
            assert epoch < next_epoch, f"leader epoch {next_epoch} after {epoch}"
            assert start_offset < next_start_offset, f"epoch {next_epoch} begins at {next_start_offset}"
        assert self.latest == (self.entries[-1][0] if self.entries else UNDEFINED_EPOCH), f"latest is {self.latest}"
