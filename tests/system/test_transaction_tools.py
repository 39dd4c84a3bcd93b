"""Kafka's own tools for transactions, unchanged, and ours beside them: the same flags, the same lines.

The transactions are librdkafka's: one open, one committed, one aborted; those that hang are written behind the coordinator's back.
Kafka's tool prints in the order of a hash table, so it is lines that are compared, sorted.
"""

# mypy: disable-error-code="misc"

from __future__ import annotations

import contextlib
import io
import json
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple

import pytest
from bench.kafka_cluster import kafka_cluster
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from strandline.cli.main import run
from strandline.client.blocking import Admin, Client
from strandline.client.flow.descriptions import CreatedTopic, NewTopic
from strandline.records.batch import BatchBuilder
from strandline.transactions.states import TransactionState
from strandline.wire import messages
from tests.judges.java import Kafka, Result, Run, judge
from tests.system.raw_client import PRODUCE, RawClient
from tests.system.server import eventually, format_data, running

TRANSACTIONS = "org.apache.kafka.tools.TransactionsCommand"
DUMP = "org.apache.kafka.tools.DumpLogSegments"
TOPIC, PARTITIONS = "read", 3
HANGING_ON = 2
"""The partition of transactions that no coordinator will end."""
UNKNOWN_PRODUCERS = (900_001, 900_002)
OLD_MS = 3_600_000 + 5_000
"""The age of their records: longer than any transaction may last, and not about to become another number of minutes."""
DURATION = 7
"""The column of a description that is another number each time."""
TIMEOUT_S = 30.0
PROPERTIES = {
    "transaction.state.log.num.partitions": "1",
    "offsets.topic.num.partitions": "1",
    # Else no transaction could be made to hang.
    "transaction.partition.verification.enable": "false",
}

pytestmark = pytest.mark.java


class Target(NamedTuple):
    """A cluster of one node, and its log dir."""

    bootstrap: str
    data: Path

    @property
    def server(self) -> tuple[str, str]:
        return "--bootstrap-server", self.bootstrap


@contextlib.contextmanager
def apache_kafka(directory: Path) -> Iterator[Target]:
    with kafka_cluster(1, directory=directory, heap="400m", properties=PROPERTIES) as cluster:
        yield Target(cluster.bootstrap, directory / "data-1")


@contextlib.contextmanager
def strandline(directory: Path) -> Iterator[Target]:
    format_data(directory / "data")
    with running(directory, directory / "data", PROPERTIES) as server:
        yield Target(server.bootstrap, directory / "data")


TARGETS: dict[str, Callable[[Path], AbstractContextManager[Target]]] = {
    "kafka": apache_kafka,
    "strandline": strandline,
}
"""Whose transactions the tools look at."""


@pytest.fixture(scope="module")
def kafka() -> Kafka:
    return judge()


@pytest.fixture(scope="module", params=TARGETS)
def target(request: pytest.FixtureRequest, kafka: Kafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    with TARGETS[request.param](tmp_path_factory.mktemp("transaction-tools")) as started:
        with Client(started.bootstrap) as client:
            made = Admin(client).create_topics([NewTopic(TOPIC, PARTITIONS, 1), NewTopic("other", 1, 1)])
        assert [type(topic) for topic in made.values()] == [CreatedTopic] * 2
        yield started


def begin(target: Target, name: str) -> Producer:
    """A producer with a transaction open at three partitions."""
    settings = {"bootstrap.servers": target.bootstrap, "transactional.id": name, "transaction.timeout.ms": 600_000}
    producer = Producer(settings)
    producer.init_transactions(TIMEOUT_S)
    producer.begin_transaction()
    for partition in (0, 1):
        producer.produce(TOPIC, name.encode(), partition=partition)
    producer.produce("other", name.encode(), partition=0)
    assert producer.flush(TIMEOUT_S) == 0
    return producer


@pytest.fixture(scope="module")
def producers(target: Target) -> Iterator[dict[str, Producer]]:
    """Of transactions that stay open; others were committed and aborted before."""
    begin(target, "committed").commit_transaction(TIMEOUT_S)
    begin(target, "aborted").abort_transaction(TIMEOUT_S)
    found = {name: begin(target, name) for name in ("open-a", "open-b")}
    eventually(lambda: states(target) == STATES, "both ends are complete", TIMEOUT_S)
    yield found
    found.clear()


STATES = {"committed": "CompleteCommit", "aborted": "CompleteAbort", "open-a": "Ongoing", "open-b": "Ongoing"}


def states(target: Target) -> dict[str, str]:
    rows = json.loads(ours(target, "transactions", "list", "--json").check().out)
    return {row["transactional_id"]: row["state"] for row in rows}


def hang(target: Target, producer_id: int, timestamp: int) -> None:
    """Open a transaction at a partition without the coordinator's knowledge."""
    builder = BatchBuilder()
    builder.append(b"k", b"hanging", timestamp=timestamp)
    batch = bytes(builder.build(producer_id=producer_id, producer_epoch=0, base_sequence=0, transactional=True))
    Request = messages.request(PRODUCE)
    partition = Request.PartitionProduceData(index=HANGING_ON, records=batch)
    topic = Request.TopicProduceData(name=TOPIC, partition_data=[partition])
    client = RawClient(int(target.bootstrap.rpartition(":")[2]))
    reply = client.ask(PRODUCE, 9, transactional_id="nobody's", acks=-1, timeout_ms=10_000, topic_data=[topic])
    (code,) = [p.error_code for t in reply.responses for p in t.partition_responses]
    assert code == 0


# Both


def ours(target: Target, command: str, *arguments: str) -> Result:
    out, err = io.StringIO(), io.StringIO()
    access = target.server
    words = [command, *access, *arguments] if command.startswith("kafka-") else [command, *arguments, *access]
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run(words)
    return Result(code, out.getvalue(), err.getvalue())


def both(kafka: Kafka, target: Target, calls: Sequence[Sequence[str]]) -> list[tuple[Result, Result]]:
    theirs = kafka.run_all([Run(TRANSACTIONS, (*target.server, *call)) for call in calls])
    mine = [ours(target, "kafka-transactions", *call) for call in calls]
    return list(zip(theirs, mine, strict=True))


def table(result: Result) -> list[list[str]]:
    """The heading and the sorted rows, cell by cell as wide as they are."""
    heading, *rows = result.check().out.splitlines()
    return [heading.split("\t"), *sorted(row.split("\t") for row in rows)]


def assert_the_same_lines(kafka: Kafka, target: Target, calls: Sequence[Sequence[str]]) -> list[list[list[str]]]:
    """The tables of Kafka's tool."""
    found = []
    for call, (theirs, mine) in zip(calls, both(kafka, target, calls), strict=True):
        assert table(mine) == table(theirs), call
        found.append(table(theirs))
    return found


def test_transactional_ids_are_listed(kafka: Kafka, target: Target, producers: dict[str, Producer]) -> None:
    everything, young, some = assert_the_same_lines(
        kafka,
        target,
        [
            ["list"],
            ["list", "--duration-filter", "3600000"],
            ["list", "--transactional-id-pattern", "open-[ab]", "--duration-filter", "0"],
        ],
    )
    assert [row[0].strip() for row in everything[1:]] == sorted(STATES)
    assert young[1:] == []
    assert [row[0] for row in some[1:]] == ["open-a         ", "open-b         "]


def test_transactional_ids_are_described(kafka: Kafka, target: Target, producers: dict[str, Producer]) -> None:
    calls = [["describe", "--transactional-id", name] for name in STATES]
    for call, (theirs, mine) in zip(calls, both(kafka, target, calls), strict=True):
        found = []
        for result in (theirs, mine):
            heading, row = (line.split("\t") for line in result.check().out.splitlines())
            assert row.pop(DURATION).strip().isdigit()
            partitions = sorted(row.pop(DURATION).strip().split(","))
            found.append((heading, row, partitions))
        assert found[0] == found[1], call
        is_open = call[-1].startswith("open")
        assert found[0][2] == (["other-0", "read-0", "read-1"] if is_open else [""])


def test_producers_are_described(kafka: Kafka, target: Target, producers: dict[str, Producer]) -> None:
    calls = [["describe-producers", "--topic", TOPIC, "--partition", partition] for partition in "01"]
    calls.append([*calls[0], "--broker-id", "1"])
    first, *_ = assert_the_same_lines(kafka, target, calls)
    assert [row[5].strip() for row in first[1:]].count("None") == 2


def test_what_hangs_is_found_and_aborted(kafka: Kafka, target: Target, producers: dict[str, Producer]) -> None:
    search = ["find-hanging", "--topic", TOPIC]
    timestamp = time.time_ns() // 1_000_000 - OLD_MS
    for producer_id in UNKNOWN_PRODUCERS:
        hang(target, producer_id, timestamp)
    searches = [search, [*search, "--partition", str(HANGING_ON)], ["find-hanging", "--broker-id", "1"]]
    found = assert_the_same_lines(kafka, target, searches)
    for rows in found:
        assert [row[2] for row in rows[1:]] == [f"{producer_id}    " for producer_id in UNKNOWN_PRODUCERS]
    # What is open is younger; were it not, its coordinator would still end it.
    assert_the_same_lines(kafka, target, [[*search, "--max-transaction-timeout", "0"]])

    abort = ["abort", "--topic", TOPIC, "--partition", str(HANGING_ON), "--start-offset"]
    first, second = (row[5].strip() for row in found[0][1:])
    assert ours(target, "kafka-transactions", *abort, first) == Result(0, "", "")
    kafka.run(TRANSACTIONS, *target.server, *abort, second).check()
    (left,) = assert_the_same_lines(kafka, target, [search])
    assert left[1:] == []
    assert read_committed(target, HANGING_ON) == []


def read_committed(target: Target, partition: int) -> list[bytes]:
    """Everything up to the end of the log, which no open transaction holds back."""
    settings = {"bootstrap.servers": target.bootstrap, "group.id": "none", "isolation.level": "read_committed"}
    consumer = Consumer(settings | {"enable.partition.eof": True})
    consumer.assign([TopicPartition(TOPIC, partition, 0)])
    values: list[bytes] = []
    while True:
        message = consumer.poll(TIMEOUT_S)
        assert message is not None
        if message.error():
            break
        values.append(message.value() or b"")
    (at,) = consumer.position([TopicPartition(TOPIC, partition)])
    assert at.offset == consumer.get_watermark_offsets(TopicPartition(TOPIC, partition), TIMEOUT_S)[1]
    consumer.close()
    return values


def test_our_own_command_finds_and_aborts_what_hangs(target: Target, producers: dict[str, Producer]) -> None:
    hang(target, 900_003, time.time_ns() // 1_000_000 - OLD_MS)
    (row,) = json.loads(ours(target, "transactions", "find-hanging", "--json").check().out)
    assert (row["topic"], row["partition"], row["producer_id"]) == (TOPIC, HANGING_ON, 900_003)
    start = str(row["current_txn_start_offset"])
    ours(target, "transactions", "abort", f"{TOPIC}-{HANGING_ON}", "--start-offset", start).check()
    assert json.loads(ours(target, "transactions", "find-hanging", "--json").check().out) == []
    open_at_0 = json.loads(ours(target, "transactions", "describe-producers", f"{TOPIC}-0", "--json").check().out)
    start = str(
        min(row["current_txn_start_offset"] for row in open_at_0 if row["current_txn_start_offset"] is not None)
    )
    refused = ours(target, "transactions", "abort", f"{TOPIC}-0", "--start-offset", start)
    assert (refused.code, "will be ended by its coordinator" in refused.err) == (1, True)


def test_failures_have_the_same_words(kafka: Kafka, target: Target, producers: dict[str, Producer]) -> None:
    partition = ["--topic", TOPIC, "--partition", "0"]
    calls = [
        ["describe", "--transactional-id", "nosuch"],
        ["list", "--transactional-id-pattern", "("],
        ["abort", *partition],
        ["abort", *partition, "--producer-id", "1"],
        ["abort", *partition, "--producer-id", "1", "--producer-epoch", "0"],
        ["abort", *partition, "--start-offset", "77"],
        ["find-hanging"],
        ["find-hanging", "--broker-id", "1", "--partition", "0"],
    ]
    for call, (theirs, mine) in zip(calls, both(kafka, target, calls), strict=True):
        assert (mine.code, mine.out, mine.err) == (theirs.code, theirs.out, theirs.err), call
        assert mine.code == 1


def test_open_transactions_are_terminated_and_their_producers_fenced(
    kafka: Kafka, target: Target, producers: dict[str, Producer]
) -> None:
    terminate = ["forceTerminateTransaction", "--transactionalId"]
    kafka.run(TRANSACTIONS, *target.server, *terminate, "open-a").check()
    assert ours(target, "kafka-transactions", *terminate, "open-b") == Result(0, "", "")
    ours(target, "transactions", "force-terminate", "committed").check()
    (listed,) = assert_the_same_lines(kafka, target, [["list"]])
    assert {row[0].strip(): row[3].strip() for row in listed[1:]} == {
        "aborted": "CompleteAbort",
        "committed": "Empty",
        "open-a": "Empty",
        "open-b": "Empty",
    }
    for producer in producers.values():
        with pytest.raises(KafkaException, match=r"fenced|epoch"):
            producer.commit_transaction(TIMEOUT_S)
    assert read_committed(target, 0) == [b"committed"]


STATUS_NUMBER = re.compile(r'"transactionStatus":(\d)')


def _status(number: re.Match[str]) -> str:
    """By name, as Kafka's tool prints it from 4.4 on."""
    return f'"transactionStatus":"{TransactionState(int(number[1])).label}"'


def test_records_of_the_transaction_log(kafka: Kafka, target: Target, producers: dict[str, Producer]) -> None:
    (log,) = (target.data / "__transaction_state-0").glob("*.log")
    for flags in ((), ("--skip-record-metadata",)):
        arguments = ("--transaction-log-decoder", *flags, "--files", str(log))
        printed = kafka.run(DUMP, *arguments).check().out
        theirs = STATUS_NUMBER.sub(_status, printed).splitlines()
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            assert run(["kafka-dump-log", *arguments]) == 0
        assert out.getvalue().splitlines() == theirs
    states_seen = {part.split('"')[0] for line in theirs for part in line.split('"transactionStatus":"')[1:]}
    assert {"Empty", "Ongoing", "PrepareCommit", "CompleteCommit", "PrepareAbort", "CompleteAbort"} <= states_seen
