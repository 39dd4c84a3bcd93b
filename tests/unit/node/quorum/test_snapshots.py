"""Snapshot files: whole under their name, or not there."""

# mypy: allow-incomplete-defs, allow-untyped-calls, allow-untyped-defs

from __future__ import annotations

import pytest

from strandline.metadata import snapshot as layout
from strandline.metadata.image import MetadataImage
from strandline.metadata.replay import replay
from strandline.node.quorum.snapshots import BOOTSTRAP, CorruptSnapshot, Snapshots, name_of
from strandline.raft.messages import OffsetAndEpoch
from strandline.sim.world import World

from .stage import topic

DIRECTORY = "/data/log"
FIRST, SECOND = OffsetAndEpoch(10, 2), OffsetAndEpoch(30, 4)


def chunks(snapshot_id, *names):
    image = replay(MetadataImage(), [topic(name) for name in names], *snapshot_id)
    return list(layout.write(image, snapshot_id, kraft_version=0, voters=None, timestamp_ms=5))


@pytest.fixture
def host():
    with World(1) as world:
        host = world.node("n1")
        host.disk.mkdir(DIRECTORY)
        host.disk.sync_dir("/data")
        host.disk.sync_dir("/")
        yield host


@pytest.fixture
def snapshots(host):
    return Snapshots(host.disk, DIRECTORY)


def found(host):
    again = Snapshots(host.disk, DIRECTORY)
    again.find()
    return again


def run(host, coroutine):
    async def main():
        return await host.spawn(coroutine)

    return host.world.run(main())


def topics_in(snapshot):
    return [record.name for record in snapshot.records]


def test_a_name_says_where_it_ends():
    assert name_of(FIRST) == "00000000000000000010-0000000002.checkpoint"


def test_what_was_written_survives_a_power_loss(host, snapshots):
    size = snapshots.write(FIRST, chunks(FIRST, "a", "b"))
    snapshots.add(FIRST, size)
    host.power_loss()
    again = found(host)
    assert (again.ids, again.latest, again.size(FIRST)) == ([FIRST], FIRST, size)
    assert topics_in(again.read(FIRST)) == ["a", "b"]
    assert again.at(10) == FIRST
    assert again.at(11) is None


def test_what_was_not_finished_is_gone_at_the_next_start(host, snapshots):
    snapshots.store(FIRST, 0, b"abc")
    assert host.disk.listdir(DIRECTORY) == [name_of(FIRST, ".checkpoint.part")]
    assert found(host).ids == []
    assert host.disk.listdir(DIRECTORY) == []


def test_the_one_of_the_format_is_no_snapshot_of_the_log(host):
    host.disk.write_file(f"{DIRECTORY}/{name_of(BOOTSTRAP)}", b"".join(chunks(BOOTSTRAP)))
    snapshots = found(host)
    assert snapshots.has_bootstrap
    assert (snapshots.ids, snapshots.latest, snapshots.size(BOOTSTRAP)) == ([], None, None)


def fetch(host, snapshots, snapshot_id, data, chunk_bytes=70):
    async def story():
        for position in range(0, len(data), chunk_bytes):
            snapshots.store(snapshot_id, position, data[position : position + chunk_bytes])
        return await snapshots.finish(snapshot_id, topics_in)

    return run(host, story())


def test_a_snapshot_is_fetched_in_parts(host, snapshots):
    data = b"".join(chunks(SECOND, "a", "b", "c"))
    snapshots.store(SECOND, 0, b"begun once and given up")
    assert fetch(host, snapshots, SECOND, data) == ["a", "b", "c"]
    assert snapshots.latest == SECOND
    host.power_loss()
    assert topics_in(found(host).read(SECOND)) == ["a", "b", "c"]


def test_one_that_is_not_whole_is_thrown_away(host, snapshots):
    data = b"".join(chunks(SECOND, "a", "b", "c"))
    for wrong in (data[:-5], data + b"x", b"", data[:100] + bytes([data[100] ^ 1]) + data[101:]):
        with pytest.raises(CorruptSnapshot):
            fetch(host, snapshots, SECOND, wrong or b"?")
        assert (snapshots.ids, host.disk.listdir(DIRECTORY)) == ([], [])


def test_parts_are_read_from_any_position(host, snapshots):
    data = b"".join(chunks(FIRST, "a"))
    snapshots.add(FIRST, snapshots.write(FIRST, [data]))
    host.disk.cold_probability = 1.0
    read = [run(host, snapshots.chunk(FIRST, position, 50)) for position in range(0, len(data), 50)]
    assert b"".join(read) == data
    snapshots.forget(FIRST)
    assert run(host, snapshots.chunk(FIRST, 0, 50)) is None


def test_parts_come_in_order(snapshots):
    snapshots.store(FIRST, 0, b"abc")
    with pytest.raises(AssertionError):
        snapshots.store(FIRST, 2, b"c")
    with pytest.raises(AssertionError):
        snapshots.store(SECOND, 3, b"d")
