"""One load against one cluster: produce, produce in small batches, consume, and single acknowledgements.

The measure that counts is MB per CPU-second of the servers: what a wall clock shows depends on what else the machine does, the load
generator first of all. A megabyte is 10^6 bytes of record values.

Always true: every record that is counted was acknowledged or read; no part begins anything new after `PART_S_MAX`, and one that is
cut short counts what it did.
"""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from bench.clusters import Cluster
from bench.processes import TICK_S, cpu_s

RECORD_BYTES = 1000
LATENCY_RECORD_BYTES = 100
WARM_UP_RECORDS = 1000
SMALL_BATCH_BYTES = 16_384
POLL_EVERY_RECORDS = 1000
CONSUME_RECORDS_MAX = 10_000
PART_S_MAX = 45.0
FLUSH_S_MAX = 15.0
DRAIN_S_MAX = 60.0
"""For all that the producer's queue holds; three replicas of small batches are slow."""
ADMIN_S_MAX = 30.0
IN_SYNC_MIN = 2


class LoadFailed(Exception):
    """The cluster did not do what the load asked of it; says what."""


@dataclass(frozen=True, slots=True)
class Size:
    """How much one load does."""

    records: int
    small_batch_records: int
    latency_records: int
    partitions: int = 1
    replication_factor: int = 1


@dataclass(frozen=True, slots=True)
class Sample:
    """What one load measured."""

    produce_mb_per_cpu_s: float
    produce_mb_per_s: float
    small_batches_mb_per_cpu_s: float
    small_batches_mb_per_s: float
    consume_mb_per_cpu_s: float
    consume_mb_per_s: float
    ack_p50_ms: float
    ack_p99_ms: float


PARTS = 4
Step = Callable[[str], None]


def run_load(cluster: Cluster, size: Size, step: Step) -> Sample:
    """`step` hears the name of each part before it runs."""
    admin = AdminClient(_client(cluster))
    topic = f"bench-{uuid.uuid4().hex[:8]}"
    _create(admin, topic, size)
    try:
        step("produce")
        produce_cpu, produce_wall = _produce(cluster, topic, size.records, size.partitions, {})
        step("produce, 16 KB batches")
        small = {"batch.size": SMALL_BATCH_BYTES}
        small_cpu, small_wall = _produce(cluster, topic, size.small_batch_records, size.partitions, small)
        step("consume")
        consume_cpu, consume_wall = _consume(cluster, topic, size.records, size.partitions)
        step("acknowledgements")
        p50_ms, p99_ms = _acknowledge(cluster, topic, size.latency_records)
    finally:
        # Gone at once, or eight loads would fill the disk and the page cache.
        admin.delete_topics([topic], operation_timeout=ADMIN_S_MAX)[topic].result(ADMIN_S_MAX)
    return Sample(produce_cpu, produce_wall, small_cpu, small_wall, consume_cpu, consume_wall, p50_ms, p99_ms)


def _client(cluster: Cluster) -> dict[str, str | int | float | bool]:
    return {"bootstrap.servers": cluster.bootstrap, "log_level": 0}


def _create(admin: AdminClient, topic: str, size: Size) -> None:
    # Said of the topic, because the defaults of the two clusters need not agree.
    config = {"min.insync.replicas": str(min(size.replication_factor, IN_SYNC_MIN)), "file.delete.delay.ms": "100"}
    new = NewTopic(topic, size.partitions, size.replication_factor, config=config)
    admin.create_topics([new])[topic].result(ADMIN_S_MAX)
    deadline = time.monotonic() + ADMIN_S_MAX
    while True:
        partitions = admin.list_topics(topic, timeout=ADMIN_S_MAX).topics[topic].partitions
        if len(partitions) == size.partitions and all(partition.leader >= 0 for partition in partitions.values()):
            return
        if time.monotonic() > deadline:
            raise LoadFailed(f"{topic} has no leader after {ADMIN_S_MAX:.0f} s")
        time.sleep(0.05)


def _produce(cluster: Cluster, topic: str, records: int, partitions: int, extra: dict[str, int]) -> tuple[float, float]:
    """MB per CPU-second and MB per second."""
    producer = Producer(
        {
            **_client(cluster),
            "linger.ms": 5,
            "acks": "all",
            "queue.buffering.max.messages": 200_000,
            "queue.buffering.max.kbytes": 400_000,
            **extra,
        }
    )
    errors: list[KafkaError] = []
    acknowledged = 0

    def delivered(error: KafkaError | None, message: Message) -> None:
        nonlocal acknowledged
        if error is None:
            acknowledged += 1
        else:
            errors.append(error)

    value = os.urandom(RECORD_BYTES // 2).hex().encode()
    for i in range(WARM_UP_RECORDS):
        producer.produce(topic, value, partition=i % partitions)
    producer.flush(FLUSH_S_MAX)
    cpu_before, started = cpu_s(cluster.pids), time.perf_counter()
    for i in range(records):
        while True:
            try:
                producer.produce(topic, value, partition=i % partitions, on_delivery=delivered)
                break
            except BufferError:
                producer.poll(0.01)
        if i % POLL_EVERY_RECORDS == 0:
            producer.poll(0)
            if time.perf_counter() - started > PART_S_MAX:
                break
    unsent = producer.flush(DRAIN_S_MAX)
    seconds, cpu = time.perf_counter() - started, cpu_s(cluster.pids) - cpu_before
    if errors or unsent:
        reason = errors[0].str() if errors else f"not acknowledged after {DRAIN_S_MAX:.0f} s"
        producer.purge()
        raise LoadFailed(f"{len(errors) + unsent} records could not be produced to {cluster.name}: {reason}")
    megabytes = acknowledged * RECORD_BYTES / 1e6
    return megabytes / max(cpu, TICK_S), megabytes / seconds


def _consume(cluster: Cluster, topic: str, records: int, partitions: int) -> tuple[float, float]:
    """MB per CPU-second and MB per second; the clock runs from the first records, which came while it connected."""
    consumer = Consumer(
        {
            **_client(cluster),
            "group.id": topic,
            "enable.auto.commit": False,
            "fetch.max.bytes": 50 << 20,
            "fetch.message.max.bytes": 8 << 20,
            "queued.max.messages.kbytes": 200_000,
        }
    )
    cpu_before = cpu_s(cluster.pids)
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(partitions)])
    try:
        first = consumed = len(consumer.consume(1, PART_S_MAX))
        started = time.perf_counter()
        while consumed < records and time.perf_counter() - started < PART_S_MAX:
            messages = consumer.consume(min(CONSUME_RECORDS_MAX, records - consumed), FLUSH_S_MAX)
            if not messages:
                raise LoadFailed(f"{cluster.name} stopped sending after {consumed} of {records} records")
            for message in messages[:1]:
                if (error := message.error()) is not None:
                    raise LoadFailed(f"could not consume from {cluster.name}: {error.str()}")
            consumed += len(messages)
        seconds, cpu = time.perf_counter() - started, cpu_s(cluster.pids) - cpu_before
    finally:
        consumer.close()
    megabyte = RECORD_BYTES / 1e6
    return consumed * megabyte / max(cpu, TICK_S), (consumed - first) * megabyte / seconds


def _acknowledge(cluster: Cluster, topic: str, records: int) -> tuple[float, float]:
    """Median and 99th percentile, in ms, of the time from producing one record to its acknowledgement, one at a time."""
    producer = Producer({**_client(cluster), "linger.ms": 0, "acks": "all"})
    value = b"x" * LATENCY_RECORD_BYTES
    producer.produce(topic, value, partition=0)  # connects
    producer.flush(FLUSH_S_MAX)
    latencies_ms: list[float] = []
    started = time.perf_counter()
    for _ in range(records):
        sent = time.perf_counter()
        producer.produce(topic, value, partition=0)
        if producer.flush(FLUSH_S_MAX):
            raise LoadFailed(f"{cluster.name} did not acknowledge a record within {FLUSH_S_MAX:.0f} s")
        latencies_ms.append((time.perf_counter() - sent) * 1e3)
        if time.perf_counter() - started > PART_S_MAX:
            break
    latencies_ms.sort()
    return latencies_ms[len(latencies_ms) // 2], latencies_ms[len(latencies_ms) * 99 // 100]
