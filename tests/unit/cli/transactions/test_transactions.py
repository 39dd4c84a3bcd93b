"""`transactions`: what it prints of transactions, and what it does to them."""

# mypy: allow-incomplete-defs, allow-untyped-calls, allow-untyped-defs

from __future__ import annotations

import json

import pytest

from strandline.cli.access import connection
from strandline.client.flow.transaction_descriptions import AbortTransactionSpec
from strandline.errors import ErrorCode, KafkaError
from tests.unit.cli.transactions.in_memory_transactions import InMemoryTransactions

A, B = ("hello", 0), ("hello", 1)
NOW_MS = 1_800_000_000_000
HOUR_MS = 3_600_000


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> InMemoryTransactions:
    """`pay` has a transaction open at hello-0, `done` is at rest; at hello-1 one of an unknown producer hangs."""
    found = InMemoryTransactions()
    found.add("pay", 7, "Ongoing", A, start_ms=NOW_MS - HOUR_MS)
    found.add("done", 8, "CompleteCommit")
    found.open(A, 7, 4, NOW_MS - HOUR_MS, coordinator_epoch=2)
    found.open(A, 8, -1, NOW_MS)
    found.open(B, 9, 5, NOW_MS - HOUR_MS)
    monkeypatch.setattr(connection, "connect_admin", found.connect)
    monkeypatch.setattr("time.time_ns", lambda: NOW_MS * 1_000_000)
    return found


def test_transactional_ids_are_listed_with_filters(cluster, call):
    done = call("transactions", "list")
    assert done.out.splitlines() == [
        "transactional id\tstate\tcoordinator\tproducer",
        "done\tCompleteCommit\t1\t8",
        "pay\tOngoing\t1\t7",
    ]
    filters = ("--state", "ongoing", "--producer-id", "7", "--longer-than", "5", "--pattern", "p.*")
    done = call("transactions", "list", *filters, "--json")
    assert json.loads(done.out) == [
        {"transactional_id": "pay", "coordinator_id": 1, "producer_id": 7, "state": "Ongoing"}
    ]
    assert cluster.asked[1] == {"states": ("Ongoing",), "producer_ids": (7,), "longer_than_ms": 5, "pattern": "p.*"}


def test_none_and_none_that_fit_are_two_things_and_a_pattern_may_be_none(cluster, call):
    assert call("transactions", "list", "--state", "Empty").err == "no transactional id fits\n"
    done = call("transactions", "list", "--pattern", "(")
    assert (done.code, done.err) == (1, "strandline: --pattern (: not a regular expression of RE2\n")
    cluster.ids.clear()
    assert call("transactions", "list").err == "no transactional ids\n"


def test_those_that_are_there_are_described_and_the_other_is_named(cluster, call):
    done = call("transactions", "describe", "pay", "nosuch")
    assert done.code == 1
    assert done.out.splitlines()[1] == "pay\tOngoing\t1\t7\t3\t60000 ms\t3600000 ms\thello-0"
    assert done.err == (
        "strandline: there is no transactional id 'nosuch'; `strandline transactions list` lists the existing ones\n"
    )
    everything = json.loads(call("transactions", "describe", "--json").out)
    assert [each["transactional_id"] for each in everything] == ["done", "pay"]
    assert everything[1]["partitions"] == [{"topic": "hello", "partition": 0}]
    assert (everything[0]["start_ms"], everything[0]["age_ms"], everything[1]["age_ms"]) == (None, None, HOUR_MS)


def test_producers_of_partitions_with_what_they_have_open(cluster, call):
    done = call("transactions", "describe-producers", "hello-0", "hello-7")
    assert done.code == 1
    assert done.out.splitlines()[1:] == [
        f"hello\t0\t7\t3\t2\t9\t{NOW_MS - HOUR_MS}\t4",
        f"hello\t0\t8\t3\t-\t9\t{NOW_MS}\t-",
    ]
    assert done.err == "strandline: hello-7: no such partition (UNKNOWN_TOPIC_OR_PARTITION)\n"
    (row,) = json.loads(call("transactions", "describe-producers", "hello-1", "--broker-id", "2", "--json").out)
    assert (row["coordinator_epoch"], row["current_txn_start_offset"]) == (None, 5)
    assert "NOT_LEADER_OR_FOLLOWER" in call("transactions", "describe-producers", "hello-1", "--broker-id", "3").err
    assert call("transactions", "describe-producers", "hello").err.startswith("strandline: 'hello' is not a partition")


def test_what_hangs_is_found_and_how_it_ends_is_said(cluster, call):
    done = call("transactions", "find-hanging")
    assert done.out.splitlines()[1:] == ["hello\t1\t9\t3\t-\t5\t60"]
    assert done.err == "`strandline transactions abort hello-1 --start-offset 5` ends the first\n"
    (row,) = json.loads(call("transactions", "find-hanging", "--topic", "hello", "--json").out)
    assert (row["producer_id"], row["silent_ms"]) == (9, HOUR_MS)
    done = call("transactions", "find-hanging", "--max-transaction-timeout", "60")
    assert (done.code, done.out, done.err) == (0, "", "no transaction hangs\n")


def test_what_hangs_is_aborted(cluster, call):
    done = call("transactions", "abort", "hello-1", "--start-offset", "5")
    assert (done.code, done.out) == (0, "Aborted the transaction of producer 9 at hello-1.\n")
    assert cluster.aborted == [AbortTransactionSpec(B, 9, 3, 0)]
    done = call("transactions", "abort", "hello-1", "--start-offset", "4")
    assert (done.code, "no transaction is open at hello-1 since offset 4" in done.err) == (1, True)


def test_what_its_coordinator_will_end_is_aborted_only_by_its_numbers(cluster, call):
    done = call("transactions", "abort", "hello-0", "--start-offset", "4")
    assert (done.code, cluster.aborted) == (1, [])
    assert "`strandline transactions force-terminate pay` aborts all of it" in done.err
    numbers = ("--producer-id", "7", "--producer-epoch", "3", "--coordinator-epoch", "2", "--json")
    assert json.loads(call("transactions", "abort", "hello-0", *numbers).out) == {
        "topic": "hello",
        "partition": 0,
        "producer_id": 7,
        "aborted": True,
    }
    assert cluster.aborted == [AbortTransactionSpec(A, 7, 3, 2)]


@pytest.mark.parametrize("given", [(), ("--producer-id", "7"), ("--start-offset", "5", "--producer-id", "7")])
def test_an_abort_needs_one_identity(cluster, call, given):
    assert call("transactions", "abort", "hello-1", *given).code == 2


def test_a_transactional_id_is_terminated_or_the_refusal_is_shown(cluster, call):
    assert call("transactions", "force-terminate", "pay").out == "Terminated what transactional id pay had open.\n"
    cluster.refusal = KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS, "still being ended")
    done = call("transactions", "force-terminate", "pay", "--json")
    assert json.loads(done.out) == [
        {"transactional_id": "pay", "terminated": False, "error": "CONCURRENT_TRANSACTIONS"}
    ]
    assert (done.code, done.err) == (1, "strandline: still being ended (CONCURRENT_TRANSACTIONS)\n")
