"""Log dirs: whose they are, and what a node is told that may not use them."""

# mypy: allow-incomplete-defs, allow-untyped-calls, allow-untyped-defs, disable-error-code="method-assign"

from __future__ import annotations

import random

import pytest

from strandline.ids import Uuid
from strandline.log import checkpoints
from strandline.metadata import snapshot
from strandline.metadata.image import PartitionImage
from strandline.metadata.initial_voters import parse, voters_record
from strandline.metadata.records import FeatureLevelRecord, NoOpRecord
from strandline.node.log_dirs import (
    UNKNOWN_DIRECTORIES,
    StorageError,
    cluster_id_of,
    directory_of,
    format_dirs,
    mark_clean,
    open_dirs,
    read_bootstrap,
)
from strandline.sim.faults import Fault
from strandline.sim.world import World

CLUSTER_ID, OTHER_ID = "c2ltdWxhdGVkY2x1c3Rlcg", "b3RoZXJjbHVzdGVyb3RoZQ"
MARK = f"/a/{checkpoints.CLEAN_SHUTDOWN_FILE}"


@pytest.fixture
def disk():
    with World(1) as world:
        yield world.node("n1").disk


def format_all(disk, *paths, cluster_id=CLUSTER_ID, node_id=1, seed=1, **options):
    return format_dirs(disk, paths, cluster_id, node_id, random.Random(seed), **options)


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
    format_all(disk, "/b", cluster_id=OTHER_ID, seed=2)
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


@pytest.mark.parametrize(
    ("path", "fault"),
    [
        ("/b/meta.properties", Fault.READ_ERROR),
        ("/b/.lock", Fault.READ_ONLY),
        (f"/b/{checkpoints.CLEAN_SHUTDOWN_FILE}", Fault.READ_ONLY),
        ("/b/recovery-point-offset-checkpoint", Fault.READ_ERROR),
        ("/b", Fault.SYNC_ERROR),
    ],
)
def test_a_dir_that_cannot_be_read_is_offline_and_the_others_are_not(disk, path, fault):
    format_all(disk, "/a", "/b")
    for name in (checkpoints.CLEAN_SHUTDOWN_FILE, "recovery-point-offset-checkpoint"):
        disk.write_file(f"/b/{name}", b"0\n0\n")
    disk.faults.set(path, fault)
    cluster_id, (good, bad) = open_dirs(disk, ["/a", "/b"], 1, ["/a"])
    assert (cluster_id, good.online, good.problem) == (CLUSTER_ID, True, "")
    assert (bad.path, bad.online, bad.clean) == ("/b", False, False)
    assert path in bad.problem


def test_a_dir_that_is_not_formatted_is_offline_unless_it_is_needed(disk):
    format_all(disk, "/a")
    _, (_, bad) = open_dirs(disk, ["/a", "/b"], 1, ["/a"])
    assert not bad.online
    assert "/b is not formatted" in bad.problem
    assert not disk.exists("/b")


def test_what_belongs_to_somebody_else_is_never_taken_for_offline(disk):
    format_all(disk, "/a")
    format_all(disk, "/b", node_id=2, seed=2)
    format_all(disk, "/c", "/d", cluster_id=OTHER_ID, seed=3)
    with pytest.raises(StorageError, match="/b belongs to node 2"):
        open_dirs(disk, ["/a", "/b"], 1, ["/a"])
    format_all(disk, "/e", seed=4)
    with pytest.raises(StorageError, match="different clusters"):
        open_dirs(disk, ["/e", "/c"], 1, ["/e"])
    open_dirs(disk, ["/d"], 1)
    format_all(disk, "/f", cluster_id=OTHER_ID, seed=5)
    with pytest.raises(StorageError, match="/d is in use by another process"):
        open_dirs(disk, ["/f", "/d"], 1, ["/f"])


def test_where_the_metadata_has_a_replica():
    first, second = Uuid(bytes(15) + b"\xa0"), Uuid(bytes(15) + b"\xb0")
    assert directory_of(PartitionImage((1, 2), (1,), 1, 0, 0, directories=(first, second)), 2) == second
    for unknown in (PartitionImage((1, 2), (1,), 1, 0, 0), PartitionImage((1,), (1,), 1, 0, 0, directories=(first,))):
        assert directory_of(unknown, 2) in UNKNOWN_DIRECTORIES


def test_checkpoints_are_read_and_one_that_is_damaged_counts_as_empty(disk):
    format_all(disk, "/a")
    disk.write_file("/a/recovery-point-offset-checkpoint", b"0\n2\nt 0 5\nt 1 7\n")
    disk.write_file("/a/log-start-offset-checkpoint", b"0\n9\nt 0 5\n")
    _, [log_dir] = open_dirs(disk, ["/a"], 1)
    assert log_dir.recovery_points == {("t", 0): 5, ("t", 1): 7}
    assert log_dir.start_offsets == {}
    assert isinstance(log_dir.directory_id, Uuid)


def features(records):
    return {record.name: record.feature_level for record in records}


def test_a_new_cluster_begins_with_what_was_formatted(disk):
    format_all(disk, "/a")
    assert features(read_bootstrap(disk, "/a")) == {
        "metadata.version": 30,
        "eligible.leader.replicas.version": 1,
        "group.version": 1,
        "transaction.version": 2,
    }
    format_all(disk, "/b", features={"metadata.version": 21})
    assert features(read_bootstrap(disk, "/b")) == {"metadata.version": 21}


def test_without_bootstrap_records_it_begins_with_the_usual_ones(disk):
    format_all(disk, "/a")
    usual = read_bootstrap(disk, "/a")
    disk.remove("/a/bootstrap.checkpoint")
    assert read_bootstrap(disk, "/a") == usual


def write_bootstrap(disk, *records):
    content = b"".join(snapshot.write_records(records, 30, (0, 0), timestamp_ms=0))
    disk.write_file("/a/bootstrap.checkpoint", content)
    return content


def test_features_that_we_do_not_serve_are_left_out(disk):
    format_all(disk, "/a")
    levels = {"metadata.version": 30, "share.version": 1}
    write_bootstrap(disk, *(FeatureLevelRecord(name=name, feature_level=levels[name]) for name in levels), NoOpRecord())
    assert read_bootstrap(disk, "/a") == [FeatureLevelRecord(name="metadata.version", feature_level=30), NoOpRecord()]


def test_bootstrap_records_of_a_newer_release_or_damaged_ones(disk):
    format_all(disk, "/a")
    content = write_bootstrap(disk, FeatureLevelRecord(name="metadata.version", feature_level=31))
    with pytest.raises(StorageError, match=r"/a/bootstrap\.checkpoint was written for another release: .* level 31"):
        read_bootstrap(disk, "/a")
    disk.write_file("/a/bootstrap.checkpoint", content[:-1])
    with pytest.raises(StorageError, match=r"/a/bootstrap\.checkpoint is damaged .*cut off"):
        read_bootstrap(disk, "/a")


def test_initial_voters_are_left_beside_the_metadata_log(disk):
    voters = voters_record(parse(f"1@h:1:{OTHER_ID},2@h:2:{CLUSTER_ID}"), "CONTROLLER")
    format_all(disk, "/a", "/b", voters=voters, metadata_log_dir="/b")
    _, (data, metadata) = open_dirs(disk, ["/a", "/b"], 1)
    assert (str(metadata.directory_id), str(data.directory_id)) != (OTHER_ID, OTHER_ID)
    assert str(metadata.directory_id) == OTHER_ID
    assert not disk.exists("/a/__cluster_metadata-0")
    found = snapshot.read(disk.read_file("/b/__cluster_metadata-0/00000000000000000000-0000000000.checkpoint"))
    assert (found.kraft_version, found.voters, found.records) == (1, voters, [])


def test_a_dir_is_formatted_whole_or_not_at_all():
    """Whatever the moment at which the power goes: what has meta.properties has the rest."""
    voters = voters_record(parse(f"1@h:1:{OTHER_ID}"), "CONTROLLER")
    with World(1) as world:
        host = world.node("n1")
        write_file = host.disk.write_file

        def fail_at(path, data):
            if path.endswith("meta.properties"):
                raise OSError("power")
            write_file(path, data)

        host.disk.write_file = fail_at
        with pytest.raises(OSError):
            format_all(host.disk, "/a", voters=voters)
        del host.disk.write_file
        host.power_loss()
        host.restart()
        assert cluster_id_of(host.disk, "/a") is None
        assert format_all(host.disk, "/a", voters=voters) == ["/a"]
        host.power_loss()
        host.restart()
        assert host.disk.exists("/a/__cluster_metadata-0/00000000000000000000-0000000000.checkpoint")
        assert features(read_bootstrap(host.disk, "/a"))["metadata.version"] == 30
        assert str(open_dirs(host.disk, ["/a"], 1)[1][0].directory_id) == OTHER_ID


@pytest.mark.parametrize("line", ["", "directory.id=short\n"])
def test_a_dir_without_an_id(disk, line):
    format_all(disk, "/a")
    disk.write_file("/a/meta.properties", f"{line}node.id=1\nversion=1\ncluster.id={CLUSTER_ID}\n".encode())
    assert "/a/meta.properties has no directory.id that can be used" in refusal(disk, "/a")


def test_a_dir_that_is_a_copy_of_another(disk):
    format_all(disk, "/a", "/b")
    disk.write_file("/b/meta.properties", disk.read_file("/a/meta.properties"))
    assert refusal(disk, "/a", "/b") == "two of the log dirs have the same directory.id, so one is a copy: /a, /b"
