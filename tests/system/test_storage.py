"""Directories and snapshots that Kafka and we leave to each other: formatted, described, dumped, and started from.

Apache Kafka's own tools are the yardstick: what they say about our files is what we say, and the other way round.
"""

# mypy: disable-error-code="attr-defined, func-returns-value, redundant-expr, union-attr"

from __future__ import annotations

import random
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from bench.probe import await_brokers
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import ConfigResource

from strandline.ids import Uuid
from strandline.metadata import records as r
from strandline.metadata import snapshot
from strandline.metadata.image import MetadataImage
from strandline.metadata.replay import replay
from strandline.node.log_dirs import open_dirs, read_bootstrap
from strandline.runtime.disk import FileDisk
from tests.judges.java import Kafka, Run, judge
from tests.system.server import eventually, free_ports
from tests.unit.metadata.images import an_image

pytestmark = pytest.mark.java

STORAGE, DUMP = "kafka.tools.StorageTool", "org.apache.kafka.tools.DumpLogSegments"
CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qg"
VOTERS_FILE = "__cluster_metadata-0/00000000000000000000-0000000000.checkpoint"
TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 30.0


@pytest.fixture(scope="module")
def kafka() -> Kafka:
    return judge()


def strandline(*arguments: str) -> str:
    command = [sys.executable, "-m", "strandline", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert done.returncode == 0, f"{arguments}: exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@dataclass(frozen=True, slots=True)
class Prepared:
    """A node's properties file; its two log dirs are not formatted yet."""

    file: Path
    port: int
    controller_port: int

    @property
    def dirs(self) -> list[Path]:
        return [self.file.parent / "metadata", self.file.parent / "more"]


def prepare(directory: Path) -> Prepared:
    port, controller_port = free_ports(2)
    prepared = Prepared(directory / "server.properties", port, controller_port)
    prepared.file.write_text(
        "process.roles=broker,controller\nnode.id=1\ncontroller.listener.names=CONTROLLER\n"
        "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT\n"
        f"listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}\n"
        f"controller.quorum.bootstrap.servers=127.0.0.1:{controller_port}\n"
        f"metadata.log.dir={prepared.dirs[0]}\nlog.dirs={prepared.dirs[0]},{prepared.dirs[1]}\n"
        "offsets.topic.replication.factor=1\nlog.segment.delete.delay.ms=600000\n"
    )
    return prepared


def dumps(kafka: Kafka, *files: Path) -> tuple[list[str], list[str]]:
    """What Kafka's tool and ours print of these metadata files."""
    arguments = ["--cluster-metadata-decoder", "--files", ",".join(map(str, files))]
    return (
        kafka.run(DUMP, *arguments).check().out.splitlines(),
        strandline("kafka-dump-log", *arguments).splitlines(),
    )


@pytest.mark.parametrize("flags", [("--standalone",), ("-I", f"1@127.0.0.1:9093:{CLUSTER_ID}", "-r", "3.9"), ("-N",)])
def test_kafka_knows_a_directory_that_we_formatted(kafka: Kafka, tmp_path: Path, flags: tuple[str, ...]) -> None:
    prepared = prepare(tmp_path)
    strandline("storage", "format", "-c", str(prepared.file), "-t", CLUSTER_ID, *flags)
    info, again = kafka.run_all(
        [
            Run(STORAGE, ("info", "-c", str(prepared.file))),
            Run(STORAGE, ("format", "-c", str(prepared.file), "-t", CLUSTER_ID, "-N", "--ignore-formatted")),
        ]
    )
    assert info.check().out == strandline("storage", "info", "-c", str(prepared.file))
    assert again.check().out == "All of the log directories are already formatted.\n"
    files = [directory / "bootstrap.checkpoint" for directory in prepared.dirs]
    if flags != ("-N",):
        files.append(prepared.dirs[0] / VOTERS_FILE)
    theirs, ours = dumps(kafka, *files)
    assert theirs == ours
    assert sum("isvalid: true" in line for line in theirs) == 6 + 2 * (len(files) - 2)
    assert sum('"name":"metadata.version","featureLevel":' in line for line in theirs) == 2
    assert sum('"kRaftVersion":1' in line for line in theirs) == sum('"voterId":1' in line for line in theirs)


@pytest.mark.parametrize(
    "flags", [("--standalone",), ("-N", "-r", "3.9"), ("-s", "-f", "eligible.leader.replicas.version=0")]
)
def test_we_know_a_directory_that_kafka_formatted(kafka: Kafka, tmp_path: Path, flags: tuple[str, ...]) -> None:
    theirs_of, ours_of = (prepare(tmp_path / name) for name in ("kafka", "strandline") if not (tmp_path / name).mkdir())
    arguments = ("format", "-t", CLUSTER_ID, *flags)
    said = kafka.run(STORAGE, *arguments, "-c", str(theirs_of.file)).check().out
    also_said = strandline("kafka-storage", *arguments, "-c", str(ours_of.file))
    ours_lines = also_said.replace(str(ours_of.file.parent), str(theirs_of.file.parent)).splitlines()
    assert sorted(said.splitlines()[1:]) == sorted(ours_lines[1:])

    disk = FileDisk()
    cluster_id, opened = open_dirs(disk, [str(path) for path in theirs_of.dirs], 1)
    assert cluster_id == CLUSTER_ID
    assert read_bootstrap(disk, str(theirs_of.dirs[0])) == read_bootstrap(disk, str(ours_of.dirs[0]))
    if "-N" in flags:
        assert not (theirs_of.dirs[0] / VOTERS_FILE).exists()
    else:
        found, made = (snapshot.read((each.dirs[0] / VOTERS_FILE).read_bytes()) for each in (theirs_of, ours_of))
        (voter,), (our_voter,) = found.voters.voters, made.voters.voters
        assert voter.voter_directory_id == opened[0].directory_id
        our_voter.voter_directory_id, our_voter.endpoints[0].port = voter.voter_directory_id, voter.endpoints[0].port
        assert (found.kraft_version, voter) == (made.kraft_version, our_voter)
    disk.close()
    first, second = dumps(kafka, *sorted(theirs_of.file.parent.rglob("*.checkpoint")))
    assert first == second


def test_the_tables_of_features_are_kafkas(kafka: Kafka) -> None:
    releases = ["3.3-IV3", "3.4", "3.7-IV2", "3.7", "3.8", "3.9", "4.0-IV0", "4.0", "4.1-IV0", "4.1", "4.2", "4.3-IV0"]
    features = [f"metadata.version={level}" for level in range(7, 31)]
    features += [
        f"{name}={level}"
        for name in ("kraft.version", "group.version", "eligible.leader.replicas.version")
        for level in (0, 1)
    ]
    features += [f"transaction.version={level}" for level in (0, 1, 2)]
    needs = ("feature-dependencies", *(word for feature in features for word in ("-f", feature)))
    *mappings, dependencies = kafka.run_all(
        [*(Run(STORAGE, ("version-mapping", "-r", release)) for release in releases), Run(STORAGE, needs)]
    )
    served = (
        *("metadata.version", "kraft.version", "transaction.version"),
        *("group.version", "eligible.leader.replicas.version"),
    )
    for release, mapping in zip(releases, mappings, strict=True):
        lines = [line for line in mapping.check().out.splitlines() if line.startswith(served)]
        assert strandline("kafka-storage", "version-mapping", "-r", release).splitlines() == lines
    assert strandline("kafka-storage", *needs) == dependencies.check().out


@pytest.mark.parametrize("level", [30, 22, 14])
def test_kafka_reads_every_record_of_our_snapshots(kafka: Kafka, tmp_path: Path, level: int) -> None:
    kinds: set[str] = set()
    files = []
    for seed in range(6):
        image = an_image(seed, topics=9, level=level)
        file = tmp_path / f"{image.end_offset:020d}-{image.epoch:010d}.checkpoint"
        file.write_bytes(
            b"".join(snapshot.write(image, (image.end_offset, 7), kraft_version=0, voters=None, timestamp_ms=seed))
        )
        files.append(file)
    theirs, ours = dumps(kafka, *files)
    assert theirs == ours
    assert not [line for line in theirs if "skipping" in line or "isvalid: false" in line]
    kinds.update(line.partition('"type":"')[2].partition('"')[0] for line in theirs)
    assert {"REGISTER_BROKER_RECORD", "PARTITION_RECORD", "CONFIG_RECORD", "ACCESS_CONTROL_ENTRY_RECORD"} <= kinds


@dataclass(frozen=True, slots=True)
class Started:
    """What Kafka left that began with our snapshot, and what it said while it ran."""

    prepared: Prepared
    topics: dict[str, int]
    retention_ms: str


@pytest.fixture(scope="module")
def started(kafka: Kafka, tmp_path_factory: pytest.TempPathFactory) -> Started:
    prepared = prepare(tmp_path_factory.mktemp("kafka"))
    strandline("storage", "format", "-c", str(prepared.file), "-t", CLUSTER_ID, "--standalone")
    beginning = snapshot.read((prepared.dirs[0] / VOTERS_FILE).read_bytes())
    image = a_cluster(prepared, beginning.voters.voters[0].voter_directory_id)
    file = prepared.dirs[0] / "__cluster_metadata-0" / f"{image.end_offset:020d}-{image.epoch:010d}.checkpoint"
    snapshot_id = (image.end_offset, image.epoch)
    file.write_bytes(
        b"".join(snapshot.write(image, snapshot_id, kraft_version=1, voters=beginning.voters, timestamp_ms=1))
    )
    log = (prepared.file.parent / "kafka.log").open("wb")
    jvm = ("-Xmx512m", "-XX:+UseSerialGC")
    command = kafka.command("kafka.Kafka", str(prepared.file), jvm=jvm, log_level="warn")
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def check_alive() -> None:
        assert process.poll() is None, (prepared.file.parent / "kafka.log").read_text()[-3000:]

    try:
        await_brokers(f"127.0.0.1:{prepared.port}", 1, TIMEOUT_S, check_alive)
        admin = AdminClient({"bootstrap.servers": f"127.0.0.1:{prepared.port}"})

        def all_led() -> bool:
            topics = admin.list_topics(timeout=TIMEOUT_S).topics.values()
            return all(each.leader == 1 for topic in topics for each in topic.partitions.values())

        eventually(all_led, "leaders of our partitions", TIMEOUT_S)
        topics = {name: len(topic.partitions) for name, topic in admin.list_topics(timeout=TIMEOUT_S).topics.items()}
        resource = ConfigResource(ConfigResource.Type.TOPIC, "ours-3")
        (described,) = admin.describe_configs([resource]).values()
        found = Started(prepared, topics, described.result(TIMEOUT_S)["retention.ms"].value)
        process.terminate()
        process.wait(STOP_TIMEOUT_S)
    finally:
        process.kill()
        process.wait()
        log.close()
    return found


def a_cluster(prepared: Prepared, directory: Uuid) -> MetadataImage:
    chance = random.Random(1)
    endpoint = r.BrokerEndpoint(name="PLAINTEXT", host="127.0.0.1", port=prepared.port, security_protocol=0)
    records: list[r.MetadataRecord] = [
        r.FeatureLevelRecord(name="metadata.version", feature_level=30),
        r.RegisterBrokerRecord(
            broker_id=1,
            incarnation_id=Uuid.draw(chance),
            broker_epoch=5,
            end_points=(endpoint,),
            features=(r.BrokerFeature(name="metadata.version", min_supported_version=7, max_supported_version=30),),
            log_dirs=(directory,),
        ),
    ]
    for number in range(20):
        topic_id = Uuid.draw(chance)
        records.append(r.TopicRecord(name=f"ours-{number}", topic_id=topic_id))
        for index in range(3):
            records.append(
                r.PartitionRecord(
                    partition_id=index, topic_id=topic_id, replicas=(1,), isr=(1,), leader=-1, leader_epoch=3,
                    partition_epoch=4, directories=(directory,),
                )
            )  # fmt: skip
    records.append(r.ConfigRecord(resource_type=2, resource_name="ours-3", name="retention.ms", value="12345"))
    records.append(r.ProducerIdsRecord(broker_id=-1, next_producer_id=5000))
    return replay(MetadataImage(), records, 5000, 3)


def test_kafka_starts_from_a_directory_and_a_snapshot_of_ours(started: Started) -> None:
    assert started.topics == {f"ours-{number}": 3 for number in range(20)}
    assert started.retention_ms == "12345"


def test_a_metadata_log_is_dumped_as_kafka_dumps_it(kafka: Kafka, started: Started) -> None:
    directory = started.prepared.dirs[0] / "__cluster_metadata-0"
    logs = [path for path in sorted(directory.glob("*.log")) if path.stat().st_size]
    assert logs
    assert int(logs[0].stem) == 5000
    theirs, ours = dumps(kafka, *logs, *sorted(directory.glob("*.checkpoint")))
    assert theirs == ours
    for expected in (
        "LeaderChange: {",
        '"type":"PARTITION_CHANGE_RECORD"',
        '"type":"NO_OP_RECORD"',
        "SnapshotFooter {",
    ):
        assert any(expected in line for line in theirs), expected
