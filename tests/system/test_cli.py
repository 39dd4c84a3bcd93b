"""The command line as a person uses it: real processes, real pipes, and Kafka's own tools beside ours."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from bench.kafka_cluster import free_ports

from tests.judges.java import judge

COMMAND = [sys.executable, "-m", "strandline"]
DUMP = "org.apache.kafka.tools.DumpLogSegments"
TOPICS = "org.apache.kafka.tools.TopicCommand"
CONFIGS = "kafka.admin.ConfigCommand"
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


def test_help_is_there_at_once():
    began = time.monotonic()
    strandline("--help")
    assert time.monotonic() - began < 1.0  # 0.12 s on a quiet machine; the target is 0.3 s


def test_up_status_down_and_up_again(tmp_path):
    directory = tmp_path / "cluster"
    with up(directory) as cluster:
        (row,) = cluster.status()
        assert list(row) == ["node_id", "pid", "address", "roles", "alive", "data_dir"]
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


def test_a_port_in_use_is_one_line(tmp_path, cluster):
    said = strandline("up", "--dir", str(tmp_path / "other"), "--port", str(cluster.port), code=1)
    assert said == f"strandline: 127.0.0.1:{cluster.port} is in use; choose another with --port\n"


def test_a_wrong_config_is_told_and_not_kept(tmp_path):
    directory, port = tmp_path / "cluster", str(port_pair())
    said = strandline("up", "--detach", "--dir", str(directory), "--port", port, "--config", "num.partitons=3", code=1)
    assert "num.partitons" in said
    assert "num.partitions" in said  # what was meant
    strandline("up", "--detach", "--dir", str(directory))
    strandline("down", "--dir", str(directory))


def test_up_in_the_foreground_stops_with_ctrl_c(tmp_path):
    directory = tmp_path / "cluster"
    with _foreground(directory) as (process, said):
        assert "ready in " in said
        assert "Try next:" in said
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
    (row,) = json.loads(strandline("status", "--dir", str(directory), "--json"))
    assert row["alive"] is False
    assert (Path(row["data_dir"]) / ".kafka_cleanshutdown").exists()


def test_a_node_that_dies_ends_up_with_its_last_words(tmp_path):
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


def test_up_on_a_terminal_draws(tmp_path):
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


def test_the_commands_of_the_notes(cluster):
    script = "/usr/local/kafka/bin/kafka-topics.sh"
    topic = ("--topic", "peter-test01")
    created = strandline(script, *cluster.server, "--create", *topic, "--partitions", "1", "--replication-factor", "1")
    assert created == "Created topic peter-test01.\n"
    again = strandline("kafka-topics", *cluster.server, "--create", *topic, code=1)
    assert again == "Error while executing topic command : Topic 'peter-test01' already exists.\n"
    first, second = strandline("kafka-topics", *cluster.server, *topic, "--describe").splitlines()
    assert first.startswith("Topic: peter-test01\tTopicId: ")
    assert first.endswith("\tPartitionCount: 1\tReplicationFactor: 1\tConfigs: ")
    assert second == "\tTopic: peter-test01\tPartition: 0\tLeader: 1\tReplicas: 1\tIsr: 1\tElr: \tLastKnownElr: "

    strandline("kafka-console-producer", *cluster.server, *topic, stdin="test message1\n")
    consumed = strandline("kafka-console-consumer", *cluster.server, *topic, "--from-beginning", "--max-messages", "1")
    assert consumed == "test message1\n"

    dumped = strandline("kafka-dump-log", "--print-data-log", "--files", cluster.file("peter-test01")).splitlines()
    assert dumped[1] == "Log starting offset: 0"
    assert dumped[2].startswith("baseOffset: 0 lastOffset: 0 count: 1 ")
    assert dumped[3].startswith("| offset: 0 CreateTime: ")
    assert dumped[3].endswith(" payload: test message1")


def test_topics_say_whether_they_can_lose_data(cluster):
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


def test_lines_come_back_as_they_went(cluster):
    lines = "".join(f"k{number}:value {number} é\n" for number in range(2000))
    strandline("produce", "lines", "--key-separator", ":", "--compression", "zstd", *cluster.server, stdin=lines)
    back = strandline("consume", "lines", "--from-beginning", "--until-end", "--key", *cluster.server)
    assert back.replace("\t", ":") == lines
    one = strandline("consume", "lines", "--partition", "0", "--offset", "42", "-n", "1", "--json", *cluster.server)
    record = json.loads(one)
    assert (record["offset"], record["key"], record["value"]) == (42, "k42", "value 42 é")


def test_a_line_is_sent_when_the_input_pauses(cluster):
    strandline("topics", "create", "typed", *cluster.server)
    with subprocess.Popen([*COMMAND, "produce", "typed", *cluster.server], stdin=subprocess.PIPE) as producer:
        assert producer.stdin is not None
        producer.stdin.write(b"first\n")
        producer.stdin.flush()
        consumed = strandline("consume", "typed", "--from-beginning", "--max-messages", "1", *cluster.server)
        assert consumed == "first\n"
        producer.stdin.close()
        assert producer.wait(30) == 0


def test_consuming_stops_cleanly_with_ctrl_c_and_with_a_closed_pipe(cluster):
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


def test_configs_change_and_change_back(cluster):
    strandline("topics", "create", "tuned", *cluster.server)
    strandline("configs", "set", "--topic", "tuned", "retention.ms=60000", *cluster.server)
    (entry,) = json.loads(strandline("configs", "describe", "--topic", "tuned", "--json", *cluster.server))
    assert (entry["name"], entry["value"], entry["source"]) == ("retention.ms", "60000", "DYNAMIC_TOPIC_CONFIG")
    strandline("configs", "unset", "--topic", "tuned", "retention.ms", *cluster.server)
    assert json.loads(strandline("configs", "describe", "--topic", "tuned", "--json", *cluster.server)) == []
    said = strandline("configs", "set", "--topic", "tuned", "retention=1", *cluster.server, code=1)
    assert said.count("\n") == 1


def test_doctor_looks_at_the_cluster(cluster):
    findings = json.loads(strandline("doctor", "--dir", str(cluster.directory), "--json"))
    checks = {finding["check"] for finding in findings}
    assert {"Python", "processes", "brokers", "disk", "durability"} <= checks
    assert all(finding["level"] != "fail" for finding in findings)


def test_nobody_there_is_told_at_once():
    began = time.monotonic()
    said = strandline("topics", "list", "--bootstrap-server", "127.0.0.1:1", code=1)
    assert "no broker reachable at 127.0.0.1:1" in said
    assert said.count("\n") == 1
    assert time.monotonic() - began < 10


def test_an_override_and_a_second_signal(tmp_path):
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


@pytest.mark.java
def test_dumps_are_those_of_kafkas_own_tool(cluster):
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
def test_topics_and_configs_are_shown_as_kafkas_own_tools_show_them(cluster):
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
