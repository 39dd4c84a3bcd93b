"""A log dir that Apache Kafka wrote is a log dir of ours: the same node starts on it and everything is there.

Kafka itself is the yardstick: what it served before it stopped must be what we serve, to readers of both isolation levels.
"""

# mypy: disable-error-code="unreachable"

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import confluent_kafka
import pytest
from bench.kafka_cluster import CLUSTER_ID, kafka_cluster
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import ConfigResource
from confluent_kafka.cimpl import NewTopic

from tests.judges.java import judge
from tests.system.clients import CONFLUENT, TIMEOUT_S, Broker, Rec, Seen, read_from, read_topics
from tests.system.server import Server, eventually, running
from tests.system.stories import CODEC_IDS, NOW_MS, PARTITIONS, expected, varied

pytestmark = pytest.mark.java

LEVELS = ("read_committed", "read_uncommitted")
Contents = dict[tuple[str, str], dict[int, list[Seen]]]
TOPICS: Mapping[str, Mapping[str, str]] = {
    **{f"codec-{codec}": {} for codec in CODEC_IDS},
    "compacted": {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.9"},
    "segments": {"segment.bytes": "1048576", "index.interval.bytes": "1000"},
    "transactions": {},
    "shortened": {},
    "empty": {"retention.ms": "12345"},
}


@dataclass(frozen=True, slots=True)
class Written:
    """The same logs twice: as Kafka leaves them when it stops, and as they lie there when it is killed."""

    stopped: Path
    killed: Path
    contents: Contents


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    judge()
    directory = tmp_path_factory.mktemp("kafka")
    properties = {
        "transaction.state.log.num.partitions": "2",
        "offsets.topic.num.partitions": "2",
        "log.flush.start.offset.checkpoint.interval.ms": "500",
        "log.initial.task.delay.ms": "500",
    }
    with kafka_cluster(1, properties=properties, directory=directory, heap="512m") as cluster:
        broker = Broker(cluster.bootstrap, None)
        fill(broker)
        contents = read_all(broker)
        # Before that, a crash would undo the deletion of records in Kafka as well.
        starts = directory / "data-1" / "log-start-offset-checkpoint"
        eventually(lambda: "shortened 0 50" in starts.read_text().splitlines(), "log start offset on disk")
        # A process that is halted can't write: the copy is what SIGKILL at this moment would leave.
        os.kill(cluster.pids[0], signal.SIGSTOP)
        try:
            eventually(lambda: is_halted(cluster.pids[0]), "every thread of Kafka halted")
            copy(directory / "data-1", directory / "killed")
        finally:
            os.kill(cluster.pids[0], signal.SIGCONT)
    assert (directory / "data-1" / ".kafka_cleanshutdown").exists()
    assert not (directory / "killed" / ".kafka_cleanshutdown").exists()
    return Written(directory / "data-1", directory / "killed", contents)


def fill(broker: Broker) -> None:
    admin = AdminClient(broker.confluent())
    new = [NewTopic(name, PARTITIONS, 1, config=dict(config)) for name, config in TOPICS.items()]
    for created in admin.create_topics(new, operation_timeout=TIMEOUT_S).values():
        created.result(TIMEOUT_S)
    for codec in CODEC_IDS:
        for idempotent in (False, True):
            asyncio.run(CONFLUENT.write(broker, f"codec-{codec}", varied(), codec, idempotent=idempotent))
    keyed = [Rec(i % PARTITIONS, b"%d" % (i % 9), b"%d" % i, NOW_MS + i) for i in range(500)]
    for topic in ("compacted", "shortened"):
        asyncio.run(CONFLUENT.write(broker, topic, keyed, "zstd", idempotent=True))
    many = [Rec(0, None, b"%d" % i * 200, NOW_MS + (i * 7919) % 10_000) for i in range(5000)]
    asyncio.run(CONFLUENT.write(broker, "segments", many, idempotent=True))
    write_transactions(broker)
    below = confluent_kafka.TopicPartition("shortened", 0, 50)
    for deleted in admin.delete_records([below]).values():
        assert deleted.result(TIMEOUT_S).low_watermark == 50


def write_transactions(broker: Broker) -> None:
    """One that is committed, one that is aborted, one committed again, on every partition."""
    producer = confluent_kafka.Producer(broker.confluent(transactional_id="writer", linger_ms=5))
    producer.init_transactions(TIMEOUT_S)
    for number, commit in enumerate((True, False, True)):
        producer.begin_transaction()
        for i in range(30):
            value = b"%d of transaction %d" % (i, number)
            producer.produce("transactions", value, partition=i % PARTITIONS, timestamp=NOW_MS + i)
        producer.flush(TIMEOUT_S)
        if commit:
            producer.commit_transaction(TIMEOUT_S)
        else:
            producer.abort_transaction(TIMEOUT_S)


def read_all(broker: Broker) -> Contents:
    beginning = confluent_kafka.OFFSET_BEGINNING
    return {
        (topic, level): partitions
        for level in LEVELS
        for topic, partitions in read_topics(broker, [*TOPICS], PARTITIONS, beginning, isolation_level=level).items()
    }


def is_halted(pid: int) -> bool:
    """The signal only asks: threads stop one by one, and until the last has, files may still change."""
    stats = [file.read_text() for file in Path(f"/proc/{pid}/task").glob("*/stat")]
    return all(stat.rpartition(")")[2].split()[0] == "T" for stat in stats)


def copy(source: Path, target: Path) -> Path:
    """Without the holes: Kafka gives an index that is in use its full size at once."""
    subprocess.run(["cp", "-a", "--sparse=always", str(source), str(target)], check=True)
    return target


@pytest.fixture(params=["stopped", "killed"])
def server(request: pytest.FixtureRequest, written: Written, tmp_path: Path) -> Iterator[Server]:
    """Strandline on a copy of what Kafka left."""
    data = copy(getattr(written, request.param), tmp_path / "data")
    with running(tmp_path, data) as server:
        yield server


def test_kafka_had_something_to_leave(written: Written) -> None:
    assert len(list(written.stopped.glob("segments-0/*.log"))) > 1
    counts = {key: sum(map(len, partitions.values())) for key, partitions in written.contents.items()}
    assert counts["transactions", "read_committed"] == 60
    assert counts["transactions", "read_uncommitted"] == 90
    assert counts["shortened", "read_committed"] == 450
    assert counts["segments", "read_committed"] == 5000
    assert all(counts[f"codec-{codec}", "read_committed"] == 2 * len(varied()) for codec in CODEC_IDS)


def test_strandline_serves_what_kafka_wrote(server: Server, written: Written) -> None:
    broker = Broker(server.bootstrap, None, server)
    admin = AdminClient(broker.confluent())
    metadata = admin.list_topics(timeout=TIMEOUT_S)
    assert metadata.cluster_id == CLUSTER_ID
    assert {name: len(metadata.topics[name].partitions) for name in TOPICS} == dict.fromkeys(TOPICS, PARTITIONS)
    contents = read_all(broker)
    assert contents.keys() == written.contents.keys()
    for key, partitions in written.contents.items():
        assert contents[key] == partitions, key
    for topic, config in TOPICS.items():
        assert overrides(admin, topic) == config


def overrides(admin: AdminClient, topic: str) -> dict[str, str]:
    """The configs that were set for this topic itself."""
    (described,) = admin.describe_configs([ConfigResource(ConfigResource.Type.TOPIC, topic)]).values()
    dynamic_topic_config = 1
    return {
        each.name: each.value for each in described.result(TIMEOUT_S).values() if each.source == dynamic_topic_config
    }


def test_strandline_goes_on_where_kafka_ended(server: Server, written: Written) -> None:
    """New records follow the old ones, and all of it is still there after a start on files that both have written."""
    broker = Broker(server.bootstrap, None, server)
    before = written.contents["codec-lz4", "read_committed"]
    records = varied()
    offsets = asyncio.run(CONFLUENT.write(broker, "codec-lz4", records, "lz4", idempotent=True))
    added = expected(records, offsets)
    whole = {partition: before[partition] + added[partition] for partition in before}
    assert all([seen.offset for seen in each] == list(range(len(each))) for each in whole.values())
    assert read_from(broker, "codec-lz4", PARTITIONS) == whole
    server.kill()
    with running(server.log.parent, server.data) as again:
        assert read_from(Broker(again.bootstrap, None, again), "codec-lz4", PARTITIONS) == whole
