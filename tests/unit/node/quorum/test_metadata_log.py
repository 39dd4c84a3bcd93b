"""The metadata log as Raft sees it: its ends, its epochs, and the snapshot that it begins with."""

# mypy: allow-incomplete-defs, allow-untyped-calls, allow-untyped-defs

from __future__ import annotations

import pytest

from strandline.config.layers import DEFAULTS
from strandline.config.topic_config import TopicConfig
from strandline.node.log_dirs import StorageError
from strandline.node.quorum.metadata_log import MetadataLog, metadata_dir
from strandline.node.quorum.snapshots import Snapshots, name_of
from strandline.raft.messages import OffsetAndEpoch
from strandline.records.batch import BatchBuilder
from strandline.records.header import BASE_OFFSET_AT, PARTITION_LEADER_EPOCH_AT, iterate
from strandline.sim.world import World

DIRECTORY = metadata_dir("/data")
CONFIG = TopicConfig.build(DEFAULTS, {})
NONE = OffsetAndEpoch(-1, -1)


@pytest.fixture
def host():
    with World(1) as world:
        host = world.node("n1")
        host.disk.mkdir(DIRECTORY)
        yield host


def opened(host, latest=None, **how):
    snapshots = Snapshots(host.disk, DIRECTORY)
    snapshots.find()
    log = MetadataLog(host.disk, DIRECTORY, host.clock, snapshots)
    log.load(CONFIG, latest or snapshots.latest, **{"clean": False, **how})
    return log


def fill(log, *epochs):
    for epoch in epochs:
        log.append([(None, b"v")], epoch)


def put_snapshot(host, offset, epoch):
    host.disk.write_file(f"{DIRECTORY}/{name_of(OffsetAndEpoch(offset, epoch))}", b"snapshot")
    return OffsetAndEpoch(offset, epoch)


def test_an_empty_log(host):
    log = opened(host)
    assert (log.start_offset, log.end_offset, log.flushed_offset, log.last_epoch) == (0, 0, 0, 0)
    assert (log.end_of_epoch(0), log.end_of_epoch(7)) == (NONE, NONE)
    assert log.latest_snapshot is None


def test_where_epochs_end(host):
    log = opened(host)
    fill(log, 1, 1, 4, 5)
    assert (log.end_offset, log.flushed_offset, log.last_epoch) == (4, 0, 5)
    ends = [(-1, -1), (2, 1), (2, 1), (2, 1), (3, 4), (4, 5), (4, 5)]
    assert [tuple(log.end_of_epoch(epoch)) for epoch in range(7)] == ends


def test_a_log_that_begins_with_a_snapshot(host):
    log = opened(host)
    fill(log, 1, 1)
    snapshot_id = put_snapshot(host, 10, 3)
    # It was fetched, and then came the crash.
    log = opened(host)
    assert (log.start_offset, log.end_offset, log.flushed_offset, log.last_epoch) == (10, 10, 10, 3)
    assert (log.latest_snapshot, log.snapshot_size(snapshot_id)) == (snapshot_id, 8)
    assert (log.end_of_epoch(2), log.end_of_epoch(3), log.end_of_epoch(9)) == (NONE, (10, 3), (10, 3))
    fill(log, 5)
    assert (log.end_of_epoch(3), log.end_of_epoch(4), log.end_of_epoch(5)) == ((10, 3), (10, 3), (11, 5))
    log.log.close_clean()
    again = opened(host)
    assert (again.start_offset, again.end_offset, again.last_epoch) == (10, 11, 5)


def test_a_log_of_an_older_epoch_than_the_snapshot_is_not_its_continuation(host):
    log = opened(host)
    fill(log, *[1] * 20)
    put_snapshot(host, 10, 3)
    log = opened(host)
    assert (log.start_offset, log.end_offset, log.last_epoch) == (10, 10, 3)


def test_what_is_missing_at_the_beginning_is_in_a_snapshot_or_the_log_is_of_no_use(host):
    log = opened(host)
    fill(log, 1, 1, 1)
    log.log.roll(0)
    fill(log, 1)
    log.log.drop_segments(1, 0)
    with pytest.raises(StorageError, match="begins at offset 3"):
        opened(host)
    put_snapshot(host, 3, 1)
    log = opened(host)
    assert (log.start_offset, log.end_offset) == (3, 4)


@pytest.mark.parametrize("after", [(), (3,), (3, 4)])
def test_a_log_whose_records_are_all_in_a_snapshot_begins_at_its_end_again(host, after):
    log = opened(host)
    fill(log, 1, 1, 3)
    snapshot_id = put_snapshot(host, 3, 3)
    log.log.advance_start(3)
    fill(log, *after)
    log.log.close_clean()
    again = opened(host)
    assert (again.start_offset, again.end_offset, again.last_epoch) == (3, 3 + len(after), (after or (3,))[-1])
    assert again.end_of_epoch(3).offset == 3 + after.count(3)
    assert again.latest_snapshot == snapshot_id


@pytest.mark.parametrize("place", [1, 2, 4])
@pytest.mark.parametrize("field_at", [PARTITION_LEADER_EPOCH_AT, BASE_OFFSET_AT + 4])
def test_what_rotted_after_a_clean_shutdown_is_never_forgotten_by_a_controller(host, place, field_at):
    """Neither offset nor epoch is under the checksum. A voter may have counted with the last batch, and vote as if it had not."""
    log = opened(host)
    fill(log, 1, 1, 2, 2, 2)
    log.log.close_clean()
    path = f"{DIRECTORY}/{0:020}.log"
    position = [position for position, _ in iterate(host.disk.peek(path))][place]
    host.disk.flip_bit(path, position + field_at, 3)
    with pytest.raises(StorageError, match=f"damaged from offset {place} on .*take this node out of the quorum"):
        opened(host, clean=True)
    observer = opened(host, clean=True, is_relied_on=False)
    assert (observer.end_offset, observer.truncated_bytes > 0) == (place, True)
    fill(observer, *[2] * (5 - place))
    observer.log.close_clean()
    assert opened(host, clean=True).end_offset == 5


def test_batches_follow_each_other_without_a_gap(host):
    log = opened(host)
    builder = BatchBuilder()
    builder.append(None, b"v", timestamp=1)
    log.append_fetched(bytes(builder.build(base_offset=0, leader_epoch=2)))
    assert (log.end_offset, log.last_epoch) == (1, 2)
    with pytest.raises(AssertionError):
        log.append_fetched(bytes(builder.build(base_offset=2, leader_epoch=2)))


def test_what_is_committed_is_never_cut(host):
    log = opened(host)
    fill(log, 1, 1, 2, 2)
    log.floor = 2
    with pytest.raises(AssertionError):
        log.truncate(1)
    log.truncate(2)
    assert (log.end_offset, log.last_epoch) == (2, 1)


def test_control_records_are_found_with_their_offsets(host):
    log = opened(host)
    fill(log, 1)
    log.append([(b"k1", b"v1"), (b"k2", b"v2")], 1, control=True)
    fill(log, 1)
    log.append([(b"k3", b"v3")], 1, control=True)
    assert [(offset, record.key) for offset, record in log.control_records()] == [(1, b"k1"), (2, b"k2"), (4, b"k3")]


def test_it_says_whose_log_it_is(host):
    opened(host)
    assert host.disk.read_file(f"{DIRECTORY}/partition.metadata") == b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ"
