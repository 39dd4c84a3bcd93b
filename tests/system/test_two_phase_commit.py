"""Two-phase commit (KIP-939) as Apache Kafka 4.3 has it and as we do: the same steps, the same answers.

Always true: beside each transaction without a timeout there is one with a short one, whose end shows that the coordinator has
looked.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from bench.kafka_cluster import free_ports, kafka_cluster

from strandline.client.blocking import Admin, Client, Consumer, Producer
from strandline.client.config import ConsumerConfig, ProducerConfig
from strandline.client.errors import ProducerUnusable
from strandline.client.flow.descriptions import CreatedTopic, NewTopic
from strandline.client.flow.transaction_descriptions import DescribedTransaction
from strandline.errors import ErrorCode
from tests.judges.java import judge
from tests.judges.transactions import java_clients
from tests.system.raw_client import RawClient
from tests.system.server import eventually, format_data, running

pytestmark = pytest.mark.java

TOPIC = "decided"
NO_TIMEOUT_MS = 2**31 - 1
TIMEOUT_S = 30.0
API_VERSIONS, INIT_PRODUCER_ID = 18, 22
SWEPT = {
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
    "transaction.state.log.num.partitions": "1",
}
UNSTABLE = SWEPT | {"unstable.api.versions.enable": "true"}
ALLOWED = UNSTABLE | {"transaction.two.phase.commit.enable": "true"}


@contextlib.contextmanager
def apache_kafka(properties: dict[str, str]) -> Iterator[str]:
    judge()
    with kafka_cluster(1, heap="400m", properties=properties) as cluster:
        yield cluster.bootstrap


@contextlib.contextmanager
def strandline(properties: dict[str, str]) -> Iterator[str]:
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        format_data(directory / "data")
        with running(directory, directory / "data", properties) as server:
            yield server.bootstrap


TARGETS: dict[str, Callable[[dict[str, str]], AbstractContextManager[str]]] = {
    "kafka": apache_kafka,
    "strandline": strandline,
}


@pytest.fixture(scope="module", params=TARGETS)
def start(request: pytest.FixtureRequest) -> Callable[[dict[str, str]], AbstractContextManager[str]]:
    return TARGETS[request.param]


@pytest.fixture(scope="module")
def client(start: Callable[[dict[str, str]], AbstractContextManager[str]]) -> Iterator[Client]:
    with start(ALLOWED) as bootstrap, Client(bootstrap) as connected:
        made = Admin(connected).create_topics([NewTopic(TOPIC, 1, 1)])
        assert [type(topic) for topic in made.values()] == [CreatedTopic]
        yield connected


def two_phase(client: Client, transactional_id: str) -> Producer:
    config = ProducerConfig(transactional_id=transactional_id, transaction_two_phase_commit_enable=True)
    return Producer(client, config)


def begin(producer: Producer, value: bytes) -> None:
    producer.init_transactions()
    producer.begin_transaction()
    producer.send(TOPIC, value)
    producer.flush()


def described(client: Client, transactional_id: str) -> DescribedTransaction:
    found = Admin(client).describe_transactions([transactional_id])[transactional_id]
    assert isinstance(found, DescribedTransaction), found
    return found


def is_swept(client: Client, transactional_id: str) -> None:
    """A transaction that began after all others is aborted because of its timeout."""
    producer = Producer(client, ProducerConfig(transactional_id=transactional_id, transaction_timeout_ms=300))
    begin(producer, b"timed")
    eventually(
        lambda: described(client, transactional_id).state == "CompleteAbort", "the timed one is aborted", TIMEOUT_S
    )
    with contextlib.suppress(ProducerUnusable):
        producer.close()


def read_committed(client: Client) -> list[bytes | None]:
    """Up to the last stable offset."""
    consumer = Consumer(client, ConsumerConfig(isolation_level="read_committed", auto_offset_reset="earliest"))
    consumer.assign([(TOPIC, 0)])
    values = []
    while records := consumer.poll(1.0):
        values += [record.value for record in records]
    consumer.close()
    return values


def init_versions(bootstrap: str) -> tuple[int, int]:
    raw = RawClient(int(bootstrap.rpartition(":")[2]))
    reply = raw.ask(API_VERSIONS, 3, client_software_name="tests", client_software_version="1")
    [entry] = [entry for entry in reply.api_keys if entry.api_key == INIT_PRODUCER_ID]
    return entry.min_version, entry.max_version


def bootstrap_of(client: Client) -> str:
    [broker] = client.flow.cluster.brokers.values()
    return f"{broker.host}:{broker.port}"


def test_txn_q1_it_outlives_every_timeout_and_is_committed_by_its_producer(client: Client) -> None:
    producer = two_phase(client, "long")
    begin(producer, b"long")
    is_swept(client, "timed")
    found = described(client, "long")
    assert (found.state, found.timeout_ms) == ("Ongoing", NO_TIMEOUT_MS)
    before = read_committed(client)
    assert b"long" not in before
    producer.commit_transaction()
    eventually(lambda: b"long" in read_committed(client), "it is read", TIMEOUT_S)
    producer.close()


def test_txn_q4_an_administrator_ends_it_and_its_producer_is_fenced(client: Client) -> None:
    producer = two_phase(client, "left")
    begin(producer, b"left")
    Admin(client).force_terminate_transaction("left")
    found = described(client, "left")
    assert (found.state, found.timeout_ms) == ("Empty", client.flow.config.request_timeout_ms)
    with pytest.raises(ProducerUnusable):
        producer.commit_transaction()
    producer.close()
    assert b"left" not in read_committed(client)


def test_txn_q4_a_producer_without_it_sets_a_timeout_again(client: Client) -> None:
    producer = two_phase(client, "again")
    begin(producer, b"again")
    producer.commit_transaction()
    producer.close()
    is_swept(client, "again")
    assert described(client, "again").timeout_ms == 300


def test_txn_q1_what_is_refused(client: Client) -> None:
    raw = RawClient(int(bootstrap_of(client).rpartition(":")[2]))
    assert init_versions(bootstrap_of(client)) == (0, 6)
    begin(producer := two_phase(client, "kept"), b"kept")  # makes sure that a coordinator is there
    for enable2_pc in (True, False):
        reply = raw.ask(
            INIT_PRODUCER_ID,
            6,
            transactional_id="kept",
            transaction_timeout_ms=1000,
            enable2_pc=enable2_pc,
            keep_prepared_txn=True,
        )
        assert (reply.error_code, reply.producer_id) == (ErrorCode.UNSUPPORTED_VERSION, -1)
        assert (reply.ongoing_txn_producer_id, reply.ongoing_txn_producer_epoch) == (-1, -1)
    assert described(client, "kept").state == "Ongoing"
    producer.abort_transaction()
    producer.close()


@pytest.mark.parametrize(
    ("properties", "code", "newest"),
    [
        (UNSTABLE, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, 6),
        (SWEPT | {"transaction.two.phase.commit.enable": "true"}, ErrorCode.UNSUPPORTED_VERSION, 5),
    ],
    ids=["not-allowed", "not-served"],
)
def test_txn_q1_both_switches_are_needed(
    start: Callable[[dict[str, str]], AbstractContextManager[str]],
    properties: dict[str, str],
    code: ErrorCode,
    newest: int,
) -> None:
    with start(properties) as bootstrap, Client(bootstrap) as connected:
        assert init_versions(bootstrap) == (0, newest)
        with pytest.raises(ProducerUnusable, match=r"transaction\.two\.phase\.commit\.enable") as refused:
            two_phase(connected, "refused").init_transactions()
        assert refused.value.code is code


def test_txn_q1_it_survives_a_crash_of_the_node_and_kafkas_own_producer_speaks_version_6(tmp_path: Path) -> None:
    """Kafka 4.3's producer speaks version 6 where that is served, and asks for nothing new in it."""
    data = tmp_path / "data"
    format_data(data)
    (port,) = free_ports(1)
    with java_clients(f"127.0.0.1:{port}") as java, contextlib.ExitStack() as left:
        with running(tmp_path, data, ALLOWED, port=port) as server:
            client = left.enter_context(Client(server.bootstrap))
            producer = two_phase(client, "ours")
            begin(producer, b"before")
            server.kill()
        with running(tmp_path, data, ALLOWED, port=port):
            is_swept(client, "timed")
            found = described(client, "ours")
            assert (found.state, found.timeout_ms) == ("Ongoing", NO_TIMEOUT_MS)
            java.producer("java")
            java("begin java")
            java(f"send java {TOPIC} 0 java")
            assert described(client, "java").timeout_ms == 60_000
            java("commit java")
            producer.send(TOPIC, b"after")
            producer.commit_transaction()
            eventually(lambda: read_committed(client) == [b"before", b"java", b"after"], "all is read", TIMEOUT_S)
            producer.close()
