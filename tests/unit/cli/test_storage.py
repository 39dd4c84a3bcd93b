from __future__ import annotations

import json

import pytest

ID = "MkU3OEVBNTcwNTJENDM2Qg"


@pytest.fixture
def properties(tmp_path):
    path = tmp_path / "server.properties"
    path.write_text(
        "process.roles=broker,controller\nnode.id=1\nlisteners=PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093\n"
        "controller.listener.names=CONTROLLER\ncontroller.quorum.voters=1@127.0.0.1:9093\n"
        f"log.dirs={tmp_path}/a,{tmp_path}/b\n"
    )
    return str(path)


def test_format_then_info(call, properties, tmp_path):
    ran = call("kafka-storage", "format", "-t", ID, "-c", properties)
    assert ran.code == 0
    assert ran.out == (
        f"Formatting metadata directory {tmp_path}/a with metadata.version 4.3-IV0.\n"
        f"Formatting data directory {tmp_path}/b with metadata.version 4.3-IV0.\n"
    )
    info = call("storage", "info", "--config", properties)
    assert info.code == 0
    assert info.out.startswith(
        f"Found log directories:\n  {tmp_path}/a\n  {tmp_path}/b\n\nFound metadata: {{cluster.id={ID}, "
    )


def test_a_formatted_directory_is_refused_or_ignored(call, properties):
    call("storage", "format", "--config", properties, "--cluster-id", ID)
    again = call("storage", "format", "--config", properties, "--cluster-id", ID)
    assert again.code == 1
    assert "already formatted" in again.err
    ignored = call("storage", "format", "--config", properties, "--cluster-id", ID, "--ignore-formatted")
    assert (ignored.code, ignored.out) == (0, "All of the log directories are already formatted.\n")


def test_another_cluster_is_refused(call, properties):
    call("storage", "format", "--config", properties, "--cluster-id", ID)
    other = call("storage", "random-uuid").out.strip()
    ran = call("storage", "format", "--config", properties, "--cluster-id", other, "--ignore-formatted")
    assert ran.code == 1
    assert f"belongs to node 1 of cluster {ID}" in ran.err


def test_info_names_the_problems(call, properties, tmp_path):
    (tmp_path / "a").mkdir()
    ran = call("storage", "info", "--config", properties, "--json")
    assert ran.code == 1
    assert json.loads(ran.out)["problems"] == [f"{tmp_path}/a is not formatted.", f"{tmp_path}/b does not exist"]


def test_errors_are_one_line(call, properties, tmp_path):
    assert "is not a Uuid" in call("storage", "format", "-c", properties, "-t", "short").err
    missing = call("storage", "info", "-c", str(tmp_path / "none"))
    assert (missing.code, missing.err.count("\n")) == (1, 1)


def test_who_votes_is_said_once_and_only_as_it_will_be(call, properties, tmp_path):
    def format_(*flags, path):
        return call("kafka-storage", "format", "-t", ID, "-c", path, *flags)

    dynamic = tmp_path / "dynamic.properties"
    with open(properties) as file:
        dynamic.write_text(file.read().replace("voters=1@", "bootstrap.servers="))
    for path, flags, reason in (
        (properties, ["--standalone"], "controller.quorum.voters names the quorum already"),
        (properties, ["--initial-controllers", f"1@127.0.0.1:9093:{ID}"], "--initial-controllers: "),
        (str(dynamic), [], "controller.quorum.voters is not set"),
        (str(dynamic), ["--no-initial-controllers"], "cannot join a quorum later yet"),
    ):
        ran = format_(*flags, path=path)
        assert (ran.code, ran.out, ran.err.count("\n")) == (1, "", 1)
        assert reason in ran.err
    assert format_("--standalone", "--no-initial-controllers", path=properties).code == 2
    assert not (tmp_path / "a").exists()
    ran = format_("--standalone", path=str(dynamic))
    assert ran.out.startswith(
        f"Formatting dynamic metadata voter directory {tmp_path}/a with metadata.version 4.3-IV0.\n"
    )


def test_a_fixed_quorum_has_no_initial_controllers(call, properties):
    ran = call("kafka-storage", "format", "-t", ID, "-c", properties, "--no-initial-controllers")
    assert (ran.code, ran.out.count("Formatting ")) == (0, 2)
