"""What the coordinator ends or forgets by itself (TXN-T28, TXN-T29)."""

from __future__ import annotations

import pytest

from strandline.errors import ErrorCode
from tests.unit.transactions.stage import A, TransactionStage

WEEK_S = 7 * 24 * 3600


@pytest.fixture(params=[0, 2])
def stage(request: pytest.FixtureRequest) -> TransactionStage:
    return TransactionStage(request.param)


def test_txn_t28_a_transaction_past_its_timeout_is_aborted_and_its_producer_fenced(stage: TransactionStage) -> None:
    producer = stage.initialize(timeout_ms=30_000)
    stage.add(producer, A)
    stage.advance(29.9)
    assert stage.state == "Ongoing"
    stage.advance(10.1)
    assert stage.state == "PrepareAbort"
    assert stage.node.sent[0].producer == (100, 1)
    stage.mark_all()
    for commit in (True, False):
        heard = stage.end(producer, commit=commit)
        # From version 2 on an abort that is one epoch behind can't be told from a repeated one.
        is_taken = stage.node.transaction_version == 2 and not commit
        expected = {True: ErrorCode.INVALID_TXN_STATE, False: ErrorCode.NONE}[commit]
        assert heard.code is (expected if stage.node.transaction_version == 2 else ErrorCode.PRODUCER_FENCED), is_taken


def test_txn_t28_time_begins_with_the_first_partition_and_each_transaction_has_its_own(stage: TransactionStage) -> None:
    producer = stage.initialize(timeout_ms=30_000)
    for _ in range(3):
        stage.advance(25)
        producer = stage.transact(producer)
    assert stage.state == "CompleteCommit"


def test_txn_t28_a_clock_that_jumps_aborts_nothing(stage: TransactionStage) -> None:
    producer = stage.initialize(timeout_ms=30_000)
    stage.add(producer, A)
    stage.wall_ms += 3600 * 1000
    stage.advance(20)
    assert stage.state == "Ongoing"


def test_txn_t28_after_a_failover_the_whole_timeout_begins_anew(stage: TransactionStage) -> None:
    producer = stage.initialize(timeout_ms=30_000)
    stage.add(producer, A)
    stage.advance(25)
    stage.failover()
    stage.advance(25)
    assert stage.state == "Ongoing"
    stage.advance(16)
    assert stage.state == "PrepareAbort"


def test_an_abort_that_could_not_be_written_is_tried_again(stage: TransactionStage) -> None:
    producer = stage.initialize(timeout_ms=1000)
    stage.add(producer, A)
    stage.refuses = ErrorCode.NOT_ENOUGH_REPLICAS
    stage.advance(25)
    assert stage.state == "Ongoing"
    stage.refuses = None
    stage.advance(10)
    assert stage.state == "PrepareAbort"
    assert stage.metadata.epoch == 1


def test_txn_t29_ids_that_were_silent_are_removed(stage: TransactionStage) -> None:
    producer = stage.initialize()
    stage.transact(producer)
    open_one = stage.initialize("open", timeout_ms=900_000)
    stage.advance(WEEK_S - 60)
    assert set(stage.shard.transactions) == {"t", "open"}
    stage.add(open_one, A, tid="open")
    stage.advance(2 * 3600 - 1800)
    assert "t" not in stage.shard.transactions
    assert stage.end(producer).code is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    stage.failover()
    assert "t" not in stage.shard.transactions


def test_txn_t29_prepared_ones_stay(stage: TransactionStage) -> None:
    producer = stage.initialize()
    stage.add(producer, A)
    stage.end(producer)
    stage.advance(2 * WEEK_S)
    assert stage.state == "PrepareCommit"


def test_txn_t29_many_go_in_batches(stage: TransactionStage) -> None:
    for number in range(350):
        stage.initialize(f"t{number}")
    stage.advance(WEEK_S + 2 * 3600)
    assert not stage.shard.transactions


def test_txn_t29_no_batch_is_larger_than_one_may_be(stage: TransactionStage) -> None:
    """A hundred of the longest ids are larger than what the log takes; one that is too large by itself holds up no other."""
    for number in range(60):
        stage.initialize(f"{number:02}{'x' * 20_000}")
    stage.initialize("y" * 32_000)
    stage.advance(WEEK_S - 1800)
    stage.node.record_bytes_max = 30_000
    stage.advance(2 * 3600)
    assert list(stage.shard.transactions) == ["y" * 32_000]
    stage.node.record_bytes_max = 1_048_588
    stage.advance(3600)
    assert not stage.shard.transactions


def test_txn_t29_what_can_not_be_removed_waits_for_the_next_time(stage: TransactionStage) -> None:
    for number in range(150):
        stage.initialize(f"t{number}")
    stage.advance(WEEK_S - 1800)
    stage.refuses = ErrorCode.NOT_ENOUGH_REPLICAS
    stage.advance(2 * 3600)
    assert len(stage.shard.transactions) == 150
    next_s = stage.shard.timers.next_s
    assert next_s is not None
    assert next_s > stage.now, "it is not tried again at once"
    stage.refuses = None
    stage.advance(3600)
    assert not stage.shard.transactions
