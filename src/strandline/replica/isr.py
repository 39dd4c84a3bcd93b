"""The in-sync replicas of one partition, as its leader keeps them (KIP-497).

    committed --expand/shrink--> pending     a wish is under way to the controller
    pending --answer, metadata--> committed  the controller's word, whichever comes first
    pending --ineligible--> committed        it was surely not done: back to what was (rule B5)

Always true: one wish is under way at a time (rule B3). `maximal` holds every replica that the controller may believe in sync:
while a replica is to join it counts at once, while one is to leave it counts until the controller has said so. Whoever commits
only what all of `maximal` has can't lose it, whatever became of the wish. An older partition epoch never overwrites a newer one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple

from strandline.errors import ErrorCode
from strandline.ids import Uuid

RECOVERED = 0

ROLLED_BACK = frozenset({ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.INELIGIBLE_REPLICA})
"""The controller knows our partition epoch and has not done what we wanted."""
AWAIT_METADATA = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.NEW_LEADER_ELECTED,
    }
)
"""We are behind: the wish may or may not have been done, and the metadata will tell."""


class IsrWish(NamedTuple):
    """An ISR that the leader asks the controller for (AlterPartition)."""

    topic_id: Uuid
    partition_index: int
    leader_epoch: int
    partition_epoch: int
    isr: tuple[tuple[int, int], ...]
    """Replica ids, each with the broker epoch under which it was seen; -1 if it was not seen yet."""
    leader_recovery_state: int
    reason: str

    @property
    def replicas(self) -> tuple[int, ...]:
        return tuple(replica for replica, _ in self.isr)


class IsrAnswer(NamedTuple):
    """The partition as the controller has it now."""

    leader_id: int
    leader_epoch: int
    isr: tuple[int, ...]
    leader_recovery_state: int
    partition_epoch: int


class Isr:
    __slots__ = ("isr", "maximal", "partition_epoch", "pending")

    def __init__(self, isr: Iterable[int], partition_epoch: int) -> None:
        self.partition_epoch = partition_epoch
        self.commit(isr, partition_epoch)

    isr: tuple[int, ...]
    """What the controller has said last."""
    maximal: tuple[int, ...]
    pending: IsrWish | None

    def commit(self, isr: Iterable[int], partition_epoch: int) -> None:
        """The controller's word, from the metadata or in an answer."""
        assert partition_epoch >= self.partition_epoch, (
            f"partition epoch {partition_epoch} after {self.partition_epoch}"
        )
        self.isr = self.maximal = tuple(isr)
        self.partition_epoch = partition_epoch
        self.pending = None

    def expanded(self, joining: Collection[int]) -> tuple[int, ...]:
        return (*self.isr, *joining)

    def shrunk(self, leaving: Collection[int]) -> tuple[int, ...]:
        return tuple(replica for replica in self.isr if replica not in leaving)

    def wish(self, wish: IsrWish) -> None:
        assert self.pending is None, "one wish at a time"
        self.pending = wish
        self.maximal = (*self.isr, *(replica for replica in wish.replicas if replica not in self.isr))

    def answered(self, wish: IsrWish, answer: IsrAnswer | ErrorCode, leader_epoch: int) -> bool:
        """Take the controller's answer to a wish; True if the same wish must be sent again."""
        if wish is not self.pending:
            return False  # the metadata came first
        if isinstance(answer, IsrAnswer):
            if answer.leader_epoch == leader_epoch and answer.partition_epoch >= self.partition_epoch:
                self.commit(answer.isr, answer.partition_epoch)
            return False
        if answer in ROLLED_BACK:
            self.commit(self.isr, self.partition_epoch)
            return False
        return answer not in AWAIT_METADATA
