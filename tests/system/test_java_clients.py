"""Apache Kafka's own producer and tools as judges of the broker and of what it leaves on disk.

Tools share a JVM where they can, because starting one takes longer than most of them run.
"""

from __future__ import annotations

import asyncio
import re
import uuid
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.judges.java import Kafka, Result, Run, judge
from tests.system.clients import CONFLUENT, Broker, Rec, read_from
from tests.system.conftest import MakeTopic
from tests.system.server import Server, format_data, running
from tests.system.stories import CODEC_IDS, NOW_MS, stored_batches

pytestmark = pytest.mark.java

TOPICS, OFFSETS = "org.apache.kafka.tools.TopicCommand", "org.apache.kafka.tools.GetOffsetShell"
CONFIGS, DUMP = "kafka.admin.ConfigCommand", "org.apache.kafka.tools.DumpLogSegments"
# Kafka 4.3's tool takes -1 for the offset before the first record of every segment, of Kafka's own as well.
FIRST_OF_A_LATER_SEGMENT = re.compile(r"Non-consecutive offsets in \S*/0*(\d+)\.log\n  -1 is followed by \1\n")
PERFORMANCE = "org.apache.kafka.tools.ProducerPerformance"


@pytest.fixture(scope="session")
def kafka() -> Kafka:
    return judge()


def produce(topic: str, records: int, *properties: str) -> Run:
    """The Java producer as it comes, which is idempotent; the values are 0, 1, 2, …"""
    arguments = ["--topic", topic, "--num-records", str(records), "--payload-monotonic", "--throughput", "-1"]
    return Run(PERFORMANCE, [*arguments, "--producer-props", *properties])


def test_the_java_producer_with_each_codec(
    kafka: Kafka, broker: Broker, broker_tls: Broker, make_topic: MakeTopic
) -> None:
    topics = {codec: make_topic() for codec in CODEC_IDS}
    over_tls = make_topic()
    tls = ["security.protocol=SSL", "ssl.truststore.type=PEM", f"ssl.truststore.location={broker_tls.cafile}"]
    runs = [
        produce(topic, 5000, f"bootstrap.servers={broker.bootstrap}", f"compression.type={codec}")
        for codec, topic in topics.items()
    ]
    runs.append(produce(over_tls, 5000, f"bootstrap.servers={broker_tls.bootstrap}", *tls))
    for result in kafka.run_all(runs):
        assert "5000 records sent" in result.check().out, result
    wanted = [(i, b"%d" % i) for i in range(5000)]
    assert broker.server is not None
    for codec, topic in (*topics.items(), ("none", over_tls)):
        assert [(each.offset, each.record.value) for each in read_from(broker, topic)[0]] == wanted
        batches = list(stored_batches(broker.server.data, topic, 0))
        assert {batch.codec for batch in batches} == {CODEC_IDS[codec]}
        assert all(batch.producer_id >= 0 for batch in batches)


def test_a_topic_in_the_hands_of_the_tools(kafka: Kafka, broker: Broker) -> None:
    topic = f"tools-{uuid.uuid4().hex[:8]}"
    server = ("--bootstrap-server", broker.bootstrap)
    entity = ("--entity-type", "topics", "--entity-name", topic)
    retention = ("--config", "retention.ms=3600000")
    create = ("--create", "--topic", topic, "--partitions", "3", "--replication-factor", "1", *retention)
    runs = {
        "create": Run(TOPICS, [*server, *create]),
        "create again": Run(TOPICS, [*server, *create]),
        "list": Run(TOPICS, [*server, "--list"]),
        "describe": Run(TOPICS, [*server, "--describe", "--topic", topic]),
        "more partitions": Run(TOPICS, [*server, "--alter", "--topic", topic, "--partitions", "5"]),
        "describe more": Run(TOPICS, [*server, "--describe", "--topic", topic]),
        "alter config": Run(CONFIGS, [*server, *entity, "--alter", "--add-config", "max.message.bytes=5000"]),
        "delete config": Run(CONFIGS, [*server, *entity, "--alter", "--delete-config", "retention.ms"]),
        "describe config": Run(CONFIGS, [*server, *entity, "--describe"]),
        "all configs": Run(CONFIGS, [*server, *entity, "--describe", "--all"]),
        "broker configs": Run(
            CONFIGS, [*server, "--entity-type", "brokers", "--entity-name", "1", "--describe", "--all"]
        ),
        "produce": produce(topic, 100, f"bootstrap.servers={broker.bootstrap}", "partitioner.ignore.keys=true"),
        "earliest": Run(OFFSETS, [*server, "--topic", topic, "--time", "earliest"]),
        "latest": Run(OFFSETS, [*server, "--topic", topic, "--time", "latest"]),
        "largest timestamp": Run(OFFSETS, [*server, "--topic", topic, "--time", "max-timestamp"]),
        "delete": Run(TOPICS, [*server, "--delete", "--topic", topic]),
        "list without": Run(TOPICS, [*server, "--list"]),
    }
    results = dict(zip(runs, kafka.run_all(list(runs.values())), strict=True))
    again = results.pop("create again")
    assert again.code != 0
    assert "already exists" in again.out + again.err
    out = {name: result.check().out for name, result in results.items()}
    assert topic in out["list"].split()
    assert "PartitionCount: 3" in out["describe"]
    assert "retention.ms=3600000" in out["describe"]
    assert out["describe"].count("Leader: 1\tReplicas: 1\tIsr: 1") == 3
    assert "PartitionCount: 5" in out["describe more"]
    assert "max.message.bytes=5000" in out["describe config"]
    assert "retention.ms=" not in out["describe config"]
    assert "retention.ms=604800000" in out["all configs"]
    assert "num.partitions=2" in out["broker configs"]
    assert sorted(out["earliest"].split()) == [f"{topic}:{partition}:0" for partition in range(5)]
    assert sum(int(line.rpartition(":")[2]) for line in out["latest"].split()) == 100
    with_records = [line.rpartition(":")[0] for line in out["latest"].split() if not line.endswith(":0")]
    assert [line.rpartition(":")[0] for line in out["largest timestamp"].split()] == with_records
    assert topic not in out["list without"].split()


@pytest.fixture(scope="module")
def left_behind(kafka: Kafka, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The log dir of a server that took Java's batches and librdkafka's over several segments, then stopped in order."""
    directory = tmp_path_factory.mktemp("left-behind")
    data = directory / "data"
    format_data(data)
    with running(directory, data, {"log.segment.bytes": "1048576", "log.index.interval.bytes": "1000"}) as server:
        fill(kafka, server)
        server.stop()
    return data


def fill(kafka: Kafka, server: Server) -> None:
    broker = Broker(server.bootstrap, None, server)
    runs = [
        produce(f"java-{codec}", 20_000, f"bootstrap.servers={broker.bootstrap}", f"compression.type={codec}")
        for codec in CODEC_IDS
    ]
    for result in kafka.run_all(runs):
        result.check()
    # Timestamps that go back and forth, because the time index must only hold those that rise.
    values = [Rec(0, b"%d" % i, b"%d" % i * 300, NOW_MS + (i * 7919) % 10_000) for i in range(3000)]
    for idempotent in (False, True):
        asyncio.run(CONFLUENT.write(broker, "librdkafka", values, idempotent=idempotent))


def files(data: Path, pattern: str) -> list[Path]:
    found = sorted(data.glob(pattern))
    assert found, f"no {pattern} in {data}"
    return found


def check_dump(result: Result) -> str:
    """The tool tells of most faults on standard error and goes on, so its exit code alone proves nothing."""
    out = result.check().out
    assert FIRST_OF_A_LATER_SEGMENT.sub("", result.err) == ""
    assert "invalid bytes" not in out
    assert "isvalid: false" not in out.lower()
    return out


def test_dump_log_finds_our_segments_in_order(kafka: Kafka, left_behind: Path) -> None:
    logs = [each for each in files(left_behind, "*/*.log") if each.parent.name != "__cluster_metadata-0"]
    indexes = [each for each in files(left_behind, "*/*index") if each.stat().st_size]
    assert len(files(left_behind, "librdkafka-0/*.log")) > 1
    assert files(left_behind, "librdkafka-0/*.timeindex")
    snapshots = files(left_behind, "*/*.snapshot")

    def dump(what: Sequence[Path], *flags: str) -> Run:
        return Run(DUMP, ["--files", ",".join(map(str, what)), *flags])

    deep, verified, sane, states = kafka.run_all(
        [
            dump(logs, "--deep-iteration", "--print-data-log"),
            dump(indexes),
            dump(indexes, "--index-sanity-check"),
            dump(snapshots),
        ]
    )
    assert check_dump(deep).count("payload: ") == 20_000 * len(CODEC_IDS) + 6000
    assert "offset: " in check_dump(verified)
    assert check_dump(sane).count("passed sanity check") == len([e for e in indexes if e.suffix != ".txnindex"])
    assert "producerId: " in check_dump(states)


def test_dump_log_decodes_our_metadata(kafka: Kafka, left_behind: Path) -> None:
    logs = files(left_behind, "__cluster_metadata-0/*.log")
    arguments = ["--cluster-metadata-decoder", "--deep-iteration", "--files", ",".join(map(str, logs))]
    (result,) = kafka.run_all([Run(DUMP, arguments)])
    out = check_dump(result)
    for kind in ("FEATURE_LEVEL_RECORD", "REGISTER_BROKER_RECORD", "TOPIC_RECORD", "PARTITION_RECORD"):
        assert f'"type":"{kind}"' in out
    assert "LeaderChange" in out
    assert '"name":"librdkafka"' in out


def test_checkpoints_are_as_kafka_writes_them(left_behind: Path) -> None:
    """A version, a count, then as many lines: partitions with an offset, or epochs with theirs."""
    for epochs in files(left_behind, "librdkafka-0/leader-epoch-checkpoint"):
        version, count, *lines = epochs.read_text().splitlines()
        assert (version, int(count)) == ("0", len(lines))
        assert lines == ["0 0"]
    for name in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
        version, count, *lines = (left_behind / name).read_text().splitlines()
        assert (version, int(count)) == ("0", len(lines))
        assert "librdkafka 0 6000" in lines
        assert all(len(line.split()) == 3 for line in lines)
    version, count, *lines = (left_behind / "log-start-offset-checkpoint").read_text().splitlines()
    assert (version, int(count)) == ("0", len(lines))
    assert (left_behind / ".kafka_cleanshutdown").exists()
