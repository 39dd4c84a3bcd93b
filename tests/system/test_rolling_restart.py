"""All nodes are restarted one after another under load, each with a rack it did not have before; then consumers read nearby."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, TopicPartition

from tests.judges.java import Kafka, Run, judge
from tests.system.copies import assert_equal_on_disk, described, ends, segments
from tests.system.load import EAGER, Load, all_in_sync, leaders, load, make_topic
from tests.system.local import Cluster, strandline, up
from tests.system.server import eventually

NODES = (1, 2, 3)
PARTITIONS = [[1, 2, 3], [2, 3, 1], [3, 1, 2]]
TOPIC = "rolled"
CONFIG = (
    "replica.high.watermark.checkpoint.interval.ms=500",
    "replica.selector.class=org.apache.kafka.common.replica.RackAwareReplicaSelector",
)
BYTES_OUT = re.compile(rf'^kafka_server_brokertopicmetrics_bytesout_total{{topic="{TOPIC}"}} (\S+)$', re.MULTILINE)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    config = [word for each in CONFIG for word in ("--config", each)]
    with up(tmp_path_factory.mktemp("rolling") / "cluster", 3, 0, *config) as started:
        yield started


@pytest.fixture(scope="module")
def rolled(cluster: Cluster) -> Load:
    """What the clients saw while every node was stopped and started again."""
    topic = make_topic(cluster, TOPIC, PARTITIONS, min_insync_replicas="2")
    with load(cluster, topic) as running:
        for node_id in NODES:
            cluster.stop(node_id)
            cluster.configure(node_id, broker_rack=f"rack-{node_id}")
            running.more()
            cluster.restart(node_id)
            all_in_sync(cluster, topic)
        running.more()
        running.stop()
    return running


def test_nobody_hears_of_it_and_nothing_is_lost(cluster: Cluster, rolled: Load) -> None:
    """Rule B14."""
    rolled.check()
    assert_equal_on_disk(cluster, TOPIC, len(PARTITIONS), ends(rolled.acknowledged))
    brokers = json.loads(strandline("cluster", "describe", "--json", *cluster.server))["brokers"]
    assert [row["rack"] for row in brokers] == ["rack-1", "rack-2", "rack-3"]


def test_a_consumer_reads_from_the_replica_in_its_rack(cluster: Cluster, rolled: Load) -> None:
    """S5, A16. The consumer says whom it asks, and only that broker has sent anything."""
    leader = leaders(cluster.bootstrap, TOPIC)[0]
    near = next(node_id for node_id in NODES if node_id != leader)
    expected = [number for number, (partition, _) in rolled.acknowledged.items() if partition == 0]

    before = bytes_out(cluster)
    assert read(cluster, rack=None) == (sorted(expected), leader)
    by_default = bytes_out(cluster)
    assert {node_id for node_id in NODES if by_default[node_id] > before[node_id]} == {leader}

    assert read(cluster, rack=f"rack-{near}") == (sorted(expected), near)
    nearby = bytes_out(cluster)
    assert {node_id for node_id in NODES if nearby[node_id] > by_default[node_id]} == {near}


def bytes_out(cluster: Cluster) -> dict[int, float]:
    """What each broker has sent to consumers."""
    found = {node_id: BYTES_OUT.search(cluster.served(node_id, "/metrics")) for node_id in NODES}
    return {node_id: float(match[1]) if match else 0.0 for node_id, match in found.items()}


def read(cluster: Cluster, rack: str | None) -> tuple[list[int], int]:
    """Everything of partition 0, and the broker it was read from at the end, as the consumer tells."""
    brokers: list[int] = []

    def told(statistics: str) -> None:
        partitions = json.loads(statistics)["topics"].get(TOPIC, {}).get("partitions", {})
        if "0" in partitions:
            brokers.append(partitions["0"]["broker"])

    settings = {"group.id": "unused", "enable.auto.commit": False, "auto.offset.reset": "error"}
    near = {"client.rack": rack} if rack else {}
    counting = {"statistics.interval.ms": 100, "stats_cb": told, "enable.partition.eof": True}
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, **EAGER, **settings, **near, **counting})
    numbers: list[int] = []
    try:
        consumer.assign([TopicPartition(TOPIC, 0, 0)])

        def is_read() -> bool:
            messages = consumer.consume(1000, 0.1)
            numbers.extend(int(message.value() or b"") for message in messages if message.error() is None)
            return any(message.error() is not None for message in messages)

        eventually(is_read, "the end of the partition", 60)
        said = len(brokers)

        def has_spoken() -> bool:
            consumer.poll(0.1)
            return len(brokers) > said

        eventually(has_spoken, "statistics", 30)
        return numbers, brokers[-1]
    finally:
        consumer.close()


def test_every_replica_tells_the_same(cluster: Cluster, rolled: Load) -> None:
    """S14: the command, each broker's own words, and what the clients were promised."""
    told = ("log_start_offset", "high_watermark", "log_end_offset", "leader_epoch")
    for partition, end in ends(rolled.acknowledged).items():

        def is_level(partition: int = partition, end: int = end) -> bool:
            """A follower hears of a watermark with its next fetch, so it may be told later than the clients."""
            return all(each["high_watermark"] == end for each in described(cluster, TOPIC)[partition]["replicas"])

        eventually(is_level, f"every replica of {TOPIC}-{partition} knows the watermark {end}", 30)
        shown = described(cluster, TOPIC)[partition]
        assert sorted(shown["isr"]) == list(NODES)
        assert {each["replica"] for each in shown["replicas"]} == set(NODES)
        for each in shown["replicas"]:
            served = json.loads(cluster.served(each["replica"], f"/replicas?topic={TOPIC}&partition={partition}"))
            (row,) = served["replicas"]
            assert [row[name] for name in told] == [each[name] for name in told] == [0, end, end, shown["leader_epoch"]]
            assert each["in_sync"]
            assert each["lag"] == 0


def dumped(text: str) -> list[str]:
    """The lines about batches and records, without those that name the file."""
    return [line for line in text.splitlines() if line.startswith(("baseOffset:", "| offset:"))]


@pytest.mark.java
def test_the_log_is_printed_the_same_on_every_replica(cluster: Cluster, rolled: Load) -> None:
    """S3, by Kafka's tool and by ours."""
    kafka: Kafka = judge()
    paths = [",".join(map(str, segments(cluster, node_id, TOPIC, 0))) for node_id in NODES]
    runs = [
        Run("org.apache.kafka.tools.DumpLogSegments", ("--print-data-log", "--deep-iteration", "--files", path))
        for path in paths
    ]
    theirs = [dumped(result.check().out) for result in kafka.run_all(runs)]
    ours = [dumped(strandline("kafka-dump-log", "--print-data-log", "--files", path)) for path in paths]
    records = [line for line in theirs[0] if line.startswith("| offset:")]
    assert len(records) == sum(partition == 0 for partition, _ in rolled.acknowledged.values())
    for told in (*theirs, *ours):
        assert told == theirs[0]
