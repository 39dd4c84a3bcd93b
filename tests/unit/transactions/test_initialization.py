"""InitProducerId: which pair a client gets, and who is fenced by it (TXN-T9 to TXN-T13)."""

from __future__ import annotations

import pytest

from strandline.errors import ErrorCode
from strandline.records.control import EPOCH_MAX
from strandline.transactions.metadata import ProducerIdAndEpoch
from tests.unit.transactions.stage import A, TransactionStage


@pytest.fixture(params=[0, 1, 2])
def stage(request: pytest.FixtureRequest) -> TransactionStage:
    return TransactionStage(request.param)


def test_a_new_transactional_id_begins_with_epoch_0(stage: TransactionStage) -> None:
    assert stage.initialize() == (100, 0)
    assert stage.state == "Empty"
    assert stage.metadata.start_ms == -1


def test_txn_t12_each_client_without_an_expected_epoch_has_the_next_one(stage: TransactionStage) -> None:
    stage.initialize()
    assert stage.initialize() == (100, 1)
    assert stage.initialize(timeout_ms=7) == (100, 2)
    assert stage.metadata.timeout_ms == 7


def test_txn_t12_the_expected_epoch_is_raised_and_a_repeated_request_gets_the_same(stage: TransactionStage) -> None:
    first = stage.initialize()
    second = stage.initialize(expected=first)
    assert second == (100, 1)
    assert stage.initialize(expected=first) == second
    assert stage.initialize(expected=second) == (100, 2)
    assert stage.refused_initialize(expected=first) is ErrorCode.PRODUCER_FENCED


def test_txn_t12_a_client_that_was_replaced_is_fenced(stage: TransactionStage) -> None:
    old = stage.initialize()
    stage.initialize()
    assert stage.refused_initialize(expected=old) is ErrorCode.PRODUCER_FENCED


def test_txn_t8_a_request_that_is_repeated_after_a_failover_is_fenced(stage: TransactionStage) -> None:
    first = stage.initialize()
    stage.initialize(expected=first)
    stage.failover()
    assert stage.refused_initialize(expected=first) is ErrorCode.PRODUCER_FENCED


def test_txn_t10_an_unknown_id_takes_any_expected_producer(stage: TransactionStage) -> None:
    assert stage.initialize(expected=ProducerIdAndEpoch(7, 3)) == (100, 0)
    assert stage.refused_initialize(expected=ProducerIdAndEpoch(7, 3)) is ErrorCode.PRODUCER_FENCED


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"timeout_ms": 0}, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
        ({"timeout_ms": -1}, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
        ({"timeout_ms": 900_001}, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
        ({"enable_two_phase": True}, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
        ({"keep_prepared": True}, ErrorCode.UNSUPPORTED_VERSION),
    ],
)
def test_txn_t9_what_is_refused(stage: TransactionStage, fields: dict[str, object], code: ErrorCode) -> None:
    assert stage.refused_initialize(**fields) is code  # type: ignore[arg-type]
    assert not stage.log


def test_txn_t9_an_empty_or_an_endless_id_is_refused(stage: TransactionStage) -> None:
    assert stage.refused_initialize("") is ErrorCode.INVALID_REQUEST
    assert stage.refused_initialize("ü" * 16_384) is ErrorCode.INVALID_REQUEST
    assert stage.initialize("x" * 32_767) == (100, 0)


def test_txn_t11_an_open_transaction_is_aborted_first() -> None:
    stage = TransactionStage(0)
    producer = stage.initialize()
    stage.add(producer, A)
    assert stage.refused_initialize() is ErrorCode.CONCURRENT_TRANSACTIONS
    assert stage.state == "PrepareAbort"
    assert (stage.metadata.epoch, stage.metadata.last_epoch) == (1, -1)
    assert stage.refused_initialize() is ErrorCode.CONCURRENT_TRANSACTIONS
    stage.mark_all()
    assert stage.state == "CompleteAbort"
    assert stage.initialize() == (100, 2)
    assert stage.end(producer).code is ErrorCode.PRODUCER_FENCED


def test_txn_t11_from_version_2_on_the_abort_itself_raises_the_epoch_once() -> None:
    stage = TransactionStage(2)
    producer = stage.initialize()
    stage.add(producer, A)
    assert stage.refused_initialize() is ErrorCode.CONCURRENT_TRANSACTIONS
    assert stage.metadata.epoch == 1
    assert stage.node.sent[0].producer == (100, 1)
    stage.mark_all()
    assert stage.initialize() == (100, 2)


@pytest.mark.parametrize("epoch", [32765, 32766, 32767])
def test_txn_t13_used_up_epochs_give_another_producer_id(stage: TransactionStage, epoch: int) -> None:
    stage.initialize()
    before = stage.set_epoch(epoch)
    found = stage.initialize()
    assert found == ((100, 32766) if epoch == 32765 else (101, 0))
    assert found.epoch < EPOCH_MAX
    assert stage.metadata.previous_producer_id == before.producer_id


def test_txn_t13_a_repeated_rotation_gets_the_same_pair(stage: TransactionStage) -> None:
    stage.initialize()
    before = stage.set_epoch(32766)
    for _ in range(3):
        assert stage.initialize(expected=before) == (101, 0)
    assert stage.refused_initialize(expected=ProducerIdAndEpoch(100, 32765)) is ErrorCode.PRODUCER_FENCED


def test_txn_t13_an_older_epoch_does_not_rotate(stage: TransactionStage) -> None:
    stage.initialize()
    stage.set_epoch(32766)
    assert stage.refused_initialize(expected=ProducerIdAndEpoch(100, 3)) is ErrorCode.PRODUCER_FENCED


def test_txn_t13_without_a_producer_id_the_client_comes_again(stage: TransactionStage) -> None:
    stage.node.has_producer_ids = False
    assert stage.refused_initialize() is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    stage.node.has_producer_ids = True
    assert stage.initialize() == (100, 0)
    stage.set_epoch(32766)
    stage.node.has_producer_ids = False
    assert stage.refused_initialize() is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


def test_txn_t13_a_fence_at_the_last_epoch_leaves_room() -> None:
    """32767 is never given to a client, and never raised."""
    for version in (0, 2):
        stage = TransactionStage(version)
        stage.initialize()
        producer = stage.set_epoch(32766)
        assert stage.add(producer, A) is ErrorCode.NONE
        assert stage.refused_initialize() is ErrorCode.CONCURRENT_TRANSACTIONS
        assert stage.metadata.epoch == EPOCH_MAX
        stage.mark_all()
        assert stage.initialize() == ((101, 0) if version == 0 else (101, 1))


def test_the_answer_waits_for_the_commit(stage: TransactionStage) -> None:
    stage.holds = True
    heard = stage.ask_initialize("t")
    assert heard == []
    stage.commit()
    assert [found.producer for found in heard] == [(100, 0)]


def test_what_could_not_be_appended_changes_nothing(stage: TransactionStage) -> None:
    stage.refuses = ErrorCode.NOT_ENOUGH_REPLICAS
    assert stage.refused_initialize() is not ErrorCode.NONE
    stage.refuses = None
    assert stage.initialize().epoch == 0
