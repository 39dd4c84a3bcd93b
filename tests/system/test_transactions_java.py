"""Apache Kafka's Java producer and consumer in transactions with a node of ours, at both protocols.

At level 2 the Java client adds no partitions by itself, and takes its next epoch from the answer of EndTxn.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import pytest
from bench.kafka_cluster import free_ports

from strandline.client.blocking import Admin, Client
from strandline.client.flow.transaction_descriptions import DescribedTransaction
from strandline.transactions.metadata import ProducerIdAndEpoch, TransactionMetadata
from strandline.transactions.records import transaction_record
from strandline.transactions.states import TransactionState
from tests.judges.transactions import JavaClients, JavaError, java_clients
from tests.system.segment_files import append_transaction_record
from tests.system.server import Server, eventually, format_data, running

pytestmark = pytest.mark.java

PARTITIONS = 2
PROPERTIES = {
    "transaction.state.log.num.partitions": "1",
    "offsets.topic.num.partitions": "1",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
    "group.initial.rebalance.delay.ms": "0",
    "num.partitions": str(PARTITIONS),
}
LAST_EPOCH = 32_766
"""The last that a client may have: 32767 is for fencing alone."""
AGED = {name: ProducerIdAndEpoch(700_000 + n, LAST_EPOCH - 3) for n, name in enumerate(("aged", "aged-open"))}
"""Transactional ids that have had many producers before."""
TIMEOUT_S = 30.0


class Target(NamedTuple):
    java: JavaClients
    server: Server
    transaction_version: int

    def described(self, transactional_id: str) -> DescribedTransaction:
        with Client(self.server.bootstrap) as client:
            found = Admin(client).describe_transactions([transactional_id])[transactional_id]
        assert isinstance(found, DescribedTransaction), found
        return found

    def is_producer(self, transactional_id: str) -> ProducerIdAndEpoch:
        found = self.described(transactional_id)
        return ProducerIdAndEpoch(found.producer_id, found.producer_epoch)

    def reads(self, topic: str, expected: dict[int, list[str]]) -> None:
        """Markers may be on their way for a moment after the end was answered."""
        eventually(lambda: self.java.read(topic, PARTITIONS) == expected, f"{topic} has {expected}", TIMEOUT_S)


@pytest.fixture(scope="module", params=[0, 2], ids=["level-0", "level-2"])
def target(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    directory = tmp_path_factory.mktemp("java-transactions")
    data = directory / "data"
    format_data(data, {"transaction.version": request.param})
    (port,) = free_ports(1)
    with java_clients(f"127.0.0.1:{port}") as java:  # first, because a JVM takes a while to start
        with running(directory, data, PROPERTIES) as server:
            with Client(server.bootstrap) as client:
                Admin(client).fence_producers(["first"])  # makes the topic of transactions
            server.stop()
        for name, (producer_id, epoch) in AGED.items():
            aged = TransactionMetadata(
                producer_id=producer_id,
                epoch=epoch,
                timeout_ms=60_000,
                state=TransactionState.EMPTY,
                update_ms=time.time_ns() // 1_000_000,
            )
            append_transaction_record(data / "__transaction_state-0", transaction_record(name, aged), request.param)
        with running(directory, data, PROPERTIES, port=port) as server:
            yield Target(java, server, request.param)


def test_what_is_committed_is_read_and_what_is_aborted_is_not(target: Target) -> None:
    java, topic = target.java, "ends"
    java.producer(topic)
    expected: dict[int, list[str]] = {partition: [] for partition in range(PARTITIONS)}
    written = Counter[int]()
    for number in range(13):
        java(f"begin {topic}")
        for partition in range(PARTITIONS * (number % 4 != 3)):  # every fourth is empty
            values = [f"{number}-{index}" for index in range(number * 50 + 1)]
            assert len(java(f"send {topic} {topic} {partition} {' '.join(values)}")) == len(values)
            written[partition] += len(values)
            if number % 3 != 1:
                expected[partition] += values
        java(f"{'abort' if number % 3 == 1 else 'commit'} {topic}")
    target.reads(topic, expected)
    uncommitted = java.read(topic, PARTITIONS, "read_uncommitted")
    assert {partition: len(values) for partition, values in uncommitted.items()} == written
    assert target.described(topic).state == "CompleteCommit"


def test_nothing_of_an_open_transaction_is_read(target: Target) -> None:
    java, topic = target.java, "open"
    java.producer(topic)
    java(f"begin {topic}")
    java(f"send {topic} {topic} 0 value")
    assert java.read(topic, PARTITIONS) == {0: [], 1: []}
    assert java.read(topic, PARTITIONS, "read_uncommitted") == {0: ["value"], 1: []}
    java(f"commit {topic}")
    target.reads(topic, {0: ["value"], 1: []})


def test_a_second_producer_fences_the_first(target: Target) -> None:
    java, topic = target.java, "fenced"
    for name in ("writes", "commits"):
        java.producer(name, topic)
        java(f"begin {name}")
        java(f"send {name} {topic} 0 open")
        java.producer("second", topic)
        if name == "writes":
            with pytest.raises(JavaError) as refused:
                java(f"send {name} {topic} 0 late")
            assert refused.value.names[-1] == "InvalidProducerEpochException"
            with pytest.raises(JavaError) as refused:
                java(f"abort {name}")
        else:
            with pytest.raises(JavaError) as refused:
                java(f"commit {name}")
        assert refused.value.names[-1] == "ProducerFencedException", refused.value
        java(f"close {name}")
        java("begin second")
        java(f"send second {topic} 0 after-{name}")
        java("commit second")
    target.reads(topic, {0: ["after-writes", "after-commits"], 1: []})


def test_a_transaction_that_takes_too_long_is_aborted(target: Target) -> None:
    """TXN-T28."""
    java, topic = target.java, "slow"
    java.producer(topic, transaction_timeout_ms=500)
    java(f"begin {topic}")
    java(f"send {topic} {topic} 0 slow")
    eventually(lambda: target.described(topic).state == "CompleteAbort", "it is aborted", TIMEOUT_S)
    with pytest.raises(JavaError) as refused:
        java(f"commit {topic}")
    error = "ProducerFencedException" if target.transaction_version == 0 else "InvalidTxnStateException"
    assert refused.value.names[-1] == error, refused.value
    java(f"close {topic}")
    java.producer(topic)
    java(f"begin {topic}")
    java(f"send {topic} {topic} 0 next")
    java(f"commit {topic}")
    target.reads(topic, {0: ["next"], 1: []})


def test_after_the_last_epoch_comes_another_producer_id(target: Target) -> None:
    """TXN-T13, and at level 2 TXN-T23."""
    java, topic = target.java, "aged"
    expected: list[str] = []
    seen = []
    for number, transactions in enumerate((4, 1, 1, 1)):
        java.producer(f"aged-{number}", topic)
        for _ in range(transactions):
            java(f"begin aged-{number}")
            java(f"send aged-{number} {topic} 0 {len(expected)}")
            seen.append(target.is_producer(topic))
            java(f"commit aged-{number}")
            expected.append(str(len(expected)))
    target.reads(topic, {0: expected, 1: []})
    old, new = AGED[topic].producer_id, seen[-1].producer_id
    if target.transaction_version == 0:  # an epoch for each producer
        epochs = [(old, LAST_EPOCH - 2)] * 4 + [(old, LAST_EPOCH - 1), (old, LAST_EPOCH), (new, 0)]
    else:  # and for each transaction
        epochs = [
            (old, LAST_EPOCH - 2),
            (old, LAST_EPOCH - 1),
            (old, LAST_EPOCH),
            (new, 0),
            (new, 2),
            (new, 4),
            (new, 6),
        ]
    assert seen == epochs
    assert new != old


def test_fencing_at_the_last_epoch(target: Target) -> None:
    """TXN-T11, TXN-T13, TXN-T23."""
    java, topic = target.java, "aged-open"
    seen = []
    for number in range(4):
        java.producer(f"open-{number}", topic)
        java(f"begin open-{number}")
        java(f"send open-{number} {topic} 0 {number}")
        seen.append(target.is_producer(topic))
    old, new = AGED[topic].producer_id, seen[-1].producer_id
    after = target.transaction_version // 2  # at level 2 it is the abort that takes the new producer id
    assert seen == [(old, LAST_EPOCH - 2), (old, LAST_EPOCH), (new, after), (new, after + 2)]
    assert new != old
    for number, error in enumerate(
        ("InvalidPidMappingException", "InvalidPidMappingException", "ProducerFencedException")
    ):
        with pytest.raises(JavaError) as refused:
            java(f"commit open-{number}")
        assert refused.value.names[-1] == error, refused.value
    java("commit open-3")
    target.reads(topic, {0: ["3"], 1: []})


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_consume_transform_produce(target: Target, protocol: str) -> None:
    """Each record of the input is once in the output, although every third transaction is aborted."""
    java, source, sink = target.java, f"source-{protocol}", f"sink-{protocol}"
    values = [str(number) for number in range(100)]
    java.producer("filler")
    java("begin filler")
    for partition in range(PARTITIONS):
        java(f"send filler {source} {partition} {' '.join(values)}")
    java("commit filler")
    java.producer(sink)
    transactions = 0
    begun = ""
    while java.committed(source, source, PARTITIONS) != dict.fromkeys(range(PARTITIONS), len(values) + 1):
        if not begun:
            begun = f"member-{transactions}"
            java.consumer(begun, group_id=source, group_protocol=protocol, max_poll_records=20)
            java(f"subscribe {begun} {source}")
        polled = java(f"poll {begun} 1000")
        java(f"begin {sink}")
        for word in polled:
            where, _, value = word.partition(":")
            java(f"send {sink} {sink} {where} {value}")
        java(f"offsets {sink} {begun}")
        if transactions % 3 == 1 and polled:
            java(f"abort {sink}")
            java(f"leave {begun}")  # its position is beyond what was aborted
            begun = ""
        else:
            java(f"commit {sink}")
        transactions += bool(polled)
    assert transactions > 10
    target.reads(sink, dict.fromkeys(range(PARTITIONS), values))


def test_offsets_of_a_group_without_members(target: Target) -> None:
    java, group = target.java, "by-hand"
    java.producer(group)
    for number, end in enumerate(("commit", "abort", "commit", "abort")):
        java(f"begin {group}")
        java(f"offset {group} {group} open {number}")
        java(f"{end} {group}")
        assert java.committed(group, "open") == {0: number if end == "commit" else number - 1}


def test_a_stranger_to_a_group_spoils_one_transaction_only(target: Target) -> None:
    java, group = target.java, "strangers"
    java.producer(group)
    java(f"begin {group}")
    java(f"send {group} {group} 0 spoilt")
    with pytest.raises(JavaError) as refused:
        java(f"offset {group} {group} open 5 3 stranger")
    assert refused.value.names == ["CommitFailedException"], refused.value
    with pytest.raises(JavaError):
        java(f"commit {group}")
    java(f"abort {group}")
    java(f"begin {group}")
    java(f"send {group} {group} 0 good")
    java(f"offset {group} {group} open 6")
    java(f"commit {group}")
    assert java.committed(group, "open") == {0: 6}
    target.reads(group, {0: ["good"], 1: []})
