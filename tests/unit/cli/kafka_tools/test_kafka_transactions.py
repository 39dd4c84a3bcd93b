"""`kafka-transactions`: Kafka's headings, lines and words; tests/system/test_transaction_tools.py compares them with Kafka's."""

# mypy: allow-incomplete-defs, allow-untyped-calls, allow-untyped-defs

from __future__ import annotations

import pytest

from strandline.cli.access import connection
from strandline.client.flow.transaction_descriptions import AbortTransactionSpec
from strandline.errors import ErrorCode, KafkaError
from tests.unit.cli.transactions.in_memory_transactions import InMemoryTransactions

NOW_MS = 1_800_000_000_000
HOUR_MS = 3_600_000
A, B = ("hello", 0), ("hello", 1)


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> InMemoryTransactions:
    found = InMemoryTransactions()
    found.add("pay", 7, "Ongoing", A, B, start_ms=NOW_MS - HOUR_MS)
    found.add("done", 8, "Empty")
    found.open(A, 7, 4, NOW_MS - HOUR_MS, coordinator_epoch=2)
    found.open(B, 9, 5, NOW_MS - HOUR_MS)
    monkeypatch.setattr(connection, "connect_admin", found.connect)
    monkeypatch.setattr("time.time_ns", lambda: NOW_MS * 1_000_000)
    return found


@pytest.fixture
def kafka(call):
    return lambda *arguments: call("kafka-transactions", "--bootstrap-server", "127.0.0.1:1", *arguments)


def test_a_list_in_kafkas_columns(cluster, kafka):
    assert kafka("list").out.splitlines() == [
        "TransactionalId\tCoordinator\tProducerId\tTransactionState\t",
        "done           \t1          \t8         \tEmpty           \t",
        "pay            \t1          \t7         \tOngoing         \t",
    ]
    kafka("list", "--duration-filter", "5", "--transactional-id-pattern", "p.*")
    kafka("list", "--duration-filter", "-1")
    assert cluster.asked[1:] == [{"longer_than_ms": 5, "pattern": "p.*"}, {"longer_than_ms": None, "pattern": None}]


def test_a_description_in_kafkas_columns(cluster, kafka):
    row = kafka("describe", "--transactional-id", "pay").out.splitlines()[1]
    start = str(NOW_MS - HOUR_MS)
    cells = ["1", "pay", "7", "3", "Ongoing", "60000", start, str(HOUR_MS), "hello-0,hello-1", ""]
    assert [cell.strip() for cell in row.split("\t")] == cells
    assert kafka("describe", "--transactional-id", "done").out.splitlines()[1].split("\t")[6].strip() == "None"


def test_producers_in_kafkas_columns(cluster, kafka):
    lines = kafka("describe-producers", "--topic", "hello", "--partition", "1").out.splitlines()
    assert lines[0].split("\t")[:3] == ["ProducerId", "ProducerEpoch", "LatestCoordinatorEpoch"]
    assert [cell.strip() for cell in lines[1].split("\t")] == ["9", "3", "-1", "9", str(NOW_MS - HOUR_MS), "5", ""]


def test_what_hangs_in_kafkas_columns(cluster, kafka):
    lines = kafka("find-hanging", "--topic", "hello").out.splitlines()
    assert [cell.strip() for cell in lines[1].split("\t")] == [
        "hello",
        "1",
        "9",
        "3",
        "-1",
        "5",
        str(NOW_MS - HOUR_MS),
        "60",
        "",
    ]
    assert kafka("find-hanging", "--broker-id", "2").out.splitlines() == lines
    assert len(kafka("find-hanging", "--topic", "hello", "--partition", "0").out.splitlines()) == 1
    assert kafka("find-hanging", "--partition", "0").err == (
        "The `find-hanging` command requires either --topic or --broker-id to limit the scope of the search\n"
    )
    done = kafka("find-hanging", "--partition", "0", "--broker-id", "1")
    assert (done.code, done.err) == (1, "The --partition argument requires --topic to be provided\n")


def test_aborts_say_nothing(cluster, kafka):
    done = kafka("abort", "--topic", "hello", "--partition", "0", "--start-offset", "4")
    assert (done.code, done.out, done.err) == (0, "", "")
    numbers = ("--producer-id", "9", "--producer-epoch", "3", "--coordinator-epoch", "-1")
    kafka("abort", "--topic", "hello", "--partition", "1", *numbers)
    assert cluster.aborted == [AbortTransactionSpec(A, 7, 3, 2), AbortTransactionSpec(B, 9, 3, 0)]
    assert kafka("forceTerminateTransaction", "--transactionalId", "pay").out == ""


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ((), "The transaction to abort must be identified either with --start-offset"),
        (("--producer-id", "9"), "Missing required argument --producer-epoch"),
        (("--producer-id", "9", "--producer-epoch", "3"), "Missing required argument --coordinator-epoch"),
        (
            ("--start-offset", "6"),
            "Could not find any open transactions starting at offset 6 on partition hello-1\n",
        ),
    ],
)
def test_an_abort_that_names_nothing(cluster, kafka, given, said):
    done = kafka("abort", "--topic", "hello", "--partition", "1", *given)
    assert (done.code, done.err[: len(said)]) == (1, said)


def test_failures_in_kafkas_words(cluster, kafka):
    def failure(*arguments: str) -> str:
        done = kafka(*arguments)
        assert (done.code, done.out) == (1, "")
        words, end = done.err.split(". Enable debug")
        assert end == " logging for additional detail.\n"
        return str(words)

    assert failure("describe", "--transactional-id", "no") == (
        "Failed to describe transaction state of transactional-id `no`: DescribeTransactions request for transactionalId "
        "`no` failed because the ID could not be found"
    )
    assert failure("list", "--transactional-id-pattern", "(") == (
        "Failed to list transactions: ListTransactions request sent to broker 1 failed with an unexpected exception"
    )
    assert failure("describe-producers", "--topic", "hello", "--partition", "0", "--broker-id", "3") == (
        "Failed to describe producers for partition hello-0 on broker 3: Failed to describe active producers for partition "
        "hello-0 on brokerId 3"
    )
    cluster.refusal = KafkaError(ErrorCode.INVALID_PRODUCER_EPOCH)
    spec = "AbortTransactionSpec(topicPartition=hello-1, producerId=9, producerEpoch=3, coordinatorEpoch=0)"
    assert failure("abort", "--topic", "hello", "--partition", "1", "--start-offset", "5") == (
        f"Failed to abort transaction {spec}: WriteTxnMarkers request with {spec} failed due an invalid producer epoch"
    )
    assert failure("forceTerminateTransaction", "--transactionalId", "x") == (
        "Failed to force terminate transactionalId `x`: InitProducerId request for transactionalId `x` failed due to "
        "unexpected error"
    )
