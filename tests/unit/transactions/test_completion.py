"""From the decision to the last marker, over failovers (TXN-T30, TXN-T31, TXN-T33, TXN-T34, TXN-TF2)."""

from __future__ import annotations

import pytest

from strandline.errors import ErrorCode
from strandline.transactions.listing import describe
from tests.unit.transactions.stage import A, B, TransactionStage


@pytest.fixture(params=[0, 2])
def stage(request: pytest.FixtureRequest) -> TransactionStage:
    """One whose transaction over two partitions is decided."""
    stage = TransactionStage(request.param)
    producer = stage.initialize()
    stage.add(producer, A, B)
    stage.end(producer)
    return stage


def test_txn_t32_what_is_left_can_be_seen(stage: TransactionStage) -> None:
    stage.mark(stage.node.sent[0], A)
    assert describe(stage.shard, "t").partitions == {B}
    stage.mark(stage.node.sent[0], B)
    assert describe(stage.shard, "t").partitions == set()


def test_txn_tf2_a_new_coordinator_sends_all_markers_again_with_its_own_epoch(stage: TransactionStage) -> None:
    stage.mark(stage.node.sent[0], A)
    stage.failover()
    (marker,) = stage.node.sent
    assert marker.partitions == {A, B}
    assert marker.coordinator_epoch == 6
    assert marker.producer == stage.metadata.producer
    stage.mark_all()
    assert stage.state == "CompleteCommit"


def test_txn_tf2_but_not_before_all_that_it_read_is_committed(stage: TransactionStage) -> None:
    """Else the next failover takes the decision back, and a partition already has its marker."""
    stage.holds = True
    stage.failover()
    assert not stage.node.sent
    stage.commit()
    stage.advance(0)
    assert len(stage.node.sent) == 1


def test_txn_t31_markers_of_an_older_load_settle_nothing(stage: TransactionStage) -> None:
    (old,) = stage.node.sent
    stage.failover()
    assert stage.node.forgotten == [(3, 5)]
    stage.mark(old)
    assert stage.state == "PrepareCommit"


def test_markers_of_an_earlier_transaction_settle_nothing() -> None:
    stage = TransactionStage(0)
    producer = stage.initialize()
    stage.add(producer, A)
    stage.end(producer)
    (first,) = stage.node.sent
    stage.mark_all()
    stage.mark(first)
    assert stage.state == "CompleteCommit"


def test_txn_t34_the_completion_is_written_again_until_it_is(stage: TransactionStage) -> None:
    stage.refuses = ErrorCode.NOT_ENOUGH_REPLICAS
    stage.mark_all()
    assert stage.state == "PrepareCommit"
    stage.advance(2)
    assert stage.state == "PrepareCommit"
    stage.refuses = None
    stage.advance(1)
    assert stage.state == "CompleteCommit"


def test_a_completion_that_timed_out_is_not_written_twice(stage: TransactionStage) -> None:
    stage.holds = True
    stage.mark_all()
    records = len(stage.log)
    stage.append_times_out()
    stage.advance(5)
    assert len(stage.log) == records
    stage.commit()
    assert stage.state == "CompleteCommit"


def test_txn_t33_a_refused_marker_is_noted_until_the_next_load(stage: TransactionStage) -> None:
    (marker,) = stage.node.sent
    stage.shard.refused(marker)
    assert stage.shard.refused_markers == {"t"}
    assert stage.state == "PrepareCommit"
    stage.failover()
    assert stage.shard.refused_markers == set()
    assert len(stage.node.sent) == 1


def test_a_thousand_decisions_are_resumed(stage: TransactionStage) -> None:
    for number in range(1000):
        tid = f"t{number}"
        producer = stage.initialize(tid)
        stage.add(producer, A, tid=tid)
        stage.end(producer, tid=tid)
    stage.failover()
    assert len(stage.node.sent) == 1001


def test_txn_tf2_a_decision_made_since_the_load_goes_on_when_it_is_committed_itself() -> None:
    """The high watermark reaches what was read, and not what came after: the next failover may take that back."""
    stage = TransactionStage(2)
    producer = stage.initialize()
    stage.add(producer, A)
    stage.holds = True
    stage.failover()
    stage.ask_end(producer)
    assert stage.state == "PrepareCommit"
    stage.commit_one()
    stage.advance(0)
    assert not stage.node.sent
    stage.commit()
    assert len(stage.node.sent) == 1
