"""A steady load on one partition, and what became of every record of it: a producer and a consumer that never pause by themselves.

The producer is idempotent, waits for all replicas in sync, and counts upwards once a millisecond; both clients look for a lost
leader as often as librdkafka lets them. Always true: after `end`, the consumer has read up to the last acknowledged record or has
waited `DRAIN_S_MAX` for it, so what it has not read then is lost.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

RECORD_EVERY_S = 0.001
FETCH_WAIT_MS = 50
CONSUME_RECORDS_MAX = 500
CONSUME_WAIT_S = 0.05
DELIVERY_S_MAX = 60.0
DRAIN_S_MAX = 10.0
_EAGER: dict[str, Any] = {
    "log_level": 0,
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 200,
    "topic.metadata.refresh.fast.interval.ms": 50,
}
_PRODUCER: dict[str, Any] = _EAGER | {
    "acks": "all",
    "enable.idempotence": True,
    "linger.ms": 0,
    "retry.backoff.ms": 20,
    "retry.backoff.max.ms": 100,
    "delivery.timeout.ms": int(DELIVERY_S_MAX * 1000),
}
_CONSUMER: dict[str, Any] = _EAGER | {
    "enable.auto.commit": False,
    "auto.offset.reset": "earliest",
    "fetch.wait.max.ms": FETCH_WAIT_MS,
}


@dataclass(frozen=True, slots=True)
class Fate:
    """How many records were acknowledged, and of how many of them a promise was broken."""

    acknowledged: int
    failed: int
    """Not acknowledged in the end: the producer got an error, which breaks no promise."""
    lost: int
    duplicated: int
    moved: int
    """Read at another offset than the one acknowledged."""
    out_of_order: int


class SteadyLoad:
    """Records 0, 1, 2, … to partition 0 of a topic, and back."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.acknowledged_at: list[float] = []
        """When each acknowledgement came, by `time.perf_counter`."""
        self.read_at: list[float] = []
        self._client = {"bootstrap.servers": bootstrap}
        self._topic = topic
        self._offsets: dict[int, int] = {}
        self._read: dict[int, list[int]] = {}
        self._failed = 0
        self._enough = threading.Event()
        self._all_sent = threading.Event()
        self._producing = threading.Thread(target=self._produce, daemon=True)
        self._consuming = threading.Thread(target=self._consume, daemon=True)

    def start(self) -> None:
        self._producing.start()
        self._consuming.start()

    def end(self) -> Fate:
        """Send no more, wait for what is on its way, and count."""
        self._enough.set()
        self._producing.join()
        self._all_sent.set()
        self._consuming.join()
        return judge(self._offsets, self._read, self._failed)

    def flows(self, within_s: float) -> bool:
        """Whether both an acknowledgement and a record came so lately."""
        since = time.perf_counter() - within_s
        return all(times and times[-1] > since for times in (self.acknowledged_at, self.read_at))

    def _produce(self) -> None:
        producer = Producer(self._client | _PRODUCER)

        def delivered(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                self._failed += 1
                return
            self._offsets[int(message.value() or b"")] = message.offset() or 0
            self.acknowledged_at.append(time.perf_counter())

        number = 0
        while not self._enough.is_set():
            producer.produce(self._topic, b"%d" % number, partition=0, on_delivery=delivered)
            number += 1
            producer.poll(0)
            time.sleep(RECORD_EVERY_S)
        self._failed += producer.flush(DELIVERY_S_MAX)

    def _consume(self) -> None:
        consumer = Consumer(self._client | _CONSUMER | {"group.id": self._topic})
        consumer.assign([TopicPartition(self._topic, 0, 0)])
        newest = -1
        deadline: float | None = None
        while True:
            for message in consumer.consume(CONSUME_RECORDS_MAX, CONSUME_WAIT_S):
                # An error of the connection passes by itself; records that do not come for it are counted as lost.
                if message.error() is None:
                    newest = int(message.value() or b"")
                    self._read.setdefault(newest, []).append(message.offset() or 0)
                    self.read_at.append(time.perf_counter())
            if self._all_sent.is_set():
                deadline = deadline or time.perf_counter() + DRAIN_S_MAX
                if newest >= max(self._offsets, default=-1) or time.perf_counter() > deadline:
                    break
        consumer.close()


def judge(offsets: dict[int, int], read: dict[int, list[int]], failed: int) -> Fate:
    """`offsets` are those acknowledged; `read` has the offsets each record was read at, records in the order they came first."""
    return Fate(
        acknowledged=len(offsets),
        failed=failed,
        lost=sum(number not in read for number in offsets),
        duplicated=sum(len(places) > 1 for places in read.values()),
        moved=sum(number in read and offset not in read[number] for number, offset in offsets.items()),
        out_of_order=sum(later < earlier for earlier, later in pairwise(read)),
    )


def longest_gap_ms(times: Sequence[float], begin: float, end: float) -> float:
    """The longest time between two neighbours, of the gaps that end after `begin` and begin before `end`."""
    gaps = [later - earlier for earlier, later in pairwise(times) if later > begin and earlier < end]
    return max(gaps, default=0.0) * 1000
