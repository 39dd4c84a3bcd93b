"""A node dies in the middle of transactions, and the other kind of node goes on with its log dir: ours with Apache Kafka's, and the
other way round. The producers live through it: they come back to the same port.

What a kill between two writes leaves (a decision without its markers) is made by cutting off the last batches.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from bench.kafka_cluster import CLUSTER_ID, free_ports, kafka_cluster

from strandline.api.groups.placement import partition_of
from strandline.cli.main import run
from strandline.client.blocking import Admin, Client
from strandline.client.flow.descriptions import CreatedTopic, NewTopic
from strandline.client.flow.transaction_descriptions import DescribedTransaction
from strandline.transactions.states import TransactionState
from tests.judges.java import Kafka, Run, judge
from tests.judges.transactions import JavaClients, JavaError, java_clients
from tests.soak import soak_only
from tests.system.segment_files import cut_last_batch
from tests.system.server import eventually, format_data, running

pytestmark = pytest.mark.java

PROPERTIES = {
    "transaction.state.log.num.partitions": "2",
    "offsets.topic.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
}
LATE, SOON = ({"transaction.abort.timed.out.transaction.cleanup.interval.ms": each} for each in ("600000", "200"))
"""How soon a transaction that has taken too long is noticed: not before the node dies, and at once after it."""
TOPIC, PARTITIONS = "written", 3
TIMEOUT_S = 30.0
CONSOLE_CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
FORMATTER = "org.apache.kafka.tools.consumer.TransactionLogMessageFormatter"
DUMP = "org.apache.kafka.tools.DumpLogSegments"
STATUS_NUMBER = re.compile(r'"transactionStatus":(\d)')


def of_partition(partition: int) -> str:
    """A transactional id of this partition of `__transaction_state`."""
    names = (f"prepared-{number}" for number in range(100))
    return next(name for name in names if partition_of(name, 2) == partition)


COMMITS, ABORTS = of_partition(0), of_partition(1)
"""Those whose decision is the last that is written, each to a partition of the log."""
NAMES = ("committed", "aborted", "open", "replaced", "slow", COMMITS, ABORTS)


class Place(NamedTuple):
    directory: Path
    port: int
    transaction_version: int

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def data(self) -> Path:
        return self.directory / "data-1"


@contextlib.contextmanager
def apache_kafka(place: Place, properties: dict[str, str]) -> Iterator[None]:
    features = {"transaction.version": place.transaction_version}
    with kafka_cluster(
        1, properties=properties, features=features, directory=place.directory, heap="400m", ports=[place.port]
    ) as cluster:
        yield
        os.kill(cluster.pids[0], signal.SIGKILL)


@contextlib.contextmanager
def strandline(place: Place, properties: dict[str, str]) -> Iterator[None]:
    if not place.data.exists():
        format_data(place.data, {"transaction.version": place.transaction_version}, CLUSTER_ID)
    with running(place.directory, place.data, properties, port=place.port) as server:
        yield
        # Not killed: Kafka 4.3 drops the markers of a transaction that it finds decided, if it is fenced meanwhile for having
        # been killed (TransactionMarkerChannelManager takes partitions without a leader for deleted).
        server.stop()


@pytest.fixture(scope="module")
def kafka() -> Kafka:
    return judge()


DIRECTIONS = {"from-kafka": (apache_kafka, strandline), "to-kafka": (strandline, apache_kafka)}


@pytest.mark.parametrize("transaction_version", [pytest.param(0, marks=soak_only), 2])
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_transactions_go_on(kafka: Kafka, tmp_path: Path, direction: str, transaction_version: int) -> None:
    first, second = DIRECTIONS[direction]
    place = Place(tmp_path, free_ports(1)[0], transaction_version)
    with java_clients(place.bootstrap) as java:
        with first(place, PROPERTIES | LATE):
            begin_all(place, java)
        for name, partition in ((COMMITS, 1), (ABORTS, 2)):
            cut_last_batch(place.data / f"__transaction_state-{partition_of(name, 2)}")
            assert cut_last_batch(place.data / f"{TOPIC}-{partition}").is_control
        with second(place, PROPERTIES | SOON):
            end_all(place, java)
            assert_printed_alike(kafka, place)


def begin_all(place: Place, java: JavaClients) -> None:
    """Transactions in every state when the node dies."""
    with Client(place.bootstrap) as client:
        made = Admin(client).create_topics([NewTopic(TOPIC, PARTITIONS, 1)])
        assert isinstance(made[TOPIC], CreatedTopic)
    for name in NAMES:
        java.producer(name, transaction_timeout_ms=1_000 if name == "slow" else 600_000)
        java(f"begin {name}")
        partition = {COMMITS: 1, ABORTS: 2}.get(name, 0)
        java(f"send {name} {TOPIC} {partition} {name}-1 {name}-2")
    java(f"offset open group {TOPIC} 7")
    java("commit committed")
    java("abort aborted")
    for name in ("committed", "aborted"):
        has_ended(place, name)
    java(f"commit {COMMITS}")
    java(f"abort {ABORTS}")
    assert has_ended(place, COMMITS) == "CompleteCommit"
    assert has_ended(place, ABORTS) == "CompleteAbort"


def end_all(place: Place, java: JavaClients) -> None:
    # What was decided stays so, and is carried out by the next coordinator (TXN-TF2).
    assert has_ended(place, COMMITS) == "CompleteCommit"
    assert has_ended(place, ABORTS) == "CompleteAbort"
    # What took too long is aborted, what was open is not.
    assert has_ended(place, "slow") == "CompleteAbort"
    assert state(place, "open") == state(place, "replaced") == "Ongoing"
    # Its producer may go on.
    java(f"send open {TOPIC} 0 open-3")
    assert java.read(TOPIC, PARTITIONS) == {
        0: ["committed-1", "committed-2"],
        1: [f"{COMMITS}-1", f"{COMMITS}-2"],
        2: [],
    }
    java("commit open")
    # Another one fences that before it.
    java.producer("second", "replaced")
    with pytest.raises(JavaError) as refused:
        java("commit replaced")
    assert refused.value.names[-1] == "ProducerFencedException", refused.value
    for name in ("committed", "aborted", COMMITS, ABORTS, "open", "second"):
        java(f"begin {name}")
        java(f"send {name} {TOPIC} 0 {name}-4")
        java(f"commit {name}")
    expected = {
        0: ["committed-1", "committed-2", "open-1", "open-2", "open-3"]
        + [f"{name}-4" for name in ("committed", "aborted", COMMITS, ABORTS, "open", "second")],
        1: [f"{COMMITS}-1", f"{COMMITS}-2"],
        2: [],
    }
    eventually(lambda: java.read(TOPIC, PARTITIONS) == expected, "all that is committed is read", TIMEOUT_S)
    assert java.committed("group", TOPIC) == {0: 7}
    for name in NAMES:
        has_ended(place, name)


def state(place: Place, transactional_id: str) -> str:
    with Client(place.bootstrap) as client:
        found = Admin(client).describe_transactions([transactional_id])[transactional_id]
    assert isinstance(found, DescribedTransaction), found
    return found.state


def has_ended(place: Place, transactional_id: str) -> str:
    def ended() -> str | None:
        found = state(place, transactional_id)
        return found if found.startswith("Complete") else None

    return eventually(ended, f"the transaction of {transactional_id} has ended", TIMEOUT_S)


def assert_printed_alike(kafka: Kafka, place: Place) -> None:
    """The records of both writers: by Kafka's formatter, by its tool that dumps files, and by ours."""
    logs = [str(log) for log in sorted(place.data.glob("__transaction_state-*/*.log"))]
    arguments = ("--transaction-log-decoder", "--files", ",".join(logs))
    topic = ("--bootstrap-server", place.bootstrap, "--topic", "__transaction_state", "--from-beginning")
    read = Run(CONSOLE_CONSUMER, (*topic, "--formatter", FORMATTER, "--timeout-ms", "2000"))
    results = kafka.run_all([Run(DUMP, arguments), read])
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert run(["kafka-dump-log", *arguments]) == 0
    mine = out.getvalue().splitlines()
    # By name, as both of Kafka's tools print it from 4.4 on.
    theirs, formatted = (STATUS_NUMBER.sub(_status, result.check().out) for result in results)
    assert mine == theirs.splitlines()
    records = [_record(line) for line in mine if " payload: " in line]
    assert len(records) > 3 * len(NAMES)
    assert sorted(records) == sorted(_concatenated(formatted))


def _status(number: re.Match[str]) -> str:
    return f'"transactionStatus":"{TransactionState(int(number[1])).label}"'


def _record(line: str) -> str:
    """A dumped record as the formatter prints it, with its type and its version as numbers."""
    key, _, value = line.partition(" key: ")[2].partition(" payload: ")
    record = {"key": json.loads(key), "value": json.loads(value)}
    record["key"]["type"] = int(record["key"]["type"])
    record["value"]["version"] = int(record["value"]["version"])
    return json.dumps(record)


def _concatenated(text: str) -> Iterator[str]:
    """The formatter puts nothing between two records."""
    decoder = json.JSONDecoder()
    position = 0
    while position < len(text.rstrip()):
        record, position = decoder.raw_decode(text, position)
        yield json.dumps(record)
