"""The command line as a person uses it: real processes, real pipes, and Kafka's own tools beside ours."""

# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

import contextlib
import json
import os
import pty
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trustme
from bench.kafka_cluster import free_ports

from tests.judges.java import judge
from tests.system.clients import Broker
from tests.system.conftest import MakeTopic

COMMAND = [sys.executable, "-m", "strandline"]
DUMP = "org.apache.kafka.tools.DumpLogSegments"
TOPICS = "org.apache.kafka.tools.TopicCommand"
CONFIGS = "kafka.admin.ConfigCommand"
STORAGE = "kafka.tools.StorageTool"
API_VERSIONS = "org.apache.kafka.tools.BrokerApiVersionsCommand"
SEGMENT = "00000000000000000000"


def strandline(*arguments: str, stdin: str = "", code: int = 0) -> str:
    """The output of one call; its exit code must be as expected."""
    done = subprocess.run([*COMMAND, *arguments], input=stdin, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == code, f"{arguments} gave {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout if code == 0 else done.stdout + done.stderr


def port_pair() -> int:
    """A port that is free, as is its controller's."""
    import socket

    for _ in range(100):
        (port,) = free_ports(1)
        if port + 1000 < 65536:
            with socket.socket() as controller, contextlib.suppress(OSError):
                controller.bind(("127.0.0.1", port + 1000))
                return port
    raise AssertionError("no two free ports")


class Cluster:
    def __init__(self, directory: Path, port: int) -> None:
        self.directory = directory
        self.port = port
        self.server = ("--bootstrap-server", f"127.0.0.1:{port}")

    def status(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = json.loads(strandline("status", "--dir", str(self.directory), "--json"))
        return rows

    def file(self, topic: str, suffix: str = ".log") -> str:
        return str(self.directory / "node-1" / "data" / f"{topic}-0" / f"{SEGMENT}{suffix}")


@contextlib.contextmanager
def up(directory: Path, *arguments: str, port: int | None = None) -> Iterator[Cluster]:
    cluster = Cluster(directory, port or port_pair())
    strandline("up", "--detach", "--dir", str(directory), "--port", str(cluster.port), *arguments)
    try:
        yield cluster
    finally:
        strandline("down", "--dir", str(directory))


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with up(tmp_path_factory.mktemp("cli") / "cluster") as started:
        yield started


def test_up_status_down_and_up_again(tmp_path: Path) -> None:
    directory = tmp_path / "cluster"
    with up(directory) as cluster:
        (row,) = cluster.status()
        keys = ["node_id", "pid", "address", "roles", "alive", "data_dir", "metrics", "broker_address", "controller"]
        assert list(row) == keys
        assert row["address"] == f"127.0.0.1:{cluster.port}"
        assert row["roles"] == ["broker", "controller"]
        assert row["alive"] is True
        assert Path(row["data_dir"], "meta.properties").exists()
        strandline("topics", "create", "kept", *cluster.server)
        refused = strandline("up", "--dir", str(directory), "--port", str(port_pair()), code=1)
        assert "already running" in refused
        assert "stopped cleanly" in strandline("down", "--dir", str(directory))
        assert [row["alive"] for row in cluster.status()] == [False]
        assert "nothing is running" in strandline("down", "--dir", str(directory))

        strandline("up", "--detach", "--dir", str(directory))  # on the port it had
        assert "kept" in strandline("topics", "list", *cluster.server)
        strandline("down", "--dir", str(directory))

        strandline("up", "--detach", "--fresh", "--dir", str(directory), "--port", str(cluster.port))
        assert strandline("topics", "list", *cluster.server) == ""


def test_a_port_in_use_is_one_line(tmp_path: Path, cluster: Cluster) -> None:
    said = strandline("up", "--dir", str(tmp_path / "other"), "--port", str(cluster.port), code=1)
    assert said == f"strandline: 127.0.0.1:{cluster.port} is in use; choose another with --port\n"


def test_a_directory_with_a_space_and_a_reader_who_leaves_early(tmp_path: Path) -> None:
    directory = tmp_path / "my cluster"
    arguments = ["up", "--detach", "--dir", str(directory), "--port", str(port_pair())]
    with subprocess.Popen([*COMMAND, *arguments], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.wait(60) == 0
    try:
        (row,) = json.loads(strandline("status", "--dir", str(directory), "--json"))
        assert row["alive"] is True
        again = strandline("up", "--detach", "--dir", str(directory), code=1)
        assert f"`strandline down --dir '{directory}'` first" in again
    finally:
        strandline("down", "--dir", str(directory))


def test_a_cluster_that_is_not_there_or_not_ours_is_one_line(tmp_path: Path) -> None:
    nowhere, damaged = tmp_path / "nowhere", tmp_path / "damaged"
    damaged.mkdir()
    (damaged / "cluster.json").write_text('{"version": 1, "processes"')
    for command in ("status", "down"):
        said = strandline(command, "--dir", str(nowhere), code=1)
        assert said == f"strandline: there is no cluster in {nowhere}; `strandline up --dir {nowhere}` starts one\n"
    for command in ("status", "down", "up"):
        said = strandline(command, "--dir", str(damaged), code=1)
        assert said.count("\n") == 1
        assert "cluster.json cannot be read as a cluster" in said


def test_a_node_that_was_killed_is_started_again(tmp_path: Path) -> None:
    with up(tmp_path / "cluster") as cluster:
        (row,) = cluster.status()
        node = os.pidfd_open(row["pid"])
        os.kill(row["pid"], signal.SIGKILL)
        assert select.select([node], [], [], 30)[0]
        os.close(node)
        assert cluster.status()[0]["alive"] is False
        assert "nothing is running" in strandline("down", "--dir", str(cluster.directory))
        strandline("up", "--detach", "--dir", str(cluster.directory))
        assert cluster.status()[0]["alive"] is True


def test_a_wrong_config_is_told_and_not_kept(tmp_path: Path) -> None:
    directory, port = tmp_path / "cluster", str(port_pair())
    said = strandline("up", "--detach", "--dir", str(directory), "--port", port, "--config", "num.partitons=3", code=1)
    assert "num.partitons" in said
    assert "num.partitions" in said  # what was meant
    strandline("up", "--detach", "--dir", str(directory))
    strandline("down", "--dir", str(directory))


def test_up_in_the_foreground_stops_with_ctrl_c(tmp_path: Path) -> None:
    directory = tmp_path / "cluster"
    with _foreground(directory) as (process, said):
        assert "ready in " in said
        assert "Try next:" in said
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
    (row,) = json.loads(strandline("status", "--dir", str(directory), "--json"))
    assert row["alive"] is False
    assert (Path(row["data_dir"]) / ".kafka_cleanshutdown").exists()


def test_down_from_elsewhere_ends_up_in_order(tmp_path: Path) -> None:
    directory = tmp_path / "cluster"
    with _foreground(directory) as (process, _):
        strandline("down", "--dir", str(directory))
        _, errors = process.communicate(timeout=30)
        assert process.returncode == 0
        assert errors.strip() == "stopped cleanly by another process"


def test_a_node_that_dies_ends_up_with_its_last_words(tmp_path: Path) -> None:
    directory = tmp_path / "cluster"
    with _foreground(directory) as (process, _):
        (row,) = json.loads(strandline("status", "--dir", str(directory), "--json"))
        os.kill(row["pid"], signal.SIGKILL)
        _, errors = process.communicate(timeout=30)
        assert process.returncode == 1
        assert "node 1 | " in errors
        assert "node 1 ended by signal SIGKILL" in errors


@contextlib.contextmanager
def _foreground(directory: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    arguments = ["up", "--dir", str(directory), "--port", str(port_pair())]
    process = subprocess.Popen([*COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    said = ""
    try:
        while not said.endswith("Stop it with: Ctrl-C\n"):
            line = process.stdout.readline()
            assert line, f"up ended\n{said}"
            said += line
        yield process, said
    finally:
        if process.poll() is None:
            process.terminate()
        process.communicate()


def test_up_on_a_terminal_draws(tmp_path: Path) -> None:
    leader, follower = pty.openpty()
    directory = tmp_path / "cluster"
    arguments = ["up", "--detach", "--dir", str(directory), "--port", str(port_pair())]
    process = subprocess.Popen([*COMMAND, *arguments], stdin=follower, stdout=follower, stderr=follower)
    os.close(follower)
    seen = b""
    try:
        while process.poll() is None or select.select([leader], [], [], 0)[0]:
            with contextlib.suppress(OSError):
                seen += os.read(leader, 4096) if select.select([leader], [], [], 0.1)[0] else b""
            if process.poll() is not None and not select.select([leader], [], [], 0)[0]:
                break
            if process.poll() is not None:
                break
    finally:
        os.close(leader)
        strandline("down", "--dir", str(directory))
    assert process.returncode == 0
    assert b"\x1b[" in seen
    assert b"ready in" in seen


def test_the_commands_of_the_notes(cluster: Cluster) -> None:
    script = "/usr/local/kafka/bin/kafka-topics.sh"
    topic = ("--topic", "peter-test01")
    created = strandline(script, *cluster.server, "--create", *topic, "--partitions", "1", "--replication-factor", "1")
    assert created == "Created topic peter-test01.\n"
    again = strandline("kafka-topics", *cluster.server, "--create", *topic, code=1)
    assert again == "Error while executing topic command : Topic 'peter-test01' already exists.\n"
    first, second = strandline("kafka-topics", *cluster.server, *topic, "--describe").splitlines()
    assert first.startswith("Topic: peter-test01\tTopicId: ")
    # As in Kafka: with eligible leader replicas, min.insync.replicas is written down for the whole cluster.
    assert first.endswith("\tPartitionCount: 1\tReplicationFactor: 1\tConfigs: min.insync.replicas=1")
    assert second == "\tTopic: peter-test01\tPartition: 0\tLeader: 1\tReplicas: 1\tIsr: 1\tElr: \tLastKnownElr: "

    strandline("kafka-console-producer", *cluster.server, *topic, stdin="test message1\n")
    consumed = strandline("kafka-console-consumer", *cluster.server, *topic, "--from-beginning", "--max-messages", "1")
    assert consumed == "test message1\n"

    dumped = strandline("kafka-dump-log", "--print-data-log", "--files", cluster.file("peter-test01")).splitlines()
    assert dumped[1] == "Log starting offset: 0"
    assert dumped[2].startswith("baseOffset: 0 lastOffset: 0 count: 1 ")
    assert dumped[3].startswith("| offset: 0 CreateTime: ")
    assert dumped[3].endswith(" payload: test message1")


def test_topics_say_whether_they_can_lose_data(cluster: Cluster) -> None:
    strandline("topics", "create", "judged", "--partitions", "2", *cluster.server)
    (described,) = json.loads(strandline("topics", "describe", "judged", "--json", *cluster.server))
    assert len(described["partitions"]) == 2
    assert described["can_lose_data"] is True
    assert described["rule"].startswith("ReplicationFactor 1")
    assert "can lose data: ReplicationFactor 1" in strandline("topics", "describe", "judged", *cluster.server)
    strandline("topics", "alter", "judged", "--partitions", "3", *cluster.server)
    assert "judged\t3\t1" in strandline("topics", "list", *cluster.server)
    strandline("topics", "delete", "judged", *cluster.server)
    assert "there is no topic 'judged'" in strandline("topics", "describe", "judged", *cluster.server, code=1)


def test_lines_come_back_as_they_went(cluster: Cluster) -> None:
    lines = "".join(f"k{number}:value {number} é\n" for number in range(2000))
    strandline("produce", "lines", "--key-separator", ":", "--compression", "zstd", *cluster.server, stdin=lines)
    back = strandline("consume", "lines", "--from-beginning", "--until-end", "--key", *cluster.server)
    assert back.replace("\t", ":") == lines
    one = strandline("consume", "lines", "--partition", "0", "--offset", "42", "-n", "1", "--json", *cluster.server)
    record = json.loads(one)
    assert (record["offset"], record["key"], record["value"]) == (42, "k42", "value 42 é")


def test_a_line_is_sent_when_the_input_pauses(cluster: Cluster) -> None:
    strandline("topics", "create", "typed", *cluster.server)
    with subprocess.Popen([*COMMAND, "produce", "typed", *cluster.server], stdin=subprocess.PIPE) as producer:
        assert producer.stdin is not None
        producer.stdin.write(b"first\n")
        producer.stdin.flush()
        consumed = strandline("consume", "typed", "--from-beginning", "--max-messages", "1", *cluster.server)
        assert consumed == "first\n"
        producer.stdin.close()
        assert producer.wait(30) == 0


def test_consuming_stops_cleanly_with_ctrl_c_and_with_a_closed_pipe(cluster: Cluster) -> None:
    strandline("produce", "stops", "--count", "5000", "--size", "100", *cluster.server)
    arguments = [*COMMAND, "consume", "stops", "--from-beginning", *cluster.server]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as consumer:
        assert consumer.stdout is not None
        assert consumer.stdout.read(100)
        consumer.send_signal(signal.SIGINT)
        _, errors = consumer.communicate(timeout=30)
        assert (consumer.returncode, errors) == (0, b"")
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as consumer:
        assert consumer.stdout is not None
        assert consumer.stdout.read(100)
        consumer.stdout.close()
        consumer.stdout = None
        _, errors = consumer.communicate(timeout=30)
        assert (consumer.returncode, errors) == (0, b"")


def test_configs_change_and_change_back(cluster: Cluster) -> None:
    strandline("topics", "create", "tuned", *cluster.server)
    strandline("configs", "set", "--topic", "tuned", "retention.ms=60000", *cluster.server)
    (entry,) = json.loads(strandline("configs", "describe", "--topic", "tuned", "--json", *cluster.server))
    assert (entry["name"], entry["value"], entry["source"]) == ("retention.ms", "60000", "DYNAMIC_TOPIC_CONFIG")
    strandline("configs", "unset", "--topic", "tuned", "retention.ms", *cluster.server)
    assert json.loads(strandline("configs", "describe", "--topic", "tuned", "--json", *cluster.server)) == []
    said = strandline("configs", "set", "--topic", "tuned", "retention=1", *cluster.server, code=1)
    assert said.count("\n") == 1


def test_doctor_looks_at_the_cluster(cluster: Cluster) -> None:
    findings = json.loads(strandline("doctor", "--dir", str(cluster.directory), "--json"))
    checks = {finding["check"] for finding in findings}
    assert {"Python", "processes", "brokers", "listeners", "disk", "durability"} <= checks
    assert all(finding["level"] != "fail" for finding in findings)


def test_nobody_there_is_told() -> None:
    said = strandline("topics", "list", "--bootstrap-server", "127.0.0.1:1", code=1)
    assert "no broker reachable at 127.0.0.1:1" in said
    assert said.count("\n") == 1


def test_an_override_and_a_second_signal(tmp_path: Path) -> None:
    port = port_pair()
    properties = tmp_path / "server.properties"
    properties.write_text(
        "process.roles=broker,controller\nnode.id=1\ncontroller.listener.names=CONTROLLER\n"
        f"listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{port + 1000}\n"
        f"controller.quorum.voters=1@127.0.0.1:{port + 1000}\nlog.dirs=/nowhere\n"
    )
    override = ("--override", f"log.dirs={tmp_path}/data", "--cluster-id", "MkU3OEVBNTcwNTJENDM2Qg")
    with subprocess.Popen([*COMMAND, "server", str(properties), *override], stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        while json.loads(server.stdout.readline())["event"] != "started":
            pass
        server.send_signal(signal.SIGTERM)
        rest = [json.loads(line)["event"] for line in server.stdout]
        assert server.wait(30) == 0
        assert rest[-1] == "stopped"
    assert (tmp_path / "data" / "meta.properties").exists()


@pytest.fixture
def client_properties(tmp_path: Path, broker_tls: Broker):
    """A file of client properties for the TLS listener."""

    def write(*more: str) -> str:
        path = tmp_path / "client.properties"
        lines = [
            f"bootstrap.servers={broker_tls.bootstrap}",
            "security.protocol=SSL",
            "ssl.truststore.type=PEM",
            f"ssl.truststore.location={broker_tls.cafile}",
            *more,
        ]
        path.write_text("".join(f"{line}\n" for line in lines))
        return str(path)

    return write


def test_kafkas_tools_over_tls(client_properties, make_topic: MakeTopic) -> None:
    topic = ("--topic", make_topic())
    file = ("--command-config", client_properties("client.id=me", "request.timeout.ms=20000"))
    assert topic[1] in strandline("kafka-topics", *file, "--list").splitlines()
    described = strandline("kafka-configs", *file, "--describe", *topic)
    assert described == f"Dynamic configs for topic {topic[1]} are:\n"
    assert "ApiVersions(18): " in strandline("kafka-broker-api-versions", *file)
    producing = ("--producer.config", client_properties("acks=all", "compression.type=zstd", "linger.ms=1"))
    strandline("kafka-console-producer", *producing, *topic, stdin="over tls\n")
    consuming = ("--consumer.config", client_properties("max.poll.records=1", "auto.offset.reset=earliest"))
    assert strandline("kafka-console-consumer", *consuming, *topic, "--max-messages", "1") == "over tls\n"


def test_our_commands_over_tls(client_properties, make_topic: MakeTopic) -> None:
    topic = make_topic()
    file = ("--command-config", client_properties())
    assert topic in strandline("topics", "list", *file)
    strandline("configs", "set", "--topic", topic, "retention.ms=60000", *file)
    assert "ApiVersions" in strandline("api-versions", *file)
    assert json.loads(strandline("doctor", "--json", *file))
    strandline("produce", topic, *file, stdin="one\n")
    assert strandline("consume", topic, "--from-beginning", "-n", "1", *file) == "one\n"


def test_a_broker_that_is_not_trusted_is_one_line(client_properties, broker_tls: Broker, tmp_path: Path) -> None:
    other = tmp_path / "other.pem"
    trustme.CA().cert_pem.write_to_path(str(other))
    file = client_properties(f"ssl.truststore.location={other}")
    said = strandline("topics", "list", "--command-config", file, code=1)
    assert "certificate verify failed" in said
    plain = strandline("topics", "list", "--bootstrap-server", broker_tls.bootstrap, code=1)
    assert plain.count("\n") == 1


def test_a_client_property_that_is_not_honoured_is_refused_with_its_line(client_properties) -> None:
    said = strandline("kafka-topics", "--list", "--command-config", client_properties("sasl.mechanism=PLAIN"), code=1)
    assert "client.properties:5: sasl.mechanism: SASL is not supported yet" in said
    assert said.count("\n") == 1
    said = strandline("topics", "list", "--command-config", client_properties("acks=all"), code=1)
    assert "client.properties:5: acks is not a supported client property" in said


@pytest.mark.java
def test_storage_and_api_versions_are_those_of_kafkas_own_tools(cluster: Cluster, tmp_path: Path) -> None:
    kafka = judge()
    theirs = kafka.run(API_VERSIONS, *cluster.server).check()
    assert strandline("kafka-broker-api-versions", *cluster.server) == theirs.out

    data = [tmp_path / "one", tmp_path / "two"]
    fixed, dynamic = tmp_path / "fixed.properties", tmp_path / "dynamic.properties"
    text = (
        "process.roles=broker,controller\nnode.id=1\ncontroller.listener.names=CONTROLLER\n"
        "listeners=PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093\n"
        f"log.dirs={data[0]},{data[1]}\n"
    )
    fixed.write_text(f"{text}controller.quorum.voters=1@127.0.0.1:9093\n")
    dynamic.write_text(f"{text}controller.quorum.bootstrap.servers=127.0.0.1:9093\n")
    new = ("--cluster-id", "MkU3OEVBNTcwNTJENDM2Qg")
    for path, flags in ((fixed, ()), (fixed, ("--no-initial-controllers",)), (dynamic, ("--standalone",))):
        ours = strandline("kafka-storage", "format", *new, "--config", str(path), *flags)
        info = strandline("kafka-storage", "info", "--config", str(path))
        assert kafka.run(STORAGE, "info", "--config", str(path)).check().out == info
        for directory in data:
            shutil.rmtree(directory)
        formatted = kafka.run(STORAGE, "format", *new, "--config", str(path), *flags).check().out
        # The order of its lines is that of a hash map, and its bootstrap records name features that are not served here.
        lines = [
            [line for line in text.splitlines() if not line.startswith("Bootstrap metadata: ")]
            for text in (ours, formatted)
        ]
        assert sorted(lines[0]) == sorted(lines[1])
        for directory in data:
            shutil.rmtree(directory)
    data[0].mkdir()
    unformatted = kafka.run(STORAGE, "info", "--config", str(fixed))
    assert strandline("kafka-storage", "info", "--config", str(fixed), code=1) == unformatted.out
    assert unformatted.code == 1


@pytest.mark.java
def test_dumps_are_those_of_kafkas_own_tool(cluster: Cluster) -> None:
    kafka = judge()
    lines = "".join(f"key{number}:value {number} é\n" for number in range(500))
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        strandline("produce", "dumped", "-k", ":", "--compression", codec, *cluster.server, stdin=lines)
    strandline("produce", "dumped", "--count", "200", "--size", "1000", "--acks", "1", *cluster.server)
    strandline("down", "--dir", str(cluster.directory))
    try:
        data = cluster.directory / "node-1" / "data"
        logs = ",".join(str(path) for path in sorted((data / "dumped-0").iterdir()) if path.suffix)
        metadata = ",".join(str(path) for path in sorted((data / "__cluster_metadata-0").iterdir()) if path.suffix)
        for flags in (
            ("--print-data-log", "--files", logs),
            ("--deep-iteration", "--skip-record-metadata", "--files", logs),
            ("--max-bytes", "20000", "--files", logs),
            ("--index-sanity-check", "--files", cluster.file("dumped", ".index")),
            ("--cluster-metadata-decoder", "--files", metadata),
        ):
            theirs = kafka.run(DUMP, *flags).check()
            assert strandline("kafka-dump-log", *flags) == theirs.out
    finally:
        strandline("up", "--detach", "--dir", str(cluster.directory))


@pytest.mark.java
def test_topics_and_configs_are_shown_as_kafkas_own_tools_show_them(cluster: Cluster) -> None:
    kafka = judge()
    strandline("kafka-topics", *cluster.server, "--create", "--topic", "shown.one", "--config", "retention.ms=60000")
    strandline("kafka-topics", *cluster.server, "--create", "--topic", "shown-two", "--partitions", "3")
    for tool, ours, flags in (
        (TOPICS, "kafka-topics", ("--describe",)),
        (TOPICS, "kafka-topics", ("--list",)),
        (TOPICS, "kafka-topics", ("--describe", "--topic", "shown.*", "--at-min-isr-partitions")),
        (TOPICS, "kafka-topics", ("--describe", "--topics-with-overrides")),
        (CONFIGS, "kafka-configs", ("--describe", "--entity-type", "topics", "--entity-name", "shown.one")),
        (CONFIGS, "kafka-configs", ("--describe", "--topic", "shown-two", "--all")),
        (CONFIGS, "kafka-configs", ("--describe", "--broker", "1", "--all")),
        (CONFIGS, "kafka-configs", ("--describe", "--topic", "nope")),
    ):
        theirs = kafka.run(tool, *cluster.server, *flags).check()
        # Kafka shows topics in the order of a hash map.
        assert sorted(strandline(ours, *cluster.server, *flags).splitlines()) == sorted(theirs.out.splitlines())
