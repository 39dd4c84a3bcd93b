"""Which partitions a transaction has, and who may add them (TXN-T1, TXN-T2, TXN-T17, TXN-T18, TXN-TF7)."""

from __future__ import annotations

import pytest

from strandline.errors import ErrorCode
from strandline.transactions.metadata import ProducerIdAndEpoch
from tests.unit.transactions.stage import A, B, TransactionStage


@pytest.fixture(params=[0, 2])
def stage(request: pytest.FixtureRequest) -> TransactionStage:
    return TransactionStage(request.param)


def test_the_first_partition_begins_the_transaction(stage: TransactionStage) -> None:
    producer = stage.initialize()
    assert stage.add(producer, A) is ErrorCode.NONE
    assert stage.state == "Ongoing"
    assert stage.metadata.start_ms == stage.wall_ms
    began = stage.wall_ms
    stage.advance(3)
    assert stage.add(producer, B) is ErrorCode.NONE
    assert stage.metadata.partitions == {A, B}
    assert (stage.metadata.start_ms, stage.metadata.update_ms) == (began, began + 3000)


def test_txn_t17_what_is_there_already_needs_no_record(stage: TransactionStage) -> None:
    producer = stage.initialize()
    stage.add(producer, A, B)
    records = len(stage.log)
    assert stage.add(producer, A) is ErrorCode.NONE
    assert len(stage.log) == records


def test_txn_t2_also_that_waits_until_all_is_committed(stage: TransactionStage) -> None:
    producer = stage.initialize()
    stage.holds = True
    first, second = stage.ask_add(producer, A), stage.ask_add(producer, A)
    assert first == second == []
    stage.commit()
    assert [heard.code for heard in first + second] == [ErrorCode.NONE, ErrorCode.NONE]


def test_txn_t1_additions_build_on_ones_that_are_not_committed(stage: TransactionStage) -> None:
    producer = stage.initialize()
    stage.holds = True
    stage.ask_add(producer, A)
    stage.ask_add(producer, B)
    stage.commit()
    assert stage.metadata.partitions == {A, B}


@pytest.mark.parametrize(
    ("producer", "code"),
    [
        (ProducerIdAndEpoch(7, 0), ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        (ProducerIdAndEpoch(100, 1), ErrorCode.PRODUCER_FENCED),
        (ProducerIdAndEpoch(100, -1), ErrorCode.PRODUCER_FENCED),
    ],
)
def test_txn_t17_strangers_are_refused(stage: TransactionStage, producer: ProducerIdAndEpoch, code: ErrorCode) -> None:
    stage.initialize()
    assert stage.add(producer, A) is code
    assert stage.verify(producer, A) is code
    assert stage.state == "Empty"


def test_txn_t17_an_unknown_or_empty_id_is_refused(stage: TransactionStage) -> None:
    producer = ProducerIdAndEpoch(100, 0)
    assert stage.add(producer, A, tid="x") is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert stage.add(producer, A, tid="") is ErrorCode.INVALID_REQUEST
    assert stage.verify(producer, A, tid="x") is ErrorCode.INVALID_PRODUCER_ID_MAPPING


def test_txn_t17_while_a_transaction_is_being_ended_the_next_waits(stage: TransactionStage) -> None:
    producer = stage.initialize()
    stage.add(producer, A)
    found = stage.end(producer).producer
    following = found if stage.node.transaction_version == 2 else producer
    assert stage.add(following, A) is ErrorCode.CONCURRENT_TRANSACTIONS
    assert stage.verify(following, A) is ErrorCode.CONCURRENT_TRANSACTIONS
    stage.mark_all()
    assert stage.add(following, B) is ErrorCode.NONE
    assert stage.metadata.partitions == {B}


def test_txn_t18_a_verification_says_it_of_each_partition_and_changes_nothing(stage: TransactionStage) -> None:
    producer = stage.initialize()
    assert stage.verify(producer, A) == {A: ErrorCode.TRANSACTION_ABORTABLE}
    stage.add(producer, A)
    records = len(stage.log)
    assert stage.verify(producer, A, B) == {A: ErrorCode.NONE, B: ErrorCode.TRANSACTION_ABORTABLE}
    assert len(stage.log) == records


def test_txn_tf7_an_addition_that_would_not_fit_is_refused_and_the_end_is_not(stage: TransactionStage) -> None:
    producer = stage.initialize()
    many = [(f"{'topic' * 20}-{number}", 0) for number in range(200)]
    stage.node.record_bytes_max = 8000
    assert stage.add(producer, *many[:40]) is ErrorCode.NONE
    assert stage.add(producer, *many) is ErrorCode.UNKNOWN_SERVER_ERROR
    assert len(stage.metadata.partitions) == 40
    assert stage.end(producer).code is ErrorCode.NONE
    assert len(stage.log[-1][1] or b"") < 8000


@pytest.mark.parametrize("before", [0, 2])
@pytest.mark.parametrize("after", [0, 2])
def test_txn_tf7_there_is_room_for_the_end_at_any_level(before: int, after: int) -> None:
    """A record of version 0, as it is written once the level is lowered, takes more for each topic."""
    stage = TransactionStage(before)
    producer = stage.initialize()
    stage.node.record_bytes_max = 6000
    number = 0
    while stage.add(producer, (f"topic-{number:04}", 0)) is ErrorCode.NONE:
        number += 1
    stage.node.transaction_version = after
    assert number > 200
    assert stage.end(producer, version=0).code is ErrorCode.NONE


def test_an_addition_that_failed_leaves_the_transaction_as_it_was(stage: TransactionStage) -> None:
    producer = stage.initialize()
    stage.refuses = ErrorCode.NOT_ENOUGH_REPLICAS
    assert stage.add(producer, A) is not ErrorCode.NONE
    assert stage.state == "Empty"
