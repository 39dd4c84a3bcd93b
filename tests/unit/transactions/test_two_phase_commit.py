"""Two-phase commit (KIP-939): transactions that only their application ends, and how they become timed ones again (TXN-Q1)."""

from __future__ import annotations

import pytest

from strandline.errors import ErrorCode
from strandline.transactions.metadata import NO_TIMEOUT_MS
from tests.unit.transactions.stage import A, B, TransactionStage

LONG_S = 3600
BEYOND_S = 26 * 24 * 3600
"""More than 2^31 ms, so that no timer with that number hides behind it."""


@pytest.fixture(params=[0, 2])
def stage(request: pytest.FixtureRequest) -> TransactionStage:
    return TransactionStage(request.param, transaction_two_phase_commit_enable="true")


def test_txn_q1_it_has_no_timeout_whatever_the_client_asks_for(stage: TransactionStage) -> None:
    for timeout_ms in (0, -1, 60_000, 2**31 - 1):
        producer = stage.initialize(enable_two_phase=True, timeout_ms=timeout_ms)
        assert stage.metadata.timeout_ms == NO_TIMEOUT_MS == 2**31 - 1
    stage.add(producer, A, B)
    stage.advance(BEYOND_S)
    assert stage.state == "Ongoing"
    assert stage.end(producer).code is ErrorCode.NONE
    assert stage.state == "PrepareCommit"


def test_txn_q1_without_the_brokers_consent_it_is_refused() -> None:
    stage = TransactionStage(2)
    assert stage.refused_initialize(enable_two_phase=True) is ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert not stage.log


def test_txn_q2_what_is_prepared_can_not_be_kept(stage: TransactionStage) -> None:
    for is_two_phase in (True, False):
        code = stage.refused_initialize(keep_prepared=True, enable_two_phase=is_two_phase)
        assert code is ErrorCode.UNSUPPORTED_VERSION
    assert not stage.log


def test_txn_q1_the_longest_timeout_of_others_is_checked_as_ever(stage: TransactionStage) -> None:
    assert stage.refused_initialize(timeout_ms=NO_TIMEOUT_MS) is ErrorCode.INVALID_TRANSACTION_TIMEOUT


def test_txn_q1_it_survives_failovers_also_to_a_broker_that_would_not_begin_one(stage: TransactionStage) -> None:
    producer = stage.initialize(enable_two_phase=True)
    stage.add(producer, A)
    stage.failover()
    stage.node.config = TransactionStage().node.config
    stage.failover()
    stage.advance(LONG_S)
    assert (stage.state, stage.metadata.timeout_ms) == ("Ongoing", NO_TIMEOUT_MS)
    assert stage.end(producer).code is ErrorCode.NONE


def test_txn_q1_the_next_transaction_of_the_same_producer_has_none_either(stage: TransactionStage) -> None:
    producer = stage.transact(stage.initialize(enable_two_phase=True))
    stage.add(producer, A)
    stage.advance(LONG_S)
    assert (stage.state, stage.metadata.timeout_ms) == ("Ongoing", NO_TIMEOUT_MS)


def test_txn_q3_any_holder_of_the_pair_ends_it_also_after_a_failover(stage: TransactionStage) -> None:
    """The application's next process: it knows the pair from its own note, and asks for no other."""
    producer = stage.initialize(enable_two_phase=True)
    stage.add(producer, A)
    stage.advance(LONG_S)
    stage.failover()
    assert stage.end(producer, commit=True).code is ErrorCode.NONE
    stage.mark_all()
    assert stage.state == "CompleteCommit"


def test_txn_q4_an_initialization_without_it_aborts_what_is_open_and_sets_a_timeout_again(
    stage: TransactionStage,
) -> None:
    """As the administrator's force-terminate does."""
    producer = stage.initialize(enable_two_phase=True)
    stage.add(producer, A)
    stage.advance(LONG_S)
    assert stage.refused_initialize(timeout_ms=30_000) is ErrorCode.CONCURRENT_TRANSACTIONS
    assert stage.state == "PrepareAbort"
    stage.mark_all()
    timed = stage.initialize(timeout_ms=30_000)
    assert stage.metadata.timeout_ms == 30_000
    assert stage.end(producer).code is not ErrorCode.NONE
    stage.add(timed, A)
    stage.advance(41)
    assert stage.state == "PrepareAbort"


def test_txn_q1_one_with_a_timeout_loses_it(stage: TransactionStage) -> None:
    producer = stage.initialize(timeout_ms=30_000)
    producer = stage.initialize(enable_two_phase=True, expected=producer)
    stage.add(producer, A)
    stage.advance(LONG_S)
    assert stage.state == "Ongoing"


def test_txn_q4_an_id_without_an_open_transaction_expires_like_any_other(stage: TransactionStage) -> None:
    stage.initialize(enable_two_phase=True)
    stage.advance(8 * 24 * 3600)
    assert not stage.shard.transactions
