"""Brokers that fail while the controllers, which are apart from them, live on: what the survivors may do, and what they may not.

The tests share a cluster and put back what they took away; each has topics of its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import aiokafka
import confluent_kafka
import kafka
import pytest
from confluent_kafka import KafkaError, TopicPartition

from tests.system.clients import AIOKAFKA, KAFKA_PYTHON, TIMEOUT_S, Broker, read_from
from tests.system.copies import assert_equal_on_disk, described, ends, events
from tests.system.load import EAGER, all_in_sync, in_sync, leaders, load, make_topic
from tests.system.local import Cluster, up
from tests.system.server import eventually

PROPERTIES = {
    "replica.high.watermark.checkpoint.interval.ms": "500",
    # Nobody is given up because this machine is busy, or because a test made it stand still; a broker that ends is, at once.
    "broker.session.timeout.ms": "120000",
    "replica.lag.time.max.ms": "120000",
    "leader.imbalance.check.interval.seconds": "1",
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    config = [word for key, value in PROPERTIES.items() for word in ("--config", f"{key}={value}")]
    with up(tmp_path_factory.mktemp("survivors") / "cluster", 3, 3, *config) as started:
        yield started


def write(bootstrap: str, topic: str, values: range, acks: str = "all") -> list[KafkaError]:
    """Without a retry: the errors that came, if any."""
    errors: list[KafkaError] = []
    settings = {"acks": acks, "retries": 0, "linger.ms": 50, "message.timeout.ms": int(TIMEOUT_S * 1000)}
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, **EAGER, **settings})
    for value in values:
        producer.produce(
            topic, b"%d" % value, partition=0, on_delivery=lambda error, _: errors.append(error) if error else None
        )
    assert producer.flush(TIMEOUT_S) == 0
    return errors


def values(bootstrap: str, topic: str) -> list[int]:
    return [int(seen.record.value or b"") for seen in read_from(Broker(bootstrap, None), topic)[0]]


def await_leader(bootstrap: str, topic: str, leader: int) -> None:
    eventually(lambda: leaders(bootstrap, topic) == [leader], f"broker {leader} leads {topic}", 60)


def await_isr(bootstrap: str, topic: str, *isr: int) -> None:
    eventually(lambda: in_sync(bootstrap, topic) == [list(isr)], f"{isr} are in sync in {topic}", 60)


def test_the_last_broker_keeps_serving(cluster: Cluster) -> None:
    """S4: of three replicas two may fail. S23: with a min ISR of two the last one takes nothing that it alone would have."""
    topic = make_topic(cluster, "last-broker", [[1, 2, 3]], min_insync_replicas="1")
    careful = make_topic(cluster, "careful", [[3, 1, 2]], min_insync_replicas="2")
    with load(cluster, topic) as running:
        cluster.kill(1)
        running.more()
        assert write(cluster.without(1), careful, range(10)) == []
        cluster.kill(2)
        running.more()

        last = cluster.without(1, 2)
        await_isr(last, careful, 3)
        refused = write(last, careful, range(10, 20))
        assert {error.code() for error in refused} == {KafkaError.NOT_ENOUGH_REPLICAS}
        assert len(refused) == 10
        with pytest.raises(kafka.errors.NotEnoughReplicasError):
            send_with_kafka_python(last, careful)
        # What a second replica has, is still served, and a producer that does not ask for more is taken.
        assert values(last, careful) == list(range(10))
        assert write(last, careful, range(20, 25), acks="1") == []

        for node_id in (1, 2):
            cluster.restart(node_id)
        all_in_sync(cluster, topic)
        all_in_sync(cluster, careful)
        running.more()
        running.check()
    assert_equal_on_disk(cluster, topic, 1, ends(running.acknowledged))
    assert values(cluster.bootstrap, careful) == [*range(10), *range(20, 25)]


def send_with_kafka_python(bootstrap: str, topic: str) -> None:
    producer = kafka.KafkaProducer(bootstrap_servers=bootstrap, acks="all", retries=0, enable_idempotence=False)
    try:
        producer.send(topic, b"refused", partition=0).get(TIMEOUT_S)
    finally:
        producer.close()


def test_what_only_the_leader_has_is_not_seen_and_is_cut_when_it_returns(cluster: Cluster) -> None:
    """S9, S13, S14, S20 and S21: a watermark behind the log end, told the same by everyone, and a tail that was never committed."""
    topic = make_topic(cluster, "tail", [[1, 2, 3]], min_insync_replicas="1")
    assert write(cluster.bootstrap, topic, range(100)) == []
    eventually(lambda: watermarks(cluster, topic) == {1: (100, 100), 2: (100, 100), 3: (100, 100)}, "all have all", 30)
    leader = cluster.without(2, 3)
    with cluster.paused(2, 3):
        # The first of them answers a fetch that waits, so it may lie in front of the followers when they wake up.
        assert write(leader, topic, range(100, 101), acks="1") == []
        assert write(leader, topic, range(101, 130), acks="1") == []
        (row,) = json.loads(cluster.served(1, f"/replicas?topic={topic}"))["replicas"]
        assert (row["role"], row["leader_epoch"], row["isr"]) == ("leader", 0, [1, 2, 3])
        assert (row["log_start_offset"], row["high_watermark"], row["log_end_offset"]) == (0, 100, 130)
        assert {each["replica"]: each["lag"] for each in row["followers"]} == {2: 30, 3: 30}
        assert values(leader, topic) == list(range(100)), "nobody reads above the high watermark"
        assert_positions_of_librdkafka(leader, topic, 100)
        cluster.kill(1)
    await_leader(cluster.without(1), topic, 2)
    assert write(cluster.without(1), topic, range(200, 240)) == []
    kept = values(cluster.without(1), topic)
    assert kept in ([*range(100), *range(200, 240)], [*range(101), *range(200, 240)])

    cluster.restart(1)
    all_in_sync(cluster, topic)
    cut = [event for event in events(cluster, topic) if event["kind"] == "truncated"]
    assert [event["node_id"] for event in cut] == [1]
    assert values(cluster.bootstrap, topic) == kept
    assert_equal_on_disk(cluster, topic, 1, {0: len(kept)})
    ends = dict.fromkeys((1, 2, 3), (len(kept), len(kept)))
    eventually(lambda: watermarks(cluster, topic) == ends, "all agree", 30)
    for node_id in (1, 2, 3):
        checkpoint = cluster.directory / f"node-{node_id}" / "data" / f"{topic}-0" / "leader-epoch-checkpoint"
        assert checkpoint.read_text().split("\n")[2] == "0 0"
        assert checkpoint.read_text().split("\n")[3].endswith(f" {len(kept) - 40}")


def watermarks(cluster: Cluster, topic: str) -> dict[int, tuple[int, int]]:
    """High watermark and log end of every replica; nothing while the command and the brokers disagree, as during an election."""
    (partition,) = described(cluster, topic)
    shown = {each["replica"]: (each["high_watermark"], each["log_end_offset"]) for each in partition["replicas"]}
    served, leaders = {}, {partition["leader"]}
    for node_id in range(1, cluster.nodes + 1):
        (row,) = json.loads(cluster.served(node_id, f"/replicas?topic={topic}"))["replicas"]
        leaders.add(row["leader"])
        served[node_id] = row["high_watermark"], row["log_end_offset"]
    return shown if shown == served and len(leaders) == 1 else {}


def assert_positions_of_librdkafka(bootstrap: str, topic: str, high_watermark: int) -> None:
    """Where it believes the partition to end, and where it is after reading from the middle."""
    consumer, half = Broker(bootstrap, None).consumer(), high_watermark // 2
    try:
        place = TopicPartition(topic, 0, half)
        consumer.assign([place])
        first = eventually(lambda: consumer.poll(1), "a record", 30)
        assert first.error() is None
        assert [each.offset for each in consumer.position([place])] == [half + 1]
        assert consumer.get_watermark_offsets(place, TIMEOUT_S) == (0, high_watermark)
    finally:
        consumer.close()


async def test_positions_that_other_clients_can_ask_for(cluster: Cluster) -> None:
    """S13, but for the committed offset, which is a matter of groups."""
    topic = make_topic(cluster, "positions", [[2, 3, 1]])
    assert write(cluster.bootstrap, topic, range(40)) == []
    broker = Broker(cluster.bootstrap, None)
    assert_positions_of_librdkafka(cluster.bootstrap, topic, 40)
    with KAFKA_PYTHON.consumer(broker) as consumer:
        there = kafka.TopicPartition(topic, 0)
        consumer.assign([there])
        consumer.seek(there, 30)
        assert consumer.position(there) == 30
        assert consumer.beginning_offsets([there]) == {there: 0}
        assert consumer.end_offsets([there]) == {there: 40}
    await assert_positions_of_aiokafka(broker, topic, 40)


async def assert_positions_of_aiokafka(broker: Broker, topic: str, high_watermark: int) -> None:
    there = aiokafka.TopicPartition(topic, 0)
    async with AIOKAFKA.consumer(broker) as consumer:
        consumer.assign([there])
        consumer.seek(there, high_watermark - 10)
        read = 0
        while read < 10:
            read += len((await consumer.getmany(there, timeout_ms=100)).get(there, ()))
        assert await consumer.position(there) == high_watermark
        assert consumer.highwater(there) == high_watermark
        assert await consumer.end_offsets([there]) == {there: high_watermark}


def test_without_a_replica_in_sync_a_partition_waits_or_loses(cluster: Cluster) -> None:
    """S24, in both ways; and S25: the first replica leads again without being asked to."""
    waits = make_topic(cluster, "waits", [[1, 2]], min_insync_replicas="1")
    loses = make_topic(cluster, "loses", [[1, 2]], min_insync_replicas="1", unclean_leader_election_enable="true")
    both = (waits, loses)
    for topic in both:
        assert write(cluster.bootstrap, topic, range(10)) == []
    cluster.kill(2)
    for topic in both:
        await_isr(cluster.without(2), topic, 1)
        assert write(cluster.without(2), topic, range(10, 20)) == []
    cluster.kill(1)
    third = cluster.without(1, 2)
    for topic in both:
        await_leader(third, topic, -1)
    cluster.restart(2)
    await_leader(third, loses, 2)
    assert leaders(third, waits) == [-1]
    assert write(third, loses, range(30, 40)) == []
    assert values(third, loses) == [*range(10), *range(30, 40)]
    assert "unclean election" in [event["kind"] for event in events(cluster, loses)]

    cluster.restart(1)
    for topic in both:
        await_isr(cluster.bootstrap, topic, 1, 2)
        await_leader(cluster.bootstrap, topic, 1)
    assert values(cluster.bootstrap, waits) == list(range(20))
    assert values(cluster.bootstrap, loses) == [*range(10), *range(30, 40)]
    # After a crash of its last leader Kafka, too, counts the election of just this one as unclean (KIP-966).
    unclean = [event["facts"]["to"] for event in events(cluster, waits) if event["kind"] == "unclean election"]
    assert set(unclean) <= {1}
    assert "truncated" in [event["kind"] for event in events(cluster, loses)]
