"""EndTxn: who may decide, what is decided, what the producer goes on with (TXN-T3, TXN-T19 to TXN-T24)."""

from __future__ import annotations

import pytest

from strandline.errors import ErrorCode
from strandline.records.control import EPOCH_MAX
from strandline.transactions.metadata import NO_PRODUCER, ProducerIdAndEpoch
from tests.unit.transactions.stage import A, B, TransactionStage

FENCED = ErrorCode.PRODUCER_FENCED
WRONG_STATE = ErrorCode.INVALID_TXN_STATE
NONE = ErrorCode.NONE
COMES_AGAIN = ErrorCode.CONCURRENT_TRANSACTIONS
OLD, NEW = 0, 2


def at_state(version: int, state: str) -> tuple[TransactionStage, ProducerIdAndEpoch]:
    """A stage whose transaction is in this state, and the pair of its producer."""
    stage = TransactionStage(version)
    producer = stage.initialize()
    if state in ("CompleteCommit", "CompleteAbort"):
        stage.add(producer, A)
        stage.end(producer, commit=state == "CompleteCommit")
        stage.mark_all()
    elif state in ("PrepareCommit", "PrepareAbort"):
        stage.add(producer, A)
        stage.end(producer, commit=state == "PrepareCommit")
    elif state == "Ongoing":
        stage.add(producer, A)
    assert stage.state == state
    return stage, stage.metadata.producer


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("version", [OLD, NEW])
def test_an_open_transaction_is_ended(version: int, commit: bool) -> None:
    stage, producer = at_state(version, "Ongoing")
    heard = stage.end(producer, commit=commit)
    assert heard == (NONE, (100, 1) if version == NEW else NO_PRODUCER)
    assert stage.state == ("PrepareCommit" if commit else "PrepareAbort")
    (marker,) = stage.node.sent
    assert marker.commit is commit
    assert marker.producer == (100, 1 if version == NEW else 0)
    assert (marker.coordinator_partition, marker.coordinator_epoch) == (3, 5)
    assert marker.transaction_version == version
    stage.mark_all()
    assert stage.state == ("CompleteCommit" if commit else "CompleteAbort")


@pytest.mark.parametrize(
    ("state", "commit", "expected"),
    [
        ("Empty", True, WRONG_STATE),
        ("Empty", False, WRONG_STATE),
        ("PrepareCommit", True, ErrorCode.CONCURRENT_TRANSACTIONS),
        ("PrepareCommit", False, WRONG_STATE),
        ("PrepareAbort", True, WRONG_STATE),
        ("PrepareAbort", False, ErrorCode.CONCURRENT_TRANSACTIONS),
        ("CompleteCommit", True, NONE),
        ("CompleteCommit", False, WRONG_STATE),
        ("CompleteAbort", True, WRONG_STATE),
        ("CompleteAbort", False, NONE),
    ],
)
def test_txn_t20_below_version_2(state: str, commit: bool, expected: ErrorCode) -> None:
    stage, producer = at_state(OLD, state)
    records = len(stage.log)
    assert stage.end(producer, commit=commit) == (expected, NO_PRODUCER)
    assert len(stage.log) == records
    for epoch in (producer.epoch - 1, producer.epoch + 1):
        assert stage.end(ProducerIdAndEpoch(100, epoch), commit=commit).code is FENCED
    assert stage.end(ProducerIdAndEpoch(9, 0), commit=commit).code is ErrorCode.INVALID_PRODUCER_ID_MAPPING


@pytest.mark.parametrize(
    ("state", "commit", "repeated", "current"),
    [
        ("Empty", False, FENCED, NONE),
        ("Empty", True, FENCED, WRONG_STATE),
        ("CompleteAbort", False, NONE, NONE),
        ("CompleteAbort", True, WRONG_STATE, WRONG_STATE),
        ("CompleteCommit", False, WRONG_STATE, NONE),
        ("CompleteCommit", True, NONE, WRONG_STATE),
        ("Ongoing", True, FENCED, NONE),
        ("Ongoing", False, FENCED, NONE),
    ],
)
def test_txn_t21_from_version_2_on(state: str, commit: bool, repeated: ErrorCode, current: ErrorCode) -> None:
    for steps, expected in ((1, repeated), (0, current), (2, FENCED), (-1, FENCED)):
        stage, producer = at_state(NEW, state)
        heard = stage.end(ProducerIdAndEpoch(producer.producer_id, producer.epoch - steps), commit=commit)
        assert heard.code is expected, steps
        if steps == 1 and expected is NONE:
            assert heard.producer == producer
        elif steps == 0 and expected is NONE:
            assert heard.producer == (100, producer.epoch + 1)


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("state", ["PrepareCommit", "PrepareAbort"])
def test_txn_t21_while_it_is_prepared_everybody_comes_again(state: str, commit: bool) -> None:
    """The decision was answered: its producer may have begun the next transaction, and ends that one already."""
    stage, producer = at_state(NEW, state)
    for found in (producer, *(producer._replace(epoch=producer.epoch + steps) for steps in (-1, 1)), (9, 0)):
        assert stage.end(ProducerIdAndEpoch(*found), commit=commit).code is COMES_AGAIN
    stage.mark_all()
    assert stage.end(producer, commit=False) == (NONE, (100, producer.epoch + 1))


def test_txn_t21_an_epoch_0_that_no_rotation_gave_is_no_repeated_end() -> None:
    """32766 is one behind it only if there was another producer id."""
    stage, producer = at_state(NEW, "Ongoing")
    stage.end(producer, version=OLD)
    stage.mark_all()
    assert stage.metadata.producer == (100, 0)
    assert stage.end(ProducerIdAndEpoch(100, 32766)).code is FENCED


def test_txn_t22_an_abort_of_nothing_is_complete_at_once_and_raises_the_epoch() -> None:
    stage, producer = at_state(NEW, "Empty")
    heard = stage.end(producer, commit=False)
    assert heard.producer == (100, 1)
    stage.advance(0)
    assert stage.state == "CompleteAbort"
    assert not stage.node.sent
    assert stage.metadata.start_ms == stage.wall_ms


@pytest.mark.parametrize("commit", [True, False])
def test_txn_t23_the_last_epoch_ends_with_another_producer_id(commit: bool) -> None:
    stage, _ = at_state(NEW, "Empty")
    producer = stage.set_epoch(32766)
    stage.add(producer, A)
    heard = stage.end(producer, commit=commit)
    assert heard == (NONE, (101, 0))
    assert (stage.metadata.producer, stage.metadata.next_producer_id) == ((100, EPOCH_MAX), 101)
    assert stage.node.sent[0].producer == (100, EPOCH_MAX)
    assert stage.end(producer, commit=commit).code is ErrorCode.CONCURRENT_TRANSACTIONS
    stage.failover()
    stage.mark_all()
    assert (stage.metadata.producer, stage.metadata.previous_producer_id) == ((101, 0), 100)
    assert stage.end(producer, commit=commit) == (NONE, (101, 0))
    assert stage.end(producer, commit=not commit).code is WRONG_STATE
    assert stage.transact(ProducerIdAndEpoch(101, 0)) == (101, 1)
    assert stage.end(producer, commit=commit).code is ErrorCode.INVALID_PRODUCER_ID_MAPPING


def test_txn_t23_the_next_producer_id_that_was_answered_comes_again_until_it_is_the_current_one() -> None:
    stage, _ = at_state(NEW, "Empty")
    stage.add(stage.set_epoch(32766), A)
    following = stage.end(stage.metadata.producer).producer
    assert following == (101, 0)
    assert stage.state == "PrepareCommit"
    assert stage.add(following, A) is COMES_AGAIN
    assert stage.end(following, commit=False).code is COMES_AGAIN
    assert stage.refused_initialize(expected=following) is COMES_AGAIN
    stage.mark_all()
    assert stage.add(following, A) is NONE


def test_txn_t23_the_pair_that_was_answered_stands_when_the_level_was_lowered() -> None:
    stage, _ = at_state(NEW, "Empty")
    producer = stage.set_epoch(32766)
    stage.add(producer, A)
    stage.node.transaction_version = OLD
    following = stage.end(producer, version=NEW).producer
    assert following == (101, 0)
    stage.failover()
    assert stage.node.sent[0].transaction_version == NEW
    stage.mark_all()
    assert stage.metadata.producer == following


def test_txn_t23_without_a_producer_id_the_end_comes_again() -> None:
    stage, _ = at_state(NEW, "Empty")
    producer = stage.set_epoch(32766)
    stage.add(producer, A)
    stage.node.has_producer_ids = False
    assert stage.end(producer).code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert stage.state == "Ongoing"
    stage.node.has_producer_ids = True
    assert stage.end(producer).code is NONE


def test_txn_t19_the_version_of_the_request_decides() -> None:
    stage, producer = at_state(NEW, "Ongoing")
    assert stage.end(producer, version=OLD) == (NONE, NO_PRODUCER)
    assert stage.metadata.epoch == 0
    stage.mark_all()
    assert stage.end(producer, version=OLD).code is NONE
    stage, producer = at_state(OLD, "Ongoing")
    assert stage.end(producer, version=NEW).producer == (100, 1)


@pytest.mark.parametrize("tid", ["", "unknown"])
def test_txn_t19_ids_that_are_not_there(tid: str) -> None:
    stage = TransactionStage()
    expected = ErrorCode.INVALID_PRODUCER_ID_MAPPING if tid else ErrorCode.INVALID_REQUEST
    assert stage.end(ProducerIdAndEpoch(1, 0), tid=tid).code is expected


@pytest.mark.parametrize("version", [OLD, NEW])
def test_txn_t24_markers_follow_the_committed_decision(version: int) -> None:
    stage, producer = at_state(version, "Ongoing")
    stage.holds = True
    heard = stage.ask_end(producer)
    assert heard == []
    assert not stage.node.sent
    stage.commit()
    assert heard[0].code is NONE
    assert len(stage.node.sent) == 1


@pytest.mark.parametrize("version", [OLD, NEW])
def test_txn_t3_a_decision_whose_append_timed_out_stands(version: int) -> None:
    """The client is asked to repeat; the markers follow when the record is committed after all."""
    stage, producer = at_state(version, "Ongoing")
    stage.holds = True
    heard = stage.ask_end(producer)
    stage.append_times_out()
    assert heard[0].code is not NONE
    assert stage.end(producer).code is COMES_AGAIN
    assert stage.end(producer, commit=False).code is (COMES_AGAIN if version == NEW else WRONG_STATE)
    assert not stage.node.sent
    stage.commit()
    assert len(stage.node.sent) == 1
    stage.holds = False
    stage.mark_all()
    assert stage.end(producer).code is NONE


@pytest.mark.parametrize("version", [OLD, NEW])
def test_txn_tf5_an_end_that_a_failover_took_back_is_decided_anew(version: int) -> None:
    stage, producer = at_state(version, "Ongoing")
    stage.holds = True
    stage.ask_end(producer)
    stage.failover(loses_uncommitted=True)
    stage.holds = False
    assert stage.state == "Ongoing"
    assert stage.end(producer, commit=False).code is NONE
    assert stage.state == "PrepareAbort"


@pytest.mark.parametrize(
    ("code", "told"),
    [
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
    ],
)
def test_txn_tf6_what_can_not_be_appended_is_told_in_terms_of_a_coordinator(code: ErrorCode, told: ErrorCode) -> None:
    stage, producer = at_state(NEW, "Ongoing")
    stage.refuses = code
    assert stage.refused_initialize("another") is told
    assert stage.refused_initialize() is told
    assert stage.add(producer, B) is told
    assert stage.end(producer) == (told, NO_PRODUCER)


def test_an_answer_of_a_repeated_end_waits_for_what_it_saw() -> None:
    stage, producer = at_state(NEW, "PrepareCommit")
    stage.holds = True
    (marker,) = stage.node.sent
    stage.mark(marker)
    assert stage.state == "CompleteCommit"
    heard = stage.ask_end(ProducerIdAndEpoch(100, producer.epoch - 1))
    assert heard == []
    stage.commit()
    assert heard[0] == (NONE, producer)


def test_two_partitions_both_need_their_marker() -> None:
    stage = TransactionStage(NEW)
    producer = stage.initialize()
    stage.add(producer, A, B)
    stage.end(producer)
    (marker,) = stage.node.sent
    stage.mark(marker, A)
    assert stage.state == "PrepareCommit"
    stage.mark(marker, A)
    assert stage.state == "PrepareCommit"
    stage.mark(marker, B)
    assert stage.state == "CompleteCommit"
    assert stage.metadata.partitions == frozenset()


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize(("before", "after"), [(OLD, NEW), (NEW, OLD)])
def test_txn_t47_a_level_that_changes_while_a_transaction_is_open_changes_nothing_for_it(
    before: int, after: int, commit: bool
) -> None:
    """The client ends it as it began it, also at a coordinator that has read it from records of either version."""
    stage = TransactionStage(before)
    producer = stage.initialize()
    stage.add(producer, A)
    stage.node.transaction_version = after
    stage.failover()
    assert stage.add(producer, B, transaction_version=before) is NONE
    stage.failover()
    heard = stage.end(producer, commit=commit, version=before)
    assert heard == (NONE, (100, 1) if before == NEW else NO_PRODUCER)
    (marker,) = stage.node.sent
    assert (marker.transaction_version, marker.partitions) == (before, frozenset({A, B}))
    stage.mark_all()
    assert stage.state == ("CompleteCommit" if commit else "CompleteAbort")
    # The next one is of the other version, after the old epoch was fenced if the level went up.
    producer = stage.initialize(expected=stage.metadata.producer)
    assert stage.transact(producer) is not None
