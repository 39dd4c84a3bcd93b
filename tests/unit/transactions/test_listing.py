"""DescribeTransactions and ListTransactions (TXN-T37, TXN-T38)."""

from __future__ import annotations

import pytest

from strandline.errors import ErrorCode, KafkaError
from strandline.transactions.listing import TransactionFilters, known_states
from strandline.transactions.states import TransactionState
from tests.unit.transactions.stage import A, TransactionStage


@pytest.fixture
def stage() -> TransactionStage:
    stage = TransactionStage(2)
    stage.initialize("empty")
    stage.add(stage.initialize("open"), A, tid="open")
    stage.transact(stage.initialize("done"), tid="done")
    stage.advance(5)
    return stage


def listed(stage: TransactionStage, **filters: object) -> set[str]:
    found = stage.shard.list(TransactionFilters(**filters), stage.at)  # type: ignore[arg-type]
    return {one.transactional_id for one in found}


def test_txn_t38_filters(stage: TransactionStage) -> None:
    assert listed(stage) == {"empty", "open", "done"}
    assert listed(stage, producer_ids=frozenset({101})) == {"open"}
    states, unknown = known_states(["Ongoing", "Nonsense", "Empty"])
    assert unknown == ["Nonsense"]
    assert listed(stage, states=states, has_states=True) == {"open", "empty"}
    assert listed(stage, states=frozenset(), has_states=True) == set()
    assert listed(stage, matches=lambda tid: tid.startswith("d")) == {"done"}


def test_txn_t38_durations_are_counted_from_the_start(stage: TransactionStage) -> None:
    """An id that never began anything has run for ever, as with Kafka."""
    assert listed(stage, longer_than_ms=4999) == {"empty", "open", "done"}
    assert listed(stage, longer_than_ms=5000) == {"empty"}
    assert listed(stage, longer_than_ms=0) == {"empty", "open", "done"}


def test_txn_t37_description(stage: TransactionStage) -> None:
    found = stage.shard.describe("open")
    assert found.metadata.state is TransactionState.ONGOING
    assert found.partitions == {A}
    with pytest.raises(KafkaError) as error:
        stage.shard.describe("unknown")
    assert error.value.code is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
