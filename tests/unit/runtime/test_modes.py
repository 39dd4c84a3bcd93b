"""SEC-H1: what a node writes is for its owner alone."""

# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from strandline.cli.doctor.checks import private_directories
from strandline.cli.local.local_cluster import lock, new
from strandline.config.node import NodeConfig
from strandline.config.properties import of
from strandline.runtime.disk import FileDisk
from strandline.runtime.modes import readable_by_others
from strandline.runtime.server import ServerError, check_key_file


@pytest.fixture(autouse=True)
def open_umask() -> Iterator[None]:
    """One that would let everybody in."""
    before = os.umask(0)
    yield
    os.umask(before)


def modes(directory: Path) -> dict[str, str]:
    found = {str(path.relative_to(directory)): path for path in directory.rglob("*")}
    return {name: oct(stat.S_IMODE(path.stat().st_mode)) for name, path in found.items()}


def test_all_that_the_disk_makes(tmp_path: Path) -> None:
    disk = FileDisk()
    disk.mkdir(f"{tmp_path}/dir")
    disk.open(f"{tmp_path}/dir/log", create=True).append(b"x")
    disk.write_file(f"{tmp_path}/dir/checkpoint", b"y")
    disk.lock(f"{tmp_path}/.lock")
    disk.close()
    assert modes(tmp_path) == {"dir": "0o700", "dir/log": "0o600", "dir/checkpoint": "0o600", ".lock": "0o600"}


def test_all_that_up_makes(tmp_path: Path) -> None:
    directory = tmp_path / "cluster"
    with lock(str(directory)):
        cluster = new(str(directory), 19092, 1)
        cluster.write_properties()
        cluster.save()
    made = modes(tmp_path)
    assert {"cluster", "cluster/cluster.json", "cluster/node-1/server.properties"} <= made.keys()
    assert {name: mode for name, mode in made.items() if mode not in ("0o700", "0o600")} == {}


def listener_with(key_file: Path):
    values = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": "1@127.0.0.1:9093",
        "controller.listener.names": "CONTROLLER",
        "listeners": "SSL://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093",
        "listener.security.protocol.map": "SSL:SSL,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "SSL",
        "ssl.keystore.location": str(key_file),
        "log.dirs": "/nowhere",
    }
    config = NodeConfig.build(of(values), insecure=True)
    return next(listener for listener in config.listeners if listener.name == "SSL")


def test_a_key_that_everybody_can_read_is_refused(tmp_path: Path) -> None:
    key = tmp_path / "key.pem"
    key.write_text("secret")
    key.chmod(0o644)
    with pytest.raises(ServerError, match=rf"every user of this machine can read {key}; chmod o-rwx"):
        check_key_file(listener_with(key))
    key.chmod(0o640)
    check_key_file(listener_with(key))


def test_doctor_tells_of_directories_from_before(tmp_path: Path) -> None:
    old, own = tmp_path / "old", tmp_path / "own"
    old.mkdir(mode=0o755)
    own.mkdir(mode=0o700)
    (finding,) = private_directories([str(old), str(own), str(tmp_path / "absent")])
    assert finding.level == "warn"
    assert f"chmod -R go-rwx {old}" in finding.advice
    assert readable_by_others(str(old))
