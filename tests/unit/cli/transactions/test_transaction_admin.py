"""Which transactions hang."""

# mypy: allow-untyped-calls, disable-error-code="arg-type"

from __future__ import annotations

import pytest

from strandline.cli.transactions import transaction_admin
from strandline.cli.transactions.transaction_admin import find_hanging, partitions_of
from strandline.errors import ErrorCode, KafkaError
from tests.unit.cli.transactions.in_memory_transactions import InMemoryTransactions

A, B = ("hello", 0), ("hello", 1)


def hanging(cluster: InMemoryTransactions, silent_for_ms: int = 10) -> list[tuple[str, int]]:
    found = find_hanging(cluster, [A, B], None, silent_for_ms=silent_for_ms, now_ms=100)
    return [transaction.partition for transaction in found]


@pytest.fixture
def cluster() -> InMemoryTransactions:
    """Producer 7 has a transaction open at both partitions, since 50 ms."""
    found = InMemoryTransactions()
    found.open(A, 7, 4, 50)
    found.open(B, 7, 2, 50)
    return found


def test_txn_t39_a_transaction_hangs_if_no_coordinator_knows_its_producer(cluster: InMemoryTransactions) -> None:
    cluster.add("other", 8, "Ongoing", A, B)
    assert hanging(cluster) == [A, B]


def test_txn_t39_a_transaction_hangs_if_its_transactional_id_does_not_list_the_partition(
    cluster: InMemoryTransactions,
) -> None:
    cluster.add("pay", 7, "PrepareCommit", B)
    assert hanging(cluster) == [A]
    cluster.add("pay", 7, "Ongoing", A, B)
    assert hanging(cluster) == []


def test_a_transactional_id_that_is_gone_since_it_was_listed_ends_nothing(
    cluster: InMemoryTransactions, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.add("pay", 7, "Ongoing", A, B)
    gone = KafkaError(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
    monkeypatch.setattr(cluster, "describe_transactions", lambda names: dict.fromkeys(names, gone))
    assert hanging(cluster) == [A, B]
    unknown = KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    monkeypatch.setattr(cluster, "describe_transactions", lambda names: dict.fromkeys(names, unknown))
    with pytest.raises(KafkaError, match="COORDINATOR_NOT_AVAILABLE"):
        hanging(cluster)


def test_a_transaction_that_is_younger_is_not_asked_about(cluster: InMemoryTransactions) -> None:
    assert hanging(cluster, silent_for_ms=50) == []
    assert cluster.asked == []


def test_a_producer_without_an_open_transaction_never_hangs() -> None:
    found = InMemoryTransactions()
    found.open(A, 7, -1, 0)
    found.open(B, 7, 0, 0)
    assert hanging(found) == [B]


def test_partitions_are_searched_in_batches(cluster: InMemoryTransactions, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transaction_admin, "BATCH_MAX", 1)
    cluster.open(("other", 0), 7, 1, 50)
    assert partitions_of(cluster, [], None) == [A, B, ("other", 0)]
    assert partitions_of(cluster, ["hello"], 2) == [A, B]
    assert partitions_of(cluster, ["hello"], 3) == []
    assert hanging(cluster) == [A, B]
