"""The topics that are read, filled once; and those that are written to, which live for one query.

Always true: a filled topic has `rows` records, shared out evenly over its partitions, each acknowledged.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from bench.load import LoadFailed
from bench.spark_ceiling import PARTITIONS

STEP_S_MAX = 120.0
REPORT_EACH = 100_000


def fill(bootstrap: str, topic: str, rows: int, size: int, report_filled: Callable[[int], None]) -> None:
    """Records of `size` bytes with short keys, in large batches, as a busy producer leaves them."""
    _create(bootstrap, topic)
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "linger.ms": 20,
            "batch.size": 1 << 20,
            "queue.buffering.max.messages": 500_000,
            "log_level": 0,
        }
    )
    failed = []

    def delivered(error: object, _: object) -> None:
        if error is not None:
            failed.append(error)

    for row in range(rows):
        value, key, partition = b"%0*d" % (size, row), b"%d" % row, row % PARTITIONS
        while True:
            try:
                producer.produce(topic, value, key=key, partition=partition, on_delivery=delivered)
                break
            except BufferError:
                producer.poll(0.02)
        if row % REPORT_EACH == 0:
            producer.poll(0)
            report_filled(row)
    if producer.flush(STEP_S_MAX) or failed:
        raise LoadFailed(f"{topic} could not be filled: {failed[:1] or 'not in time'}")


@contextlib.contextmanager
def written_once(bootstrap: str, topic: str, rows: int) -> Iterator[None]:
    """An empty topic, which must have so many records at the end. What it held does not wait in memory for the disk after that."""
    _create(bootstrap, topic, {"file.delete.delay.ms": "0"})
    try:
        yield
        found = _count(bootstrap, topic)
        if found != rows:
            raise LoadFailed(f"{found} records are in {topic}, and {rows} were written to it")
    finally:
        admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
        admin.delete_topics([topic])[topic].result(STEP_S_MAX)


def _create(bootstrap: str, topic: str, config: dict[str, str] | None = None) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    admin.create_topics([NewTopic(topic, PARTITIONS, 1, config=config or {})])[topic].result(STEP_S_MAX)
    # Every client that asks for it from now on must find it.
    deadline = time.monotonic() + STEP_S_MAX
    while time.monotonic() < deadline:
        with contextlib.suppress(KafkaException):
            if len(admin.list_topics(topic, timeout=5).topics[topic].partitions) == PARTITIONS:
                return
        time.sleep(0.05)
    raise LoadFailed(f"{topic} did not come up")


def _count(bootstrap: str, topic: str) -> int:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "counting", "log_level": 0})
    try:
        ends = [
            consumer.get_watermark_offsets(TopicPartition(topic, number), STEP_S_MAX) for number in range(PARTITIONS)
        ]
    finally:
        consumer.close()
    return sum(high - low for low, high in ends)
