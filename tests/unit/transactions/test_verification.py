"""What leaders ask coordinators, and what producers hear of it (TXN-V1, TXN-V7, TXN-T25, TXN-T26)."""

from __future__ import annotations

import pytest

from strandline.errors import ErrorCode
from strandline.ids import TopicPartition
from strandline.transactions.metadata import ProducerIdAndEpoch
from strandline.transactions.verification import (
    PARTITIONS_PER_REQUEST_MAX,
    Codes,
    Question,
    VerificationQueue,
    offset_commit_code,
    produce_code,
)
from tests.unit.transactions.stage import A, B

NONE = ErrorCode.NONE


def question(*partitions: TopicPartition, tid: str = "t", epoch: int = 0, verify_only: bool = True) -> Question:
    return Question(tid, ProducerIdAndEpoch(7, epoch), verify_only, frozenset(partitions))


class Asking:
    def __init__(self) -> None:
        self.queue = VerificationQueue()
        self.heard: list[Codes | None] = []

    def add(self, asked: Question, broker_id: int = 1) -> None:
        place = len(self.heard)
        self.heard.append(None)

        def done(codes: Codes) -> None:
            assert self.heard[place] is None, "answered twice"
            self.heard[place] = codes

        self.queue.add(broker_id, asked, done)


@pytest.fixture
def asking() -> Asking:
    return Asking()


def test_txn_v7_one_request_per_coordinator_and_the_rest_is_gathered(asking: Asking) -> None:
    asking.add(question(A))
    asking.add(question(B, tid="other"), broker_id=2)
    assert set(asking.queue.take(1) or ()) == {"t"}
    assert set(asking.queue.take(2) or ()) == {"other"}
    asking.add(question(A, tid="u"))
    asking.add(question(B, tid="v"))
    assert asking.queue.take(1) is None
    asking.queue.answered(1, {"t": {A: NONE}})
    assert set(asking.queue.take(1) or ()) == {"u", "v"}
    assert asking.heard == [{A: NONE}, None, None, None]


def test_txn_v7_the_same_transaction_is_asked_for_once(asking: Asking) -> None:
    asking.add(question(A))
    asking.add(question(A, B))
    asked = asking.queue.take(1)
    assert asked is not None
    assert asked["t"].partitions == {A, B}
    asking.queue.answered(1, {"t": {A: NONE, B: ErrorCode.TRANSACTION_ABORTABLE}})
    assert asking.heard == [{A: NONE}, {A: NONE, B: ErrorCode.TRANSACTION_ABORTABLE}]


def test_txn_v7_the_newer_epoch_is_asked_for(asking: Asking) -> None:
    asking.add(question(A, epoch=1))
    asking.add(question(A, epoch=2))
    asking.add(question(A, epoch=1))
    asked = asking.queue.take(1)
    assert asked is not None
    assert asked["t"].producer.epoch == 2
    assert asking.heard == [{A: ErrorCode.INVALID_PRODUCER_EPOCH}, None, {A: ErrorCode.INVALID_PRODUCER_EPOCH}]


def test_a_request_is_bounded(asking: Asking) -> None:
    many = [("a", index) for index in range(PARTITIONS_PER_REQUEST_MAX + 1)]
    asking.add(question(*many))
    asking.add(question(A, B))
    asking.add(question(*many[:-2], tid="u"))
    asking.add(question(A, tid="v"))
    sizes = []
    while asked := asking.queue.take(1):
        sizes.append([(tid, len(one.partitions)) for tid, one in asked.items()])
        asking.queue.answered(1, {tid: dict.fromkeys(one.partitions, NONE) for tid, one in asked.items()})
    assert sizes == [[("t", len(many))], [("t", 2), ("v", 1)], [("u", len(many) - 2)]]
    assert [set((codes or {}).values()) for codes in asking.heard] == [{NONE}] * 4


def test_questions_of_both_kinds_are_not_mixed(asking: Asking) -> None:
    asking.add(question(A))
    asking.add(question(B, verify_only=False))
    first = asking.queue.take(1)
    assert first is not None
    assert (first["t"].verify_only, first["t"].partitions) == (True, {A})
    asking.queue.answered(1, ErrorCode.NETWORK_EXCEPTION)
    second = asking.queue.take(1)
    assert second is not None
    assert (second["t"].verify_only, second["t"].partitions) == (False, {B})
    assert asking.heard == [{A: ErrorCode.NETWORK_EXCEPTION}, None]


def test_an_answer_that_leaves_something_out_is_none(asking: Asking) -> None:
    asking.add(question(A, B))
    asking.add(question(A, tid="u"))
    asking.queue.take(1)
    asking.queue.answered(1, {"t": {A: NONE}})
    assert asking.heard == [{A: NONE, B: ErrorCode.NETWORK_EXCEPTION}, {A: ErrorCode.NETWORK_EXCEPTION}]


@pytest.mark.parametrize(
    ("code", "version", "expected"),
    [
        (NONE, 11, NONE),
        (ErrorCode.NETWORK_EXCEPTION, 12, ErrorCode.NOT_ENOUGH_REPLICAS),
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, 12, ErrorCode.NOT_ENOUGH_REPLICAS),
        (ErrorCode.COORDINATOR_NOT_AVAILABLE, 3, ErrorCode.NOT_ENOUGH_REPLICAS),
        (ErrorCode.NOT_COORDINATOR, 9, ErrorCode.NOT_ENOUGH_REPLICAS),
        (ErrorCode.CONCURRENT_TRANSACTIONS, 11, ErrorCode.NOT_ENOUGH_REPLICAS),
        (ErrorCode.CONCURRENT_TRANSACTIONS, 12, ErrorCode.CONCURRENT_TRANSACTIONS),
        (ErrorCode.PRODUCER_FENCED, 12, ErrorCode.INVALID_PRODUCER_EPOCH),
        (ErrorCode.TRANSACTION_ABORTABLE, 11, ErrorCode.TRANSACTION_ABORTABLE),
        (ErrorCode.TRANSACTION_ABORTABLE, 10, ErrorCode.INVALID_TXN_STATE),
        (ErrorCode.INVALID_PRODUCER_ID_MAPPING, 10, ErrorCode.INVALID_PRODUCER_ID_MAPPING),
    ],
)
def test_txn_t26_what_a_produce_hears(code: ErrorCode, version: int, expected: ErrorCode) -> None:
    assert produce_code(code, version) is expected


@pytest.mark.parametrize(
    ("code", "version", "expected"),
    [
        (ErrorCode.NETWORK_EXCEPTION, 3, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
        (ErrorCode.CONCURRENT_TRANSACTIONS, 5, ErrorCode.CONCURRENT_TRANSACTIONS),
        (ErrorCode.PRODUCER_FENCED, 5, ErrorCode.INVALID_PRODUCER_EPOCH),
        (ErrorCode.TRANSACTION_ABORTABLE, 4, ErrorCode.TRANSACTION_ABORTABLE),
        (ErrorCode.TRANSACTION_ABORTABLE, 3, ErrorCode.INVALID_TXN_STATE),
    ],
)
def test_txn_t26_what_an_offset_commit_hears(code: ErrorCode, version: int, expected: ErrorCode) -> None:
    assert offset_commit_code(code, version) is expected
