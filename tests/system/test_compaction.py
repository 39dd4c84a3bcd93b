"""A million updates of a thousand keys become the last value of each, on every replica, while somebody reads and through a kill."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from confluent_kafka import Consumer, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from strandline.records.batch import decode
from strandline.records.header import iterate
from tests.judges.java import judge
from tests.system.copies import events, segments
from tests.system.load import EAGER, all_in_sync, make_topic
from tests.system.local import Cluster, up
from tests.system.server import eventually

KEYS = 1000
UPDATES = 1_000_000
FLUSH_TIMEOUT_S = 120
CLEAN_TIMEOUT_S = 120
VALUE = "%08d" + "x" * 72
"""With its key and what a record is wrapped in, about a hundred bytes."""
COMPACTED = {
    "cleanup_policy": "compact",
    "segment_bytes": str(8 << 20),
    "min_cleanable_dirty_ratio": "0.01",
    "max_compaction_lag_ms": "5000",  # even the segment that is written to is cleaned at last
}
EAGER_CLEANER = ("--config", "log.cleaner.backoff.ms=100")
NODES = (1, 2, 3)


def key_of(number: int) -> str:
    return f"key-{number * 7919 % KEYS:04}"


def update(cluster: Cluster, topic: str, updates: int) -> dict[str, str]:
    """Write; the last value of each key."""
    failed: list[str] = []

    def delivered(error: object, message: Message) -> None:
        if error is not None:
            failed.append(str(error))

    producer = Producer({"bootstrap.servers": cluster.bootstrap, **EAGER, "enable.idempotence": True, "linger.ms": 5})
    newest = {}
    for number in range(updates):
        key, value = key_of(number), VALUE % number
        newest[key] = value
        while True:
            try:
                producer.produce(topic, value, key, on_delivery=delivered)
                break
            except BufferError:
                producer.poll(0.05)
    assert producer.flush(FLUSH_TIMEOUT_S) == 0
    assert not failed, failed[0]
    return newest


class Reader:
    """Reads from the start on, while segments are replaced under it."""

    def __init__(self, cluster: Cluster, topic: str) -> None:
        self.newest: dict[str, str] = {}
        self.records = 0
        self.last_offset = -1
        self.problems: list[str] = []
        self._consumer = Consumer({"bootstrap.servers": cluster.bootstrap, **EAGER, "group.id": "reader"})
        self._consumer.assign([TopicPartition(topic, 0, 0)])
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def _read(self) -> None:
        while not self._is_over.is_set():
            for message in self._consumer.consume(1000, 0.2):
                if message.error() is not None:
                    self.problems.append(str(message.error()))
                    continue
                key, value, offset = message.key(), message.value(), message.offset()
                assert isinstance(key, bytes)
                assert isinstance(value, bytes)
                assert offset is not None
                if offset <= self.last_offset:
                    self.problems.append(f"offset {offset} after {self.last_offset}")
                self.last_offset = offset
                self.newest[key.decode()] = value.decode()
                self.records += 1

    def close(self) -> None:
        self._is_over.set()
        self._thread.join()
        self._consumer.close()


def records(cluster: Cluster, node_id: int, topic: str) -> Iterator[tuple[int, str, str]]:
    """Offset, key and value of all that is on a replica's disk."""
    for path in segments(cluster, node_id, topic):
        data = memoryview(path.read_bytes())
        for at, header in iterate(data):
            for record in decode(data[at : at + header.size_bytes]):
                assert record.key is not None
                assert record.value is not None
                yield record.offset, bytes(record.key).decode(), bytes(record.value).decode()


def is_clean(cluster: Cluster, node_id: int, topic: str) -> bool:
    """Each key is there once. Files come and go while it is looked."""
    try:
        return sum(1 for _ in records(cluster, node_id, topic)) == KEYS
    except FileNotFoundError:
        return False


def assert_cleaned(cluster: Cluster, topic: str, newest: dict[str, str]) -> None:
    """On every replica: the last value of each key and nothing else, at the same offsets."""
    for node_id in NODES:
        eventually(
            lambda node_id=node_id: is_clean(cluster, node_id, topic),  # type: ignore[misc]
            f"node {node_id} has each key once",
            CLEAN_TIMEOUT_S,
        )
    stored = [list(records(cluster, node_id, topic)) for node_id in NODES]
    assert {key: value for _, key, value in stored[0]} == newest
    assert stored[0] == stored[1] == stored[2]
    for node_id in NODES:
        directory = cluster.directory / f"node-{node_id}" / "data" / f"{topic}-0"
        assert not [path.name for path in directory.iterdir() if path.suffix in (".cleaned", ".swap")]


def cleaners(cluster: Cluster, node_id: int) -> list[psutil.Process]:
    """The processes that clean for a node."""
    return [
        child
        for child in psutil.Process(cluster.pid(node_id)).children()
        if "strandline.runtime.niced_child" in child.cmdline()
    ]


def metric(cluster: Cluster, node_id: int, name: str) -> float:
    lines = cluster.served(node_id, "/metrics").splitlines()
    return next(float(line.split()[-1]) for line in lines if line.startswith(f"{name} "))


def test_a_million_updates_shrink_to_the_last_value_of_each_key_while_somebody_reads(tmp_path: Path) -> None:
    with up(tmp_path / "cluster", 3, 0, *EAGER_CLEANER) as cluster:
        assert [cleaners(cluster, node_id) for node_id in NODES] == [[], [], []], "nothing to do, nobody there"
        assert metric(cluster, 1, "kafka_log_logcleanermanager_time_since_last_run_ms") == 0
        topic = make_topic(cluster, "compacted", [[1, 2, 3]], **COMPACTED)
        reader = Reader(cluster, topic)
        try:
            newest = update(cluster, topic, UPDATES)
            assert_cleaned(cluster, topic, newest)
            eventually(lambda: reader.last_offset == UPDATES - 1, "the reader is at the end", 60)
        finally:
            reader.close()
        assert reader.problems == []
        assert reader.newest == newest
        assert KEYS <= reader.records <= UPDATES
        late = Reader(cluster, topic)
        try:
            eventually(lambda: late.last_offset == UPDATES - 1, "who comes later is at the end too", 60)
        finally:
            late.close()
        assert (late.newest, late.records, late.problems) == (newest, KEYS, [])
        nodes = {event["node_id"] for event in events(cluster, topic) if event["kind"] == "compacted"}
        assert nodes == set(NODES)
        for node_id in NODES:
            assert metric(cluster, node_id, "strandline_cleaner_cleanings_total") > 0
            (process,) = cleaners(cluster, node_id)
            assert process.nice() == 19


@pytest.mark.java
def test_a_node_that_is_killed_while_it_cleans_cleans_after_its_return(tmp_path: Path) -> None:
    killed = 2
    # Slow enough to be caught in the middle of it.
    slowly = ("--config", f"log.cleaner.io.max.bytes.per.second={8 << 20}")
    with up(tmp_path / "cluster", 3, 0, *EAGER_CLEANER, *slowly) as cluster:
        topic = make_topic(cluster, "compacted", [[1, 2, 3]], **COMPACTED)
        directory = cluster.directory / f"node-{killed}" / "data" / f"{topic}-0"
        newest = update(cluster, topic, UPDATES // 10)
        for _ in range(2):
            eventually(lambda: list(directory.glob("*.cleaned")), "it is cleaning", CLEAN_TIMEOUT_S)
            (process,) = cleaners(cluster, killed)
            cluster.kill(killed)
            process.wait(10)
            newest |= update(cluster, topic, UPDATES // 20)
            cluster.restart(killed)
            all_in_sync(cluster, topic)
        assert_cleaned(cluster, topic, newest)
        kafka = judge()
        for node_id in NODES:
            files = ",".join(map(str, segments(cluster, node_id, topic)))
            dump = ("--print-data-log", "--deep-iteration", "--files", files)
            told = kafka.run("org.apache.kafka.tools.DumpLogSegments", *dump).check().out
            values = [line.split(" payload: ")[1] for line in told.splitlines() if " payload: " in line]
            assert sorted(values) == sorted(newest.values())
            assert "isvalid: false" not in told.lower()


def test_deleting_a_topic_ends_its_cleaning_and_the_next_of_that_name_is_another(tmp_path: Path) -> None:
    slowly = ("--config", f"log.cleaner.io.max.bytes.per.second={1 << 20}")
    with up(tmp_path / "cluster", 1, 0, *EAGER_CLEANER, *slowly) as cluster:
        topic = make_topic(cluster, "compacted", [[1]], **COMPACTED)
        directory = cluster.directory / "node-1" / "data" / f"{topic}-0"
        update(cluster, topic, UPDATES // 10)
        eventually(lambda: list(directory.glob("*.cleaned")), "it is cleaning", CLEAN_TIMEOUT_S)
        (process,) = cleaners(cluster, 1)
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
        admin.delete_topics([topic])[topic].result(30)
        process.wait(10)
        make_topic(cluster, topic, [[1]], **COMPACTED)
        newest = update(cluster, topic, KEYS)
        assert {key: value for _, key, value in records(cluster, 1, topic)} == newest
