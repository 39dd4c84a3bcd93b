# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

import gc
import socket

import pytest


@pytest.fixture
def properties(tmp_path):
    def write(port: int = 0, **more: str) -> str:
        path = tmp_path / "server.properties"
        lines = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:0",
            "advertised.listeners": "PLAINTEXT://127.0.0.1:9092",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": "1@127.0.0.1:9093",
            "log.dirs": str(tmp_path / "data"),
        } | {key.replace("_", "."): value for key, value in more.items()}
        path.write_text("".join(f"{key}={value}\n" for key, value in lines.items()))
        return str(path)

    return write


def test_a_wrong_key_is_reported_with_its_line(call, properties):
    ran = call("server", properties(num_partitons="3"))
    assert ran.code == 1
    assert "server.properties:8: " in ran.err
    assert ran.err.count("\n") == 1


def test_a_wrong_override_is_reported_too(call, properties):
    ran = call("server", properties(), "--override", "num.partitions=x")
    assert ran.code == 1
    assert "--override num.partitions" in ran.err


def test_a_missing_file(call, tmp_path):
    ran = call("server", str(tmp_path / "none.properties"))
    assert (ran.code, ran.err.count("\n")) == (1, 1)


def test_an_unformatted_directory(call, properties):
    ran = call("server", properties())
    assert ran.code == 1
    assert "is not formatted; run: strandline storage format" in ran.err
    assert gc.isenabled(), "a start that fails leaves the collector as it was"


def test_a_port_in_use_is_found_before_anything_is_touched(call, properties, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ran = call("server", properties(port), "--cluster-id", "MkU3OEVBNTcwNTJENDM2Qg")
    assert ran.code == 1
    assert f"127.0.0.1:{port} is in use; choose another with --port / listeners" in ran.err
    assert not (tmp_path / "data").exists()
