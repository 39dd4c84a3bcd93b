"""The ISR as the leader keeps it: the maximal ISR holds whoever may count, whatever became of a proposal."""

from __future__ import annotations

import pytest

from strandline.errors import ErrorCode
from strandline.ids import Uuid
from strandline.replica.isr_state import AWAIT_METADATA, ROLLED_BACK, Isr, IsrAnswer, ProposedIsr


def proposal(*replicas: int, partition_epoch: int = 4) -> ProposedIsr:
    return ProposedIsr(Uuid(bytes(16)), 0, 7, partition_epoch, tuple((r, r) for r in replicas), 0, "")


@pytest.mark.parametrize(("wanted", "maximal"), [((1, 2, 3), {1, 2, 3}), ((1,), {1, 2}), ((1, 3), {1, 2, 3})])
def test_b3_whoever_the_controller_may_believe_in_sync_counts(wanted: tuple[int, ...], maximal: set[int]) -> None:
    isr = Isr((1, 2), 4)
    isr.propose(proposal(*wanted))
    assert (isr.isr, set(isr.maximal)) == ((1, 2), maximal)


def test_b3_a_second_proposal_is_a_bug() -> None:
    isr = Isr((1, 2), 4)
    isr.propose(proposal(1))
    with pytest.raises(AssertionError, match="one proposal at a time"):
        isr.propose(proposal(1, 2, 3))


def test_b5_the_controllers_word_in_an_answer() -> None:
    isr = Isr((1, 2), 4)
    asked = proposal(1, 2, 3)
    isr.propose(asked)
    assert isr.answered(asked, IsrAnswer(1, 7, (1, 2, 3), 0, 5), 7) is False
    assert (isr.isr, isr.maximal, isr.partition_epoch, isr.pending) == ((1, 2, 3), (1, 2, 3), 5, None)


@pytest.mark.parametrize("answer", [IsrAnswer(1, 8, (1,), 0, 5), IsrAnswer(1, 7, (1,), 0, 3)])
def test_b5_an_answer_of_another_leader_epoch_or_an_older_partition_epoch_waits(answer: IsrAnswer) -> None:
    isr = Isr((1, 2), 4)
    asked = proposal(1)
    isr.propose(asked)
    assert isr.answered(asked, answer, 7) is False
    assert (isr.isr, isr.pending) == ((1, 2), asked)


def test_b5_no_code_is_in_both_lists() -> None:
    assert not ROLLED_BACK & AWAIT_METADATA
    assert ErrorCode.NOT_CONTROLLER not in ROLLED_BACK | AWAIT_METADATA


def test_b5_time_does_not_run_backwards() -> None:
    with pytest.raises(AssertionError):
        Isr((1, 2), 4).commit((1,), 3)
