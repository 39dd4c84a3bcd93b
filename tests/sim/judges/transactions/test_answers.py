"""The judges of what is asked and answered about transactions notice what breaks them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from strandline.errors import ErrorCode
from strandline.histories.exchanges import PRODUCE, BrokerExchange
from strandline.histories.judges.transactions.answered_is_committed import AnsweredIsCommitted
from strandline.histories.judges.transactions.fenced_is_refused import FencedIsRefused
from strandline.histories.judges.transactions.newest_is_not_fenced import NewestIsNotFenced
from strandline.histories.judges.transactions.one_transaction_coordinator import OneTransactionCoordinator
from strandline.histories.judges.transactions.own_abort_fences import OwnAbortFences
from strandline.histories.judges.transactions.registered_is_taken import RegisteredIsTaken
from strandline.histories.quorum_observation import Violation
from strandline.records.batch import BatchBuilder
from strandline.transactions.states import TransactionState
from strandline.wire import messages, produce

from .stage import ID, NAME, OFFSETS, PRODUCER, Stage

EMPTY, ONGOING = TransactionState.EMPTY, TransactionState.ONGOING
PREPARE_COMMIT, PREPARE_ABORT = TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT
COMPLETE_ABORT = TransactionState.COMPLETE_ABORT


def test_txn_ti11_what_is_committed_may_be_answered() -> None:
    stage = Stage(AnsweredIsCommitted())
    stage.add(OFFSETS)
    stage.commit(EMPTY)
    stage.initialised(0)
    stage.commit(ONGOING, 0, NAME, OFFSETS)
    for is_broker in (False, True):
        stage.added(0, is_broker=is_broker)
    stage.added_offsets(0)
    stage.offsets(0, 5)
    stage.seen.all_places[OFFSETS].replica.high_watermark = 1  # type: ignore[misc]
    stage.committed_offsets(0, 5)
    stage.commit(PREPARE_COMMIT, 1, NAME, OFFSETS)
    stage.ended(0, answered=1)
    stage.ended(0, answered=1)  # asked again


@pytest.mark.parametrize(
    "answer",
    [
        lambda stage: stage.initialised(1),
        lambda stage: stage.added(0, (NAME[0], 1)),
        lambda stage: stage.added(0, (NAME[0], 1), is_broker=True),
        lambda stage: stage.added(1),
        lambda stage: stage.added_offsets(0),
        lambda stage: stage.ended(0, answered=1),
        lambda stage: stage.ended(0, version=4),
        lambda stage: stage.committed_offsets(0, 5),
    ],
)
def test_txn_ti11_an_answer_to_what_is_not_committed_is_noticed(answer: Callable[[Stage], None]) -> None:
    stage = Stage(AnsweredIsCommitted())
    stage.add(OFFSETS)
    stage.commit(EMPTY)
    stage.commit(ONGOING, 0, NAME)
    with pytest.raises(Violation):
        answer(stage)


@pytest.mark.parametrize(
    "refuse",
    [
        lambda stage: stage.initialised(1, code=ErrorCode.CONCURRENT_TRANSACTIONS),
        lambda stage: stage.added(1, code=ErrorCode.PRODUCER_FENCED),
        lambda stage: stage.added_offsets(1, code=ErrorCode.PRODUCER_FENCED),
        lambda stage: stage.ended(1, code=ErrorCode.PRODUCER_FENCED),
        lambda stage: stage.committed_offsets(1, 5, code=ErrorCode.INVALID_PRODUCER_EPOCH),
    ],
)
def test_txn_ti11_a_refusal_says_nothing(refuse: Callable[[Stage], None]) -> None:
    stage = Stage(AnsweredIsCommitted())
    stage.add(OFFSETS)
    refuse(stage)


def test_txn_ti11_the_other_decision_or_another_pair_is_noticed() -> None:
    stage = Stage(AnsweredIsCommitted())
    stage.commit(PREPARE_ABORT, 1, NAME)
    stage.ended(0, commit=False, answered=1)
    with pytest.raises(Violation, match="no decision"):
        stage.ended(0, commit=True, answered=1)
    with pytest.raises(Violation, match="goes on as"):
        stage.ended(0, commit=False, answered=2)


def test_txn_ti11_where_transactions_share_an_epoch_the_newest_counts() -> None:
    stage = Stage(AnsweredIsCommitted(), version=0)
    stage.commit(ONGOING, 0, NAME)
    stage.added(0)
    stage.commit(PREPARE_COMMIT, 0, NAME)
    stage.ended(0, version=4)
    stage.commit(ONGOING, 0, OFFSETS)
    with pytest.raises(Violation, match="confirms"):
        stage.added(0)
    with pytest.raises(Violation, match="no decision"):
        stage.ended(0, version=4)


def test_txn_ti11_offsets_count_below_the_high_watermark_and_in_their_own_transaction() -> None:
    stage = Stage(AnsweredIsCommitted())
    replica: Any = stage.add(OFFSETS).replica
    stage.offsets(0, 5)
    with pytest.raises(Violation):
        stage.committed_offsets(0, 5)
    replica.high_watermark = 1
    stage.committed_offsets(0, 5)
    with pytest.raises(Violation):
        stage.committed_offsets(0, 6)
    with pytest.raises(Violation):
        stage.committed_offsets(1, 5)
    replica.leads = False
    stage.committed_offsets(1, 5)  # it was decided before it was deposed


def test_txn_ti9_what_a_fenced_producer_asks_for_is_refused() -> None:
    asks: tuple[Callable[[Stage], None], ...] = (
        lambda stage: stage.added(0),
        lambda stage: stage.added(0, is_broker=True),
        lambda stage: stage.added_offsets(0),
        lambda stage: stage.committed_offsets(0, 5),
        lambda stage: stage.ended(0),
    )
    for do in asks:
        stage = Stage(FencedIsRefused())
        stage.initialised(0)
        do(stage)
        stage.initialised(1)
        with pytest.raises(Violation, match="fenced by epoch 1"):
            do(stage)


def test_txn_ti9_what_was_asked_before_that_may_be_answered_later() -> None:
    stage = Stage(FencedIsRefused())
    request = messages.request(26)(transactional_id=ID, producer_id=PRODUCER, producer_epoch=0, committed=True)
    asked = stage.ask(26, request)
    stage.initialised(1)
    stage.answer(asked, messages.response(26)())
    stage.initialised(1, code=ErrorCode.CONCURRENT_TRANSACTIONS)
    stage.ended(0, code=ErrorCode.PRODUCER_FENCED)
    stage.ended(1)


def test_txn_ti9_a_coordinators_own_abort_has_a_newer_epoch() -> None:
    stage = Stage(OwnAbortFences(), version=0)
    stage.commit(EMPTY)
    stage.commit(ONGOING, 0, NAME)
    stage.commit(PREPARE_ABORT, 1, NAME)
    stage.commit(COMPLETE_ABORT, 1)
    stage.commit(ONGOING, 1, NAME)
    stage.ended(1, commit=True, code=ErrorCode.COORDINATOR_NOT_AVAILABLE, version=4)
    with pytest.raises(Violation):
        stage.commit(PREPARE_ABORT, 1, NAME)


def test_txn_ti9_an_abort_that_was_asked_for_keeps_its_epoch_below_version_2() -> None:
    stage = Stage(OwnAbortFences(), version=0)
    stage.commit(ONGOING, 1, NAME)
    stage.ended(1, commit=False, version=4)
    stage.commit(PREPARE_ABORT, 1, NAME)


def test_txn_ti12_one_node_coordinates_in_an_epoch() -> None:
    stage = Stage(OneTransactionCoordinator())
    for node_id, partition, epoch in ((1, 0, 3), (1, 0, 3), (2, 1, 3), (2, 0, 4)):
        stage.judge.coordinates(stage.seen, node_id, partition, epoch)
    with pytest.raises(Violation):
        stage.judge.coordinates(stage.seen, 1, 0, 4)


def produced(stage: Stage, code: int, *, epoch: int = 0, version: int = 12) -> None:
    """Broker 1 answers a Produce of the stage's producer."""
    builder = BatchBuilder()
    builder.append(None, b"v", timestamp=1)
    batch = builder.build(producer_id=PRODUCER, producer_epoch=epoch, base_sequence=0, transactional=True)
    Request, Response = messages.request(PRODUCE), messages.response(PRODUCE)
    partition = Request.PartitionProduceData(index=0, records=bytes(batch))
    topic = Request.TopicProduceData(name=NAME[0], partition_data=[partition])
    request = Request(transactional_id=ID, acks=-1, timeout_ms=1, topic_data=[topic])
    exchange = BrokerExchange(PRODUCE, version, 0.0)
    exchange.transactional_id = ID
    exchange.frame = bytes(messages.encode_request(PRODUCE, version, request))
    answer = Response.PartitionProduceResponse(index=0, error_code=code, base_offset=-1)
    response = Response(responses=[Response.TopicProduceResponse(name=NAME[0], partition_responses=[answer])])
    exchange.response = bytes(5) + bytes(messages.encode_response(PRODUCE, version, response))
    stage.judge.produced(stage.seen, 1, exchange)


def test_txn_v4_what_is_registered_is_not_refused_as_if_it_had_ended() -> None:
    assert produce.VERSIONS[-1] >= 12
    stage = Stage(RegisteredIsTaken())
    stage.add(OFFSETS)
    stage.commit(ONGOING, 1, NAME, OFFSETS)
    produced(stage, ErrorCode.NONE, epoch=1)
    produced(stage, ErrorCode.INVALID_TXN_STATE, epoch=0)  # of the transaction before
    produced(stage, ErrorCode.INVALID_TXN_STATE, epoch=1, version=11)  # it may have been TRANSACTION_ABORTABLE
    with pytest.raises(Violation):
        produced(stage, ErrorCode.INVALID_TXN_STATE, epoch=1)
    with pytest.raises(Violation):
        stage.committed_offsets(1, 5, code=ErrorCode.INVALID_TXN_STATE)
    stage.commit(PREPARE_ABORT, 2, NAME, OFFSETS)
    produced(stage, ErrorCode.INVALID_TXN_STATE, epoch=1)
    stage.committed_offsets(1, 5, code=ErrorCode.INVALID_TXN_STATE)


@pytest.mark.parametrize(
    "refuse",
    [
        lambda stage, epoch: stage.initialised(epoch, code=ErrorCode.PRODUCER_FENCED, expected=epoch),
        lambda stage, epoch: stage.added(epoch, code=ErrorCode.INVALID_PRODUCER_ID_MAPPING, is_broker=True),
        lambda stage, epoch: stage.ended(epoch, code=ErrorCode.PRODUCER_FENCED),
    ],
)
def test_txn_t21_the_pair_that_an_id_goes_on_with_is_not_fenced(refuse: Callable[[Stage, int], None]) -> None:
    judge = NewestIsNotFenced()
    stage = Stage(judge)
    written, next_one = stage.record(ONGOING, 3, NAME), stage.record(EMPTY, 4)
    assert written.metadata is not None
    assert next_one.metadata is not None
    stage.seen.memory[ID] = written.metadata
    judge.appended(stage.seen, 1, written)
    refuse(stage, 2)
    with pytest.raises(Violation):
        refuse(stage, 3)
    stage.seen.memory[ID] = next_one.metadata
    refuse(stage, 3)  # another producer has taken over in the same turn, which is not written yet
    stage.seen.memory[ID] = written.metadata
    judge.appended(stage.seen, 2, written)
    refuse(stage, 3)  # node 1 does not know yet that it coordinates no more
