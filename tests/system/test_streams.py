"""Kafka Streams copies a topic with exactly_once_v2 while every node of ours is killed in turn: each input is there once."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from tests.judges.streams import copying, judge
from tests.soak import times
from tests.system.load import EAGER, all_in_sync, load, make_topic
from tests.system.local import Cluster, up
from tests.system.server import eventually

pytestmark = pytest.mark.java

ROUNDS = times(1, 5)
REPLICAS = [[1, 2, 3], [2, 3, 1], [3, 1, 2]]
SETTINGS = (
    "group.initial.rebalance.delay.ms=0",
    "offsets.topic.num.partitions=3",
    "transaction.state.log.num.partitions=3",
)
STREAMS: dict[str, str | int] = {
    "num.stream.threads": 2,
    "commit.interval.ms": 100,
    "auto.offset.reset": "earliest",
    "session.timeout.ms": 10_000,
    "heartbeat.interval.ms": 500,
}
READ_TIMEOUT_S = 60.0


class Copy:
    """What a reader of committed records has seen of the sink so far."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.values: dict[int, list[int]] = {partition: [] for partition in range(len(REPLICAS))}
        settings = {"group.id": "unused", "enable.auto.commit": False, "isolation.level": "read_committed"}
        self._consumer = Consumer({"bootstrap.servers": bootstrap, **EAGER, **settings, "auto.offset.reset": "error"})
        self._topic = topic
        self._consumer.assign([TopicPartition(topic, partition, 0) for partition in self.values])

    def __len__(self) -> int:
        return sum(map(len, self.values.values()))

    def reaches(self, count: int, what: str) -> None:
        """Read on until there are so many."""

        def enough() -> bool:
            self._read()
            return len(self) >= count

        eventually(enough, what, READ_TIMEOUT_S)

    def _read(self) -> None:
        for message in self._consumer.consume(1_000, 0.1):
            assert message.error() is None, message.error()
            partition, value = message.partition(), message.value()
            assert partition is not None
            assert value is not None
            self.values[partition].append(int(value))

    def reaches_the_end(self) -> None:
        """Nothing may follow what was read, but markers."""
        ends = 0
        for partition in self.values:
            at = TopicPartition(self._topic, partition)
            _, end = self._consumer.get_watermark_offsets(at, READ_TIMEOUT_S)

            def is_there(at: TopicPartition = at, end: int = end) -> bool:
                self._read()
                return self._consumer.position([at])[0].offset >= end

            eventually(is_there, f"the end of {self._topic}-{partition}, {end}", READ_TIMEOUT_S)
            ends += end
        assert ends > len(self), "there are no markers: these were no transactions"

    def close(self) -> None:
        self._consumer.close()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    judge()
    settings = [word for each in SETTINGS for word in ("--config", each)]
    with up(tmp_path / "cluster", 3, 0, *settings) as started:
        yield started


@pytest.mark.timeout(120 + ROUNDS * 120)
def test_each_input_is_copied_once_while_nodes_are_killed(cluster: Cluster, tmp_path: Path) -> None:
    source, sink = (make_topic(cluster, name, REPLICAS) for name in ("source", "sink"))
    took = []
    with load(cluster, source) as flow, copying(tmp_path, cluster.bootstrap, "copier", source, sink, STREAMS) as log:
        copy = Copy(cluster.bootstrap, sink)
        copy.reaches(1, "the copy begins")
        for _ in range(ROUNDS):
            for node_id in (1, 2, 3):
                cluster.kill(node_id)
                killed = time.monotonic()
                copy.reaches(len(flow.acknowledged) + 100, f"the copy goes on without node {node_id}")
                took.append(time.monotonic() - killed)
                cluster.restart(node_id)
                for topic in (source, sink, "__transaction_state", "__consumer_offsets"):
                    all_in_sync(cluster, topic)
        flow.check()
        copy.reaches(len(flow.acknowledged), "everything is copied")
    story = log.read_text()
    print(f"{len(copy)} records, back after {', '.join(f'{each:.1f}' for each in took)} s")
    print("\n".join(line for line in story.splitlines() if not line.startswith("[")))
    by_partition: dict[int, list[int]] = {partition: [] for partition in range(len(REPLICAS))}
    for number, (partition, _) in sorted(flow.acknowledged.items()):
        by_partition[partition].append(number)
    copy.reaches_the_end()
    assert copy.values == by_partition, difference(copy.values, by_partition)
    copy.close()


def difference(found: dict[int, list[int]], expected: dict[int, list[int]]) -> str:
    numbers = Counter(number for values in found.values() for number in values)
    doubled = [number for number, count in numbers.items() if count > 1]
    lost = [number for values in expected.values() for number in values if number not in numbers]
    return f"{len(doubled)} doubled ({doubled[:5]}), {len(lost)} lost ({lost[:5]})"
