"""An idempotent producer and a consumer that work while brokers come and go, and what they saw.

The values are 0, 1, 2, … in the order they were sent, spread over the partitions in turn.
Always true: after `check`, every record that was acknowledged was read once, at the offset of its acknowledgement, in the order
it was sent, and no error had reached the producer.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from strandline.client.blocking import Client
from strandline.client.bulk import PartitionFetcher
from strandline.records.header import iterate
from tests.system.clients import Broker, read_from
from tests.system.local import Cluster
from tests.system.server import eventually

FLUSH_TIMEOUT_S = 90
READ_TIMEOUT_S = 60
PAUSE_S = 0.001
"""Between two records: a load that leaves the machine room to breathe."""

EAGER: dict[str, Any] = {
    "log_level": 0,
    "retry.backoff.ms": 20,
    "retry.backoff.max.ms": 200,
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 200,
    "topic.metadata.refresh.fast.interval.ms": 50,
    "topic.metadata.refresh.interval.ms": 1_000,
}
"""Clients that come back soon; everything else is as librdkafka has it.

The last line is for consumers whose new leader dies before it has told them where their epoch ends: librdkafka 2.16 asks that
one again and again, and does not ask who leads now before the next refresh, by default five minutes later.
"""


def make_topic(cluster: Cluster, name: str, replicas: list[list[int]], **config: str) -> str:
    """A topic with these replicas of each partition, the first of each leading."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
    renamed = {key.replace("_", "."): value for key, value in config.items()}
    topic = NewTopic(name, len(replicas), replica_assignment=replicas, config=renamed)
    admin.create_topics([topic])[name].result(30)
    eventually(lambda: leaders(cluster.bootstrap, name) == [each[0] for each in replicas], f"leaders of {name}", 30)
    return name


def leaders(bootstrap: str, topic: str) -> list[int]:
    """Of each partition, as a client is told; -1 is none."""
    admin = AdminClient({"bootstrap.servers": bootstrap, **EAGER})
    partitions = admin.list_topics(topic, timeout=30).topics[topic].partitions
    return [partitions[index].leader for index in sorted(partitions)]


def in_sync(bootstrap: str, topic: str) -> list[list[int]]:
    """The ISR of each partition, sorted."""
    admin = AdminClient({"bootstrap.servers": bootstrap, **EAGER})
    partitions = admin.list_topics(topic, timeout=30).topics[topic].partitions
    return [sorted(partitions[index].isrs) for index in sorted(partitions)]


def all_in_sync(cluster: Cluster, topic: str) -> None:
    everyone = list(range(1, cluster.nodes + 1))

    def are() -> bool:
        return all(isr == everyone for isr in in_sync(cluster.bootstrap, topic))

    eventually(are, f"all replicas of {topic} are in sync", 60)


UNTOLD = -1
"""An offset that the client library does not tell."""


class Load:
    def __init__(self, bootstrap: str, topic: str, partitions: int) -> None:
        self.bootstrap = bootstrap
        self.topic = topic
        self.partitions = partitions
        self.acknowledged: dict[int, tuple[int, int]] = {}
        """Each value's partition and offset."""
        self.read: list[tuple[int, int, int]] = []
        """Partition, offset and value, as they came."""
        self.errors: list[str] = []
        self._enough = threading.Event()
        self._all_sent = threading.Event()
        self._threads = [threading.Thread(target=self._produce), threading.Thread(target=self._consume)]
        for thread in self._threads:
            thread.start()

    def more(self, records: int = 200) -> None:
        """Until so many more than now are acknowledged and so many more are read: it flows."""
        acknowledged, read = len(self.acknowledged) + records, len(self.read) + records

        def flows() -> bool:
            assert not self.errors, self.errors[0]
            return len(self.acknowledged) >= acknowledged and len(self.read) >= read

        eventually(flows, f"{records} more records are acknowledged and read", READ_TIMEOUT_S)

    def stop(self) -> None:
        """Send no more, and read what was sent to its end."""
        self._enough.set()
        for thread in self._threads:
            thread.join()

    def check(self) -> None:
        self.stop()
        assert not self.errors, self.errors[0]
        assert_kept(self.acknowledged, self.read, self._batches)
        again = read_from(Broker(self.bootstrap, None), self.topic, self.partitions)
        stored = [(p, seen.offset, _number(seen.record.value)) for p, each in again.items() for seen in each]
        assert sorted(stored) == sorted(self.read), "a second reader sees something else than the first"

    def _batches(self, partition: int, first: int, last: int) -> str:
        """The batches between two offsets, each with who wrote it: a retry has the sequence of the first attempt."""
        with Client(self.bootstrap) as client:
            found = [
                header
                for fetched in PartitionFetcher(client, self.topic, partition, first, last + 1)
                for _, header in iterate(fetched.data)
            ]
        return "; ".join(
            f"offsets {each.base_offset}-{each.last_offset} of leader epoch {each.partition_leader_epoch}, producer"
            f" {each.producer_id} epoch {each.producer_epoch} sequences {each.base_sequence}-{each.last_sequence}"
            for each in found
            if each.last_offset >= first
        )

    def _produce(self) -> None:
        delivery = {"acks": "all", "enable.idempotence": True, "linger.ms": 0, "delivery.timeout.ms": 120_000}
        producer = Producer({"bootstrap.servers": self.bootstrap, **EAGER, **delivery})
        number = 0
        try:
            while not self._enough.is_set():
                partition = number % self.partitions
                with contextlib.suppress(BufferError):
                    producer.produce(self.topic, b"%d" % number, partition=partition, on_delivery=self._delivered)
                    number += 1
                producer.poll(PAUSE_S)
            unsent = producer.flush(FLUSH_TIMEOUT_S)
            if unsent:
                self.errors.append(f"{unsent} records are still not acknowledged after {FLUSH_TIMEOUT_S} s")
        except KafkaException as error:
            self.errors.append(f"the producer gave up: {error}")
        finally:
            self._all_sent.set()

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.errors.append(f"the producer was told {error}")
            return
        partition, offset = message.partition(), message.offset()
        assert partition is not None
        if offset is None:
            # librdkafka takes a batch whose answer was lost for acknowledged once a later one is, and can't say where it is.
            offset = UNTOLD
        self.acknowledged[_number(message.value())] = partition, offset

    def _consume(self) -> None:
        settings = {"group.id": "unused", "enable.auto.commit": False, "auto.offset.reset": "error"}
        waiting = {"fetch.wait.max.ms": 50, "check.crcs": True}
        consumer = Consumer({"bootstrap.servers": self.bootstrap, **EAGER, **settings, **waiting})
        consumer.assign([TopicPartition(self.topic, partition, 0) for partition in range(self.partitions)])
        deadline = None
        while True:
            for message in consumer.consume(500, 0.05):
                error, partition, offset = message.error(), message.partition(), message.offset()
                if error is not None:
                    self.errors.append(f"the consumer was told {error}")
                    continue
                assert partition is not None
                assert offset is not None
                self.read.append((partition, offset, _number(message.value())))
            if self._all_sent.is_set():
                deadline = deadline or time.monotonic() + READ_TIMEOUT_S
                if len(self.read) >= len(self.acknowledged) or time.monotonic() > deadline:
                    break
        consumer.close()


def assert_kept(
    acknowledged: dict[int, tuple[int, int]],
    read: list[tuple[int, int, int]],
    batches: Callable[[int, int, int], str],
) -> None:
    """Nothing is lost, moved, there twice, or out of order."""
    places: dict[int, list[tuple[int, int]]] = {}
    for partition, offset, number in read:
        places.setdefault(number, []).append((partition, offset))
    assert acknowledged
    lost = [number for number in acknowledged if number not in places]
    assert not lost, f"{len(lost)} of {len(acknowledged)} acknowledged records are lost, such as {lost[:5]}"
    doubled = {number: each for number, each in places.items() if len(each) > 1}
    if doubled:
        number, (first, *_, last) = next(iter(doubled.items()))
        written = batches(first[0], first[1], last[1])
        raise AssertionError(f"{len(doubled)} records are there more than once, such as {number} in {written}")
    moved = [
        number
        for number, (partition, offset) in acknowledged.items()
        if places[number][0] != (partition, places[number][0][1] if offset == UNTOLD else offset)
    ]
    assert not moved, f"{len(moved)} records are not where they were said to be, such as {moved[:5]}"
    for partition in {place[0] for place in acknowledged.values()}:
        rows = [(offset, number) for p, offset, number in read if p == partition]
        numbers = [number for _, number in sorted(rows)]
        assert rows == sorted(rows), f"partition {partition} was read out of order"
        assert numbers == sorted(numbers), f"partition {partition} holds records out of the order they were sent in"


@contextlib.contextmanager
def load(cluster: Cluster, topic: str) -> Iterator[Load]:
    """Records flow when this is entered. Whoever enters it calls `check`."""
    running = Load(cluster.bootstrap, topic, len(leaders(cluster.bootstrap, topic)))
    try:
        running.more()
        yield running
    finally:
        running.stop()


def _number(value: Any) -> int:
    assert isinstance(value, bytes)
    return int(value)
