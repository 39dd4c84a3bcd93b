"""The judges of transactions that look after every turn notice what breaks them."""

from __future__ import annotations

import pytest

from strandline.histories.judges.transactions import no_hanging
from strandline.histories.judges.transactions.complete_means_done import CompleteMeansDone
from strandline.histories.judges.transactions.coordinator_epochs import CoordinatorEpochs
from strandline.histories.judges.transactions.coordinator_first import CoordinatorFirst
from strandline.histories.judges.transactions.epochs_rise import EpochsRise
from strandline.histories.judges.transactions.fenced_is_silent import FencedIsSilent
from strandline.histories.judges.transactions.legal_states import LegalTransactionStates
from strandline.histories.judges.transactions.one_decision import OneDecision
from strandline.histories.judges.transactions.stable_offset import StableOffset
from strandline.histories.quorum_observation import Violation
from strandline.histories.transactions.judge import TransactionJudge
from strandline.transactions.states import TransactionState

from .stage import KEY, NAME, Stage

EMPTY, ONGOING = TransactionState.EMPTY, TransactionState.ONGOING
PREPARE_COMMIT, PREPARE_ABORT = TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT
COMPLETE_COMMIT, COMPLETE_ABORT = TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT


@pytest.mark.parametrize(
    "judge",
    [
        StableOffset,
        CoordinatorFirst,
        OneDecision,
        CompleteMeansDone,
        EpochsRise,
        FencedIsSilent,
        CoordinatorEpochs,
        LegalTransactionStates,
    ],
)
def test_what_is_as_it_should_be_is_fine(judge: type[TransactionJudge]) -> None:
    stage = Stage(judge())
    for epoch in (0, 1):
        if epoch == 0:
            stage.commit(EMPTY)
        stage.commit(ONGOING, epoch, NAME)
        stage.data(epoch)
        stage.commit(PREPARE_COMMIT, epoch + 1, NAME)
        stage.marker(epoch + 1)
        stage.judge.appended(stage.seen, 1, stage.record(COMPLETE_COMMIT, epoch + 1))
        stage.commit(COMPLETE_COMMIT, epoch + 1)
    stage.change(stage.log.end_offset, stage.log.end_offset)
    stage.commit(None)


def test_txn_ti3_an_open_transaction_and_a_marker_that_is_not_committed_hold_the_stable_offset() -> None:
    stage = Stage(StableOffset())
    stage.data(0)
    stage.change(1, 0)
    with pytest.raises(Violation):
        stage.change(1, 1)
    stage.marker(1)
    stage.change(1, 0)
    with pytest.raises(Violation):
        stage.change(1, 1)
    stage.change(2, 2)


def test_txn_ti3_the_stable_offset_is_not_below_the_log_start() -> None:
    stage = Stage(StableOffset())
    stage.data(0)
    stage.data(0)
    stage.change(2, 1, start=1)
    with pytest.raises(Violation):
        stage.change(2, 0, start=1)


def test_txn_ti4_what_is_open_or_prepared_or_not_stable_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(StableOffset())
    monkeypatch.setattr(stage.seen, "places", lambda: [(stage.place, stage.known)])
    stage.commit(EMPTY)
    assert no_hanging.hanging(stage.seen) == []
    stage.commit(ONGOING, 0, NAME)
    stage.data(0)
    stage.replica.high_watermark = 1
    assert len(no_hanging.hanging(stage.seen)) == 3
    assert no_hanging.within_s(4.0) > 4.0


@pytest.mark.parametrize("state", [EMPTY, COMPLETE_COMMIT, COMPLETE_ABORT])
def test_txn_ti5_nothing_is_opened_that_the_coordinator_does_not_know(state: TransactionState) -> None:
    stage = Stage(CoordinatorFirst())
    with pytest.raises(Violation):
        stage.data(0)
    stage = Stage(CoordinatorFirst())
    stage.commit(state)
    with pytest.raises(Violation):
        stage.data(0)


def test_txn_ti5_another_partition_epoch_or_what_comes_after_the_marker_is_noticed() -> None:
    stage = Stage(CoordinatorFirst())
    stage.commit(ONGOING, 0, (NAME[0], 1))
    with pytest.raises(Violation):
        stage.data(0)
    stage = Stage(CoordinatorFirst())
    stage.commit(ONGOING, 1, NAME)
    with pytest.raises(Violation):
        stage.data(0)
    stage = Stage(CoordinatorFirst())
    stage.commit(ONGOING, 0, NAME)
    stage.commit(PREPARE_ABORT, 1, NAME)
    stage.data(0)  # its marker will end it
    stage.marker(1, commit=False)
    with pytest.raises(Violation):
        stage.data(0)


def test_txn_ti5_what_comes_after_the_marker_is_noticed_also_where_transactions_share_an_epoch() -> None:
    stage = Stage(CoordinatorFirst(), version=0)
    for _ in range(2):
        stage.commit(ONGOING, 0, NAME)
        stage.data(0)
        stage.commit(PREPARE_ABORT, 0, NAME)
        stage.marker(0, commit=False)
        with pytest.raises(Violation):
            stage.data(0)
        stage.marker(0, commit=False)
        stage.commit(COMPLETE_ABORT, 0)


def test_txn_ti6_a_marker_before_its_decision_or_of_the_other_kind_is_noticed() -> None:
    stage = Stage(OneDecision())
    stage.commit(ONGOING, 0, NAME)
    stage.data(0)
    with pytest.raises(Violation):
        stage.marker(1)
    stage = Stage(OneDecision())
    stage.commit(ONGOING, 0, NAME)
    stage.data(0)
    stage.commit(PREPARE_ABORT, 1, NAME)
    with pytest.raises(Violation):
        stage.marker(1, commit=True)


def test_txn_ti6_a_late_marker_ends_nothing_of_the_next_transaction() -> None:
    stage = Stage(OneDecision(), version=0)
    stage.commit(ONGOING, 0, NAME)
    stage.data(0)
    stage.commit(PREPARE_COMMIT, 0, NAME)
    stage.marker(0)
    stage.commit(COMPLETE_COMMIT)
    stage.marker(0)  # once more, and nothing is open
    stage.commit(ONGOING, 0, NAME)
    stage.data(0)
    with pytest.raises(Violation):
        stage.marker(0)


def test_txn_ti7_no_completion_before_the_last_marker() -> None:
    stage = Stage(CompleteMeansDone())
    stage.commit(ONGOING, 0, NAME)
    stage.data(0)
    stage.commit(PREPARE_COMMIT, 1, NAME)
    with pytest.raises(Violation):
        stage.judge.appended(stage.seen, 1, stage.record(COMPLETE_COMMIT, 1))
    stage.marker(1)
    stage.judge.appended(stage.seen, 1, stage.record(COMPLETE_COMMIT, 1))


def test_txn_ti8_epochs_that_fall_or_are_shared_are_noticed() -> None:
    stage = Stage(EpochsRise())
    stage.data(1)
    with pytest.raises(Violation):
        stage.data(0)
    stage = Stage(EpochsRise())
    stage.data(0)
    with pytest.raises(Violation):
        stage.marker(0)
    stage = Stage(EpochsRise())
    stage.known.add(stage.log.data(7, 0, b"v"))
    stage.known.add(stage.log.marker(7, 0, commit=True))
    with pytest.raises(Violation):
        stage.data(0)
    stage = Stage(EpochsRise())
    stage.commit(ONGOING, 1, NAME)
    with pytest.raises(Violation):
        stage.commit(ONGOING, 0, NAME)


def test_txn_ti8_a_decision_in_the_epoch_of_its_data_is_noticed() -> None:
    stage = Stage(EpochsRise())
    stage.commit(ONGOING, 1, NAME)
    with pytest.raises(Violation, match="in which it wrote"):
        stage.commit(PREPARE_COMMIT, 1, NAME)


def test_txn_ti8_below_version_2_transactions_share_an_epoch() -> None:
    stage = Stage(EpochsRise(), version=0)
    for _ in range(2):
        stage.commit(ONGOING, 0, NAME)
        stage.data(0)
        stage.commit(PREPARE_COMMIT, 0, NAME)
        stage.marker(0)


def test_txn_ti9_who_is_fenced_writes_nothing() -> None:
    stage = Stage(FencedIsSilent())
    stage.commit(EMPTY, 1)
    stage.data(1)
    with pytest.raises(Violation):
        stage.data(0)


def test_txn_ti12_an_older_coordinator_is_noticed() -> None:
    stage = Stage(CoordinatorEpochs())
    stage.marker(1, coordinator_epoch=3)
    stage.marker(1, coordinator_epoch=3)
    with pytest.raises(Violation):
        stage.marker(2, coordinator_epoch=2)


@pytest.mark.parametrize(
    ("states", "fine"),
    [
        ((EMPTY, ONGOING, PREPARE_ABORT, COMPLETE_ABORT, ONGOING), True),
        ((EMPTY, ONGOING, PREPARE_COMMIT, PREPARE_ABORT), False),
        ((EMPTY, ONGOING, COMPLETE_COMMIT), False),
        ((EMPTY, ONGOING, EMPTY), False),
        ((EMPTY, ONGOING, None), False),
        ((ONGOING,), False),
    ],
)
def test_txn_ti13_transitions(states: tuple[TransactionState | None, ...], fine: bool) -> None:
    stage = Stage(LegalTransactionStates())
    for state in states[:-1]:
        stage.commit(state)
    if fine:
        stage.commit(states[-1])
        return
    with pytest.raises(Violation):
        stage.commit(states[-1])


def test_txn_ti13_a_completion_has_the_pair_that_was_decided() -> None:
    stage = Stage(LegalTransactionStates())
    stage.commit(EMPTY)
    stage.commit(ONGOING, 0, NAME)
    stage.commit(PREPARE_COMMIT, 1, NAME)
    with pytest.raises(Violation):
        stage.commit(COMPLETE_COMMIT, 2)
    assert stage.seen.logs[1, KEY] is stage.known
