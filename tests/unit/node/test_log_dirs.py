"""Log dirs: whose they are, and what a node is told that may not use them."""

from __future__ import annotations

import random

import pytest

from strandline.ids import Uuid
from strandline.log import checkpoints
from strandline.node.log_dirs import StorageError, cluster_id_of, format_dirs, mark_clean, open_dirs
from strandline.sim.faults import Fault
from strandline.sim.world import World

CLUSTER_ID, OTHER_ID = "c2ltdWxhdGVkY2x1c3Rlcg", "b3RoZXJjbHVzdGVyb3RoZQ"
MARK = f"/a/{checkpoints.CLEAN_SHUTDOWN_FILE}"


@pytest.fixture
def disk():
    with World(1) as world:
        yield world.node("n1").disk


def format_all(disk, *paths, cluster_id=CLUSTER_ID, node_id=1):
    return format_dirs(disk, paths, cluster_id, node_id, random.Random(1))


def refusal(disk, *paths, node_id=1):
    with pytest.raises(StorageError) as error:
        open_dirs(disk, paths, node_id)
    return str(error.value)


def test_formatted_dirs_are_opened(disk):
    assert format_all(disk, "/a", "/deep/b") == ["/a", "/deep/b"]
    cluster_id, (first, second) = open_dirs(disk, ["/a", "/deep/b"], 1)
    assert cluster_id == cluster_id_of(disk, "/a") == CLUSTER_ID
    assert (first.path, first.clean, first.online) == ("/a", False, True)
    assert first.directory_id != second.directory_id
    text = disk.read_file("/a/meta.properties").decode()
    assert text == f"#\nnode.id=1\ndirectory.id={first.directory_id}\nversion=1\ncluster.id={CLUSTER_ID}\n"


def test_formatting_again_changes_nothing(disk):
    format_all(disk, "/a")
    before = disk.read_file("/a/meta.properties")
    assert format_all(disk, "/a", "/b") == ["/b"]
    assert disk.read_file("/a/meta.properties") == before


@pytest.mark.parametrize("fields", [{"cluster_id": OTHER_ID}, {"node_id": 2}])
def test_what_belongs_to_somebody_else_is_not_formatted(disk, fields):
    format_all(disk, "/a")
    with pytest.raises(StorageError, match=f"/a belongs to node 1 of cluster {CLUSTER_ID}"):
        format_all(disk, "/a", **fields)


@pytest.mark.parametrize("present", [False, True])
def test_an_unformatted_dir_says_how_to_format_it(disk, present):
    if present:
        disk.mkdir("/a")
    assert refusal(disk, "/a").startswith("/a is not formatted; run: strandline storage format")
    assert cluster_id_of(disk, "/a") is None


def test_another_nodes_dir(disk):
    format_all(disk, "/a", node_id=2)
    assert refusal(disk, "/a") == "/a belongs to node 2, and this is node 1"


def test_another_version(disk):
    format_all(disk, "/a")
    text = disk.read_file("/a/meta.properties").replace(b"version=1", b"version=0")
    disk.write_file("/a/meta.properties", text)
    assert refusal(disk, "/a") == "/a/meta.properties has version 0, we read version 1"


def test_dirs_of_different_clusters(disk):
    format_all(disk, "/a")
    format_all(disk, "/b", cluster_id=OTHER_ID)
    said = refusal(disk, "/a", "/b")
    assert said.startswith("the log dirs belong to different clusters")
    assert CLUSTER_ID in said
    assert OTHER_ID in said


def test_a_dir_in_use(disk):
    format_all(disk, "/a")
    open_dirs(disk, ["/a"], 1)
    assert refusal(disk, "/a") == "/a is in use by another process; stop that one first"


def test_the_clean_mark_is_gone_on_the_device_before_anything_is_written():
    with World(1) as world:
        host = world.node("n1")
        format_all(host.disk, "/a")
        _, [log_dir] = open_dirs(host.disk, ["/a"], 1)
        mark_clean(host.disk, log_dir, 7)
        assert host.disk.read_file(MARK) == b'{"version":0,"brokerEpoch":7}'
        for expected in (True, False):
            host.power_loss()
            host.restart()
            _, [log_dir] = open_dirs(host.disk, ["/a"], 1)
            assert log_dir.clean is expected
            assert not host.disk.exists(MARK)


def test_a_mark_that_cannot_be_removed_keeps_the_node_from_starting(disk):
    format_all(disk, "/a")
    disk.write_file(MARK, b"")
    disk.faults.set(MARK, Fault.READ_ONLY)
    with pytest.raises(OSError):
        open_dirs(disk, ["/a"], 1)


def test_checkpoints_are_read_and_one_that_is_damaged_counts_as_empty(disk):
    format_all(disk, "/a")
    disk.write_file("/a/recovery-point-offset-checkpoint", b"0\n2\nt 0 5\nt 1 7\n")
    disk.write_file("/a/log-start-offset-checkpoint", b"0\n9\nt 0 5\n")
    _, [log_dir] = open_dirs(disk, ["/a"], 1)
    assert log_dir.recovery_points == {("t", 0): 5, ("t", 1): 7}
    assert log_dir.start_offsets == {}
    assert isinstance(log_dir.directory_id, Uuid)
