"""quorum-state: what a member must not forget."""

from __future__ import annotations

import json

import pytest

from strandline.ids import Uuid
from strandline.node.log_dirs import StorageError
from strandline.node.quorum.election_file import ElectionFile
from strandline.raft.election_state import ElectionState
from strandline.raft.messages import ReplicaKey
from strandline.sim.world import World

ID = Uuid(bytes(range(16)))


@pytest.fixture
def disk():
    with World(1) as world:
        disk = world.node("n1").disk
        disk.mkdir("/log")
        disk.sync_dir("/")
        yield disk


def test_who_has_no_file_has_never_voted(disk):
    file = ElectionFile(disk, "/log")
    assert file.read() == ElectionState(0, -1, None)
    assert not file.names_only(1)


@pytest.mark.parametrize(
    ("kraft_version", "state"),
    [
        (0, ElectionState(3, 2)),
        (0, ElectionState(3, -1, ReplicaKey(2))),
        (1, ElectionState(3, -1, ReplicaKey(2, ID))),
        (1, ElectionState(9, 1)),
    ],
)
def test_what_was_written_survives_a_power_loss(disk, kraft_version, state):
    ElectionFile(disk, "/log").write(state, kraft_version, [1, 2, 3])
    disk.power_loss()
    assert ElectionFile(disk, "/log").read() == state
    assert json.loads(disk.read_file("/log/quorum-state"))["data_version"] == kraft_version


def test_a_quorum_of_one_is_known_by_its_file(disk):
    file = ElectionFile(disk, "/log")
    file.write(ElectionState(3, 1), 0, [1])
    assert file.names_only(1)
    assert not file.names_only(2)
    file.write(ElectionState(3, 1), 0, [1, 2])
    assert not file.names_only(1)
    file.write(ElectionState(3, 1), 1, [1])
    assert not file.names_only(1)


@pytest.mark.parametrize("content", [b"", b"[]", b"null", b'{"leaderId":1}', b"\x00\xff"])
def test_what_cannot_be_read_is_not_guessed_at(disk, content):
    disk.write_file("/log/quorum-state", content)
    with pytest.raises(StorageError, match="/log/quorum-state can't be read"):
        ElectionFile(disk, "/log").read()
