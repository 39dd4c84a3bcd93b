"""`kill -9` in the middle of a load: nothing that was acknowledged is lost, and nothing is there twice."""

# mypy: disable-error-code="func-returns-value"

from __future__ import annotations

import random
import threading
import time
from pathlib import Path

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.soak import times
from tests.system.server import Server, format_data, running

ROUNDS = times(8, 40)
TOPIC, PARTITIONS = "durable", 2


def test_nothing_acknowledged_is_lost_when_the_process_is_killed_again_and_again(tmp_path: Path) -> None:
    format_data(tmp_path / "data")
    chance = random.Random(20)
    acknowledged: dict[bytes, tuple[int, int]] = {}
    with running(tmp_path, tmp_path / "data") as server:
        topic = NewTopic(TOPIC, PARTITIONS, 1, config={"flush.messages": "1"})
        admin = AdminClient({"bootstrap.servers": server.bootstrap})
        admin.create_topics([topic])[TOPIC].result(10)
    for number in range(ROUNDS):
        with running(tmp_path, tmp_path / "data") as server:
            before = len(acknowledged)
            produce_until_killed(server, number, chance.randrange(10, 100), acknowledged)
            assert len(acknowledged) > before, f"round {number} acknowledged nothing"
    with running(tmp_path, tmp_path / "data") as server:
        stored = read_all(server)
    assert len(acknowledged) > ROUNDS * 10
    missing = {value: place for value, place in acknowledged.items() if place not in stored.get(value, [])}
    assert not missing, f"{len(missing)} of {len(acknowledged)} acknowledged records are not where they were said to be"
    doubled = {value: places for value, places in stored.items() if len(places) > 1}
    assert not doubled, f"records are there more than once: {list(doubled.items())[:5]}"


def produce_until_killed(
    server: Server, number: int, acks_before_kill: int, acknowledged: dict[bytes, tuple[int, int]]
) -> None:
    """Write without a pause; the server dies while it is answering, after so many acknowledgements."""
    producer = Producer(
        {
            "bootstrap.servers": server.bootstrap,
            "enable.idempotence": True,
            "linger.ms": 0,
            "batch.num.messages": 10,
            "queue.buffering.max.messages": 200,
            "log_level": 0,
        }
    )
    enough = threading.Event()
    seen = 0

    def delivered(error: KafkaError | None, message: Message) -> None:
        nonlocal seen
        if error is None:
            value, partition, offset = message.value(), message.partition(), message.offset()
            assert isinstance(value, bytes)
            assert partition is not None
            assert offset is not None
            acknowledged[value] = (partition, offset)
            seen += 1
            if seen >= acks_before_kill:
                enough.set()

    killer = threading.Thread(target=lambda: (enough.wait(30), server.kill()))
    killer.start()
    sent = 0
    while killer.is_alive():
        try:
            producer.produce(TOPIC, b"%d-%d" % (number, sent), partition=sent % PARTITIONS, on_delivery=delivered)
            sent += 1
        except BufferError:
            producer.poll(0.001)
        producer.poll(0)
    killer.join()
    producer.poll(0.1)
    producer.purge()
    producer.flush(0.1)


def read_all(server: Server) -> dict[bytes, list[tuple[int, int]]]:
    """Where each value stands."""
    consumer = Consumer(
        {
            "bootstrap.servers": server.bootstrap,
            "group.id": "reader",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "log_level": 0,
        }
    )
    consumer.assign([TopicPartition(TOPIC, partition, 0) for partition in range(PARTITIONS)])
    stored: dict[bytes, list[tuple[int, int]]] = {}
    at_end: set[int | None] = set()
    deadline = time.monotonic() + 30
    while len(at_end) < PARTITIONS:
        assert time.monotonic() < deadline, "the server stopped answering"
        for message in consumer.consume(1000, 0.2):
            error = message.error()
            if error is not None:
                assert error.code() == KafkaError._PARTITION_EOF, error
                at_end.add(message.partition())
                continue
            value, partition, offset = message.value(), message.partition(), message.offset()
            assert isinstance(value, bytes)
            assert partition is not None
            assert offset is not None
            stored.setdefault(value, []).append((partition, offset))
    consumer.close()
    return stored
