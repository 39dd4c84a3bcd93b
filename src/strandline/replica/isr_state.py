"""The in-sync replicas of one partition, as its leader keeps them (KIP-497).
Who joins and who leaves is decided in `isr_changes.py`.

    committed --expand/shrink--> pending     a proposed ISR is on its way to the controller
    pending --answer, metadata--> committed  the controller's decision, whichever way it arrives first
    pending --ineligible--> committed        the change was surely not made: back to the committed ISR (rule B5)

Always true: one proposal is pending at a time (rule B3). `maximal` holds every replica that the controller may believe in
sync: a replica that is to join counts at once, one that is to leave counts until the controller has answered. A leader that
commits only what all of `maximal` has can't lose it, whatever became of the proposal. An older partition epoch never
overwrites a newer one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple

from strandline.errors import ErrorCode
from strandline.ids import Uuid

RECOVERED = 0

ROLLED_BACK = frozenset({ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.INELIGIBLE_REPLICA})
"""The controller knows our partition epoch and has not made the change."""
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
"""We are behind: the change may or may not have been made; the metadata will show it."""


class ProposedIsr(NamedTuple):
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
    """As the controller decided last."""
    maximal: tuple[int, ...]
    pending: ProposedIsr | None

    def commit(self, isr: Iterable[int], partition_epoch: int) -> None:
        """Take the controller's decision, from the metadata or in an answer."""
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

    def propose(self, proposal: ProposedIsr) -> None:
        assert self.pending is None, "one proposal at a time"
        self.pending = proposal
        self.maximal = (*self.isr, *(replica for replica in proposal.replicas if replica not in self.isr))

    def answered(self, proposal: ProposedIsr, answer: IsrAnswer | ErrorCode, leader_epoch: int) -> bool:
        """Take the controller's answer to a proposal; True if the same proposal must be sent again."""
        if proposal is not self.pending:
            return False  # the metadata came first
        if isinstance(answer, IsrAnswer):
            if answer.leader_epoch == leader_epoch and answer.partition_epoch >= self.partition_epoch:
                self.commit(answer.isr, answer.partition_epoch)
            return False
        if answer in ROLLED_BACK:
            self.commit(self.isr, self.partition_epoch)
            return False
        return answer not in AWAIT_METADATA

    def check_invariants(self) -> None:
        pending = self.pending
        assert len(set(self.maximal)) == len(self.maximal), f"maximal ISR {self.maximal}"
        assert set(self.isr) <= set(self.maximal), f"ISR {self.isr} is not within {self.maximal}"
        if pending is None:
            assert self.maximal == self.isr, f"maximal ISR {self.maximal} without a proposal, and the ISR is {self.isr}"
        else:
            assert set(pending.replicas) <= set(self.maximal), f"{pending.replicas} is proposed, {self.maximal} counts"
            assert pending.partition_epoch == self.partition_epoch, (
                f"{pending} in partition epoch {self.partition_epoch}"
            )
