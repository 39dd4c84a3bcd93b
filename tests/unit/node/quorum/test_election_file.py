"""quorum-state: what a member must not forget."""

# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

import contextlib
import json

import pytest

from strandline.ids import ZERO_UUID, Uuid
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


@pytest.mark.parametrize("kraft_version", [0, 1])
def test_no_flipped_bit_changes_what_is_remembered(disk, kraft_version):
    """Kafka's file has no checksum: one bit made of leader 1 a leader 0, and of a vote for 2 one for 3."""
    state = ElectionState(7, 1, ReplicaKey(2, ID if kraft_version else ZERO_UUID))
    file = ElectionFile(disk, "/log")
    file.write(state, kraft_version, [1, 2, 3])
    data = disk.read_file("/log/quorum-state")
    for position in range(len(data)):
        for bit in range(8):
            rotten = bytearray(data)
            rotten[position] ^= 1 << bit
            disk.write_file("/log/quorum-state", bytes(rotten))
            with contextlib.suppress(StorageError):
                assert file.read() == state, rotten


def test_a_file_that_kafka_wrote_has_no_checksum(disk):
    text = b'{"leaderId":2,"leaderEpoch":4,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}'
    disk.write_file("/log/quorum-state", text)
    assert ElectionFile(disk, "/log").read() == ElectionState(4, 2)


@pytest.mark.parametrize("content", [b"", b"[]", b"null", b'{"leaderId":1}', b"\x00\xff"])
def test_what_cannot_be_read_is_not_guessed_at(disk, content):
    disk.write_file("/log/quorum-state", content)
    with pytest.raises(StorageError, match="/log/quorum-state can't be read"):
        ElectionFile(disk, "/log").read()
