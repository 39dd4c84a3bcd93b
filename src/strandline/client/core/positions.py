"""Where a consumer stands in one partition: what it shows next, and what it fetches next.

Always true: `position` is the next offset the application sees and `fetch_offset` is never below it; what lies between
is in `fetched`. Each seek begins a new `incarnation`, and a reply to a request of an earlier one is dropped. Nothing is
fetched before the position is known (state FETCHING) and, after the leader changed, was found to be in the new leader's
log (KIP-320).
"""

from __future__ import annotations

import enum
from collections import deque

from strandline.client.core.cluster_metadata import NO_EPOCH
from strandline.client.core.completed_fetch import CompletedFetch, ConsumerRecord
from strandline.ids import TopicPartition

EARLIEST = -2
LATEST = -1


class PositionState(enum.Enum):
    UNSET = "without a position to begin at: auto_offset_reset is none, and there was no seek yet"
    FINDING = "the group's committed offset is to be asked for"
    RESETTING = "the offset of a timestamp is to be asked for"
    VALIDATING = "the new leader is to be asked whether it has this position"
    FETCHING = "in order"


class PartitionState:
    __slots__ = (
        "consumed_epoch",
        "fetch_offset",
        "fetched",
        "high_watermark",
        "incarnation",
        "is_paused",
        "last_epoch",
        "last_stable_offset",
        "leader_epoch",
        "log_start_offset",
        "partition",
        "position",
        "reset_timestamp",
        "retry_at",
        "state",
        "topic",
    )

    def __init__(self, topic: str, partition: int) -> None:
        self.topic = topic
        self.partition = partition
        self.state = PositionState.UNSET
        self.reset_timestamp = LATEST
        self.position = -1
        self.fetch_offset = -1
        self.last_epoch = NO_EPOCH
        """Leader epoch of the last batch before fetch_offset, if it is known."""
        self.consumed_epoch = NO_EPOCH
        """Leader epoch of the last record before the position, if it is known."""
        self.leader_epoch = NO_EPOCH
        """The leader's epoch for which the position was found valid."""
        self.incarnation = 0
        self.is_paused = False
        self.retry_at = 0.0
        self.high_watermark = self.last_stable_offset = self.log_start_offset = -1
        self.fetched: deque[CompletedFetch] = deque()

    @property
    def key(self) -> TopicPartition:
        return self.topic, self.partition

    @property
    def has_position(self) -> bool:
        return self.state in (PositionState.VALIDATING, PositionState.FETCHING)

    @property
    def fetched_bytes(self) -> int:
        return sum(fetched.size_bytes for fetched in self.fetched)

    def seek(self, offset: int, leader_epoch: int = NO_EPOCH) -> None:
        """Go on from this offset. With the epoch of the record before it, truncation can be noticed."""
        self._begin(PositionState.VALIDATING if leader_epoch != NO_EPOCH else PositionState.FETCHING)
        self.position = self.fetch_offset = offset
        self.last_epoch = self.consumed_epoch = leader_epoch
        self.leader_epoch = NO_EPOCH

    def find(self) -> None:
        """Go on from the committed offset, once the coordinator has sent it."""
        self._begin(PositionState.FINDING)
        self.position = self.fetch_offset = -1

    def reset(self, timestamp: int) -> None:
        """Go on from the offset that the leader gives for this timestamp, once it did."""
        self._begin(PositionState.RESETTING)
        self.reset_timestamp = timestamp
        self.position = self.fetch_offset = -1

    def unset(self) -> None:
        """Wait until the application seeks."""
        self._begin(PositionState.UNSET)

    def found(self, offset: int, leader_epoch: int) -> None:
        """The leader answered: the reset is over."""
        self._begin(PositionState.FETCHING)
        self.position = self.fetch_offset = offset
        # ListOffsets has the epoch of the record AT the offset, not before it, so it proves nothing about the position.
        self.last_epoch = self.consumed_epoch = NO_EPOCH
        self.leader_epoch = leader_epoch

    def _begin(self, state: PositionState) -> None:
        self.state = state
        self.incarnation += 1
        self.retry_at = 0.0
        self.fetched.clear()

    def leader_changed(self, leader_epoch: int) -> None:
        """What is known of the leader now; a newer epoch means that the log may have been cut."""
        if leader_epoch == self.leader_epoch or not self.has_position:
            return
        was_known = self.leader_epoch != NO_EPOCH
        self.leader_epoch = leader_epoch
        if was_known and self.last_epoch != NO_EPOCH and self.state is PositionState.FETCHING:
            self.state = PositionState.VALIDATING

    def validated(self) -> None:
        self.state = PositionState.FETCHING

    def refetch(self) -> None:
        """Drop what was fetched and ask for it again."""
        self._begin(PositionState.FETCHING)
        if self.fetch_offset != self.position:
            self.fetch_offset = self.position
            self.last_epoch = NO_EPOCH

    def hold(self) -> None:
        """Show nothing more until the application seeks: each time it asks, the leader is asked again."""
        self._begin(PositionState.VALIDATING)
        self.fetch_offset = self.position

    def add(self, fetched: CompletedFetch) -> None:
        self.fetched.append(fetched)
        self.fetch_offset = fetched.next_offset
        if fetched.last_epoch != NO_EPOCH:
            self.last_epoch = fetched.last_epoch

    def take(self, records_max: int) -> list[ConsumerRecord]:
        """Records for the application; the position moves with them."""
        taken: list[ConsumerRecord] = []
        while self.fetched and len(taken) < records_max:
            first = self.fetched[0]
            taken += first.take(records_max - len(taken))
            self.position = first.offset
            if first.error is not None:
                if not taken:
                    self.refetch()
                    raise first.error
                break
            if first.is_empty:
                self.fetched.popleft()
        if taken:
            self.consumed_epoch = taken[-1].leader_epoch
        return taken
