"""What is kept of transactions for those who look afterwards."""

from __future__ import annotations

import pytest

from strandline.errors import ErrorCode
from strandline.transactions.metadata import ProducerIdAndEpoch
from tests.unit.transactions.stage import A, B, TransactionStage


def test_a_transaction_that_its_producer_ends_leaves_nothing() -> None:
    stage = TransactionStage()
    producer = stage.initialize()
    for commit in (True, False):
        producer = stage.transact(producer, commit=commit)
    assert stage.node.noted == []


def test_txn_t28_an_abort_by_timeout_says_so_once_it_is_committed() -> None:
    stage = TransactionStage()
    stage.add(stage.initialize(timeout_ms=30_000), A, B)
    stage.holds = True
    stage.advance(40)
    assert stage.state == "PrepareAbort"
    assert stage.node.noted == []
    stage.commit()
    assert stage.node.noted == [("transaction aborted", "t: it was open for longer than its timeout of 30000 ms")]
    assert stage.node.facts == {"transactional_id": "t", "producer_id": 100, "producer_epoch": 1, "partitions": 2}


class NoRoom(Exception):
    pass


def test_a_journal_that_fails_holds_up_no_marker(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = TransactionStage()
    stage.add(stage.initialize(timeout_ms=30_000), A)

    def note(kind: str, partition: int, reason: str, **facts: object) -> None:
        raise NoRoom

    monkeypatch.setattr(stage.node, "note", note)
    with pytest.raises(NoRoom):
        stage.advance(40)
    assert len(stage.node.sent) == 1


def test_an_open_transaction_that_another_producer_ends_is_noted() -> None:
    stage = TransactionStage()
    stage.add(stage.initialize(), A)
    assert stage.refused_initialize() is ErrorCode.CONCURRENT_TRANSACTIONS
    assert stage.node.noted == [("transaction aborted", "t: another producer took over its transactional id")]


def test_a_producer_that_is_fenced_is_noted_once_however_often_it_asks() -> None:
    stage = TransactionStage(transaction_version=0)
    zombie = stage.initialize()
    stage.initialize()
    for _ in range(3):
        assert stage.add(zombie, A) is ErrorCode.PRODUCER_FENCED
        assert stage.end(zombie).code is ErrorCode.PRODUCER_FENCED
        assert stage.verify(zombie, A) is ErrorCode.PRODUCER_FENCED
        assert stage.refused_initialize(expected=ProducerIdAndEpoch(zombie.producer_id, 9)) is ErrorCode.PRODUCER_FENCED
    assert stage.node.noted == [("producer fenced", "t: epoch 0 is refused, 1 is the current one")]
    stage.initialize()
    stage.add(zombie, A)
    assert stage.node.noted[1:] == [("producer fenced", "t: epoch 0 is refused, 2 is the current one")]


def test_a_producer_id_that_is_fenced_is_noted() -> None:
    stage = TransactionStage()
    stage.initialize()
    assert stage.refused_initialize(expected=ProducerIdAndEpoch(7, 0)) is ErrorCode.PRODUCER_FENCED
    assert stage.node.noted == [("producer fenced", "t: producer id 7 is refused, 100 is the current one")]


def test_an_unknown_transactional_id_or_a_transaction_that_is_ending_fences_no_producer() -> None:
    stage = TransactionStage()
    producer = stage.initialize()
    assert stage.add(producer, A, tid="unknown") is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    stage.add(producer, A)
    stage.end(producer)
    assert stage.refused_initialize() is ErrorCode.CONCURRENT_TRANSACTIONS
    assert stage.node.noted == []


def test_what_is_remembered_of_an_expired_id_goes_with_it() -> None:
    stage = TransactionStage(transaction_version=0)
    zombie = stage.initialize()
    stage.initialize()
    stage.add(zombie, A)
    assert stage.shard.fenced_by
    stage.advance(8 * 24 * 3600)
    assert not stage.shard.transactions
    assert not stage.shard.fenced_by


def test_txn_t33_a_refused_marker_is_noted_once_in_each_load() -> None:
    stage = TransactionStage()
    producer = stage.initialize()
    stage.add(producer, A)
    stage.end(producer)
    [marker] = stage.node.sent
    for _ in range(2):
        stage.shard.refused(marker)
    expected = ("marker refused", "t: a leader knows a newer epoch of producer 100 or of its coordinator")
    assert stage.node.noted == [expected]
    stage.failover()
    assert stage.node.noted[1:] == [("transactions loaded", "coordinates 1 transactional id, 1 of them to be ended")]
    stage.shard.refused(marker)
    assert len(stage.node.noted) == 2, "the marker of an older load"
    stage.shard.refused(stage.node.sent[0])
    assert stage.node.noted[2:] == [expected]


def test_a_load_without_transactional_ids_is_no_event() -> None:
    stage = TransactionStage()
    stage.failover()
    assert stage.node.noted == []
    stage.transact(stage.initialize())
    stage.initialize("u")
    stage.failover()
    assert stage.node.noted == [("transactions loaded", "coordinates 2 transactional ids, 0 of them to be ended")]


def test_a_name_that_is_endless_is_cut_off() -> None:
    """The journal keeps thousands of events."""
    stage = TransactionStage()
    tid = "x" * 32_767
    zombie = stage.initialize(tid)
    stage.add(stage.initialize(tid), A, tid=tid)
    stage.end(zombie, tid=tid)
    assert stage.refused_initialize(tid) is ErrorCode.CONCURRENT_TRANSACTIONS
    stage.shard.refused(stage.node.sent[0])
    shown = f"{'x' * 200}… (32767 characters)"
    assert [kind for kind, _ in stage.node.noted] == ["producer fenced", "transaction aborted", "marker refused"]
    assert all(reason.startswith(f"{shown}: ") and len(reason) < 400 for _, reason in stage.node.noted)
    assert stage.node.facts["transactional_id"] == shown
