"""Where logs are, or are to be, and what they are opened with."""

# mypy: allow-incomplete-defs, allow-untyped-calls, allow-untyped-defs

from __future__ import annotations

import errno
import random
from dataclasses import replace

import pytest

from strandline.config.topic_config import TopicConfig
from strandline.controller.placement import MIGRATING_DIRECTORY, UNASSIGNED_DIRECTORY
from strandline.ids import Uuid
from strandline.log import checkpoints
from strandline.metadata.image import MetadataImage, PartitionImage, TopicImage
from strandline.node.log_dirs import LogDir
from strandline.node.log_loading import LogLoading
from strandline.sim.faults import Fault
from tests.unit.replica.hand_driven import HandLoop, MemoryDisk

from .conftest import batch
from .scripted import quiet_logger

A, B, C = (Uuid(bytes(15) + bytes([i])) for i in (101, 102, 103))


def topic(*directories, name="t", topic_id=1):
    """A partition for each directory id that the metadata has for it."""
    partitions = tuple(PartitionImage((2, 1), (2, 1), 2, 0, 0, directories=(C, d)) for d in directories)
    return TopicImage(name, Uuid(bytes(15) + bytes([topic_id])), partitions)


def all_of(*topics):
    return [(one, index) for one in topics for index in range(len(one.partitions))]


class Stage:
    def __init__(self) -> None:
        self.loop = HandLoop()
        self.disk = MemoryDisk(self.loop, "loading")
        self.dirs = [LogDir("/a", A, clean=False), LogDir("/b", B, clean=False)]
        for log_dir in self.dirs:
            self.disk.mkdir(log_dir.path)
        self.loading = self.made()

    def made(self):
        return LogLoading(1, self.disk, self.loop, random.Random(1), quiet_logger(), self.dirs)

    def find(self, *topics):
        self.loading = self.made()
        image = MetadataImage(topics={one.name: one for one in topics})
        return self.loading.find(image)

    def place(self, *topics, hosted=(), at_start=False):
        places, lost = self.loading.place(all_of(*topics), hosted, at_start=at_start)
        return [place.log_dir.path for place in places], [index for _, index in lost]

    def load(self, *topics, at_start=True, **fields):
        places, _ = self.loading.place(all_of(*topics), (), at_start=at_start)
        return places, self.loading.load_all(places, [replace(TopicConfig.build(), **fields)] * len(places))


@pytest.fixture
def stage():
    return Stage()


# Placing


def test_a_new_log_goes_where_the_metadata_says(stage):
    assert stage.place(topic(B, B, A)) == (["/b", "/b", "/a"], [])


@pytest.mark.parametrize("unknown", [UNASSIGNED_DIRECTORY, MIGRATING_DIRECTORY])
def test_where_the_metadata_says_nothing_it_goes_where_the_fewest_are(stage, unknown):
    assert stage.place(topic(*[unknown] * 4)) == (["/a", "/b", "/a", "/b"], [])
    a, _ = stage.dirs
    assert stage.place(topic(*[unknown] * 3), hosted=[a, a]) == (["/b", "/b", "/a"], [])


def test_a_log_that_was_found_stays_where_it_is(stage):
    one = topic(A)
    stage.load(one)
    moved = topic(B)
    stage.find(moved)
    places, _ = stage.loading.place(all_of(moved), (), at_start=True)
    assert [(place.log_dir.path, place.known) for place in places] == [("/a", True)]


def test_an_offline_log_dir_keeps_its_logs(stage):
    stage.dirs[0].online = False
    assert stage.place(topic(A, B)) == (["/b"], [0]), "it has records there"


def test_at_the_start_what_may_be_in_an_offline_log_dir_is_not_made_anew(stage):
    stage.dirs[0].online = False
    assert stage.place(topic(UNASSIGNED_DIRECTORY), at_start=True) == ([], [0])
    assert stage.place(topic(UNASSIGNED_DIRECTORY), at_start=False) == (["/b"], [])


def test_a_directory_that_is_not_ours_any_more_counts_only_if_all_of_ours_are_here(stage):
    assert stage.place(topic(C)) == (["/a"], [])
    stage.dirs[0].online = False
    assert stage.place(topic(C)) == ([], [0])


def test_without_a_log_dir_everything_is_lost(stage):
    for log_dir in stage.dirs:
        log_dir.online = False
    assert stage.place(topic(A, UNASSIGNED_DIRECTORY)) == ([], [0, 1])


# Finding


def test_a_log_dir_that_can_not_be_looked_through_has_failed_and_the_others_have_not(stage):
    one = topic(A, B)
    stage.load(one)
    stage.disk.faults.set("/a", Fault.READ_ERROR)
    failed = stage.find(one)
    assert [log_dir.path for log_dir, _ in failed] == ["/a"]
    places, _ = stage.loading.place(all_of(one), (), at_start=True)
    assert ("t", 1) in [place.key for place in places if place.known]


def test_a_replica_that_was_moved_to_other_brokers_is_a_stray(stage):
    stage.load(topic(A))
    elsewhere = TopicImage("t", topic(A).topic_id, (PartitionImage((2, 3), (2, 3), 2, 0, 0),))
    stage.find(elsewhere)
    assert [name.endswith("-stray") for name in stage.disk.listdir("/a")] == [True]


# Loading


def test_a_new_log_has_its_topics_id_on_the_device(stage):
    [place], [recovered] = stage.load(topic(A))
    assert not place.known
    path = f"{recovered.log.directory}/{checkpoints.PARTITION_METADATA}"
    assert checkpoints.read_partition_metadata(stage.disk, path) == str(place.topic.topic_id)


def test_an_empty_log_that_is_opened_again_has_its_topics_id_synced_with_the_first_flush(stage):
    one = topic(A)
    _, [recovered] = stage.load(one)
    recovered.log.close_clean()
    stage.dirs[0].clean = True
    stage.find(one)
    _, [again] = stage.load(one)
    assert again.log.unsynced.companion is not None


def test_records_that_recovery_vouches_for_have_their_topics_id_on_the_device(stage):
    one = topic(A)
    _, [recovered] = stage.load(one)
    recovered.log.append_as_leader(memoryview(bytearray(batch(b"a"))), 0, 1)
    path = f"{recovered.log.directory}/{checkpoints.PARTITION_METADATA}"
    stage.disk.sync_dir("/")
    assert stage.disk.durable_size(path) <= 0
    stage.find(one)
    _, [again] = stage.load(one)
    assert again.log.recovery_point == 1
    assert stage.disk.durable_size(path) == stage.disk.size(path)


@pytest.mark.parametrize("records", [0, 1])
def test_a_topics_id_that_a_failed_sync_dropped_is_written_again_where_the_device_is_relied_on(stage, records):
    one = topic(A)
    _, [recovered] = stage.load(one, flush_messages=1)
    stage.disk.sync_dir("/")
    stage.disk.sync_dir("/a/t-0")
    for _ in range(records):
        recovered.log.append_as_leader(memoryview(bytearray(batch(b"a"))), 0, 1)
    stage.disk.faults.set("/a", Fault.SYNC_ERROR)
    with pytest.raises(OSError):
        recovered.log.unsynced.companion.sync_blocking()
    stage.disk.faults.clear()
    stage.find(one)
    _, [again] = stage.load(one, flush_messages=1)
    if again.log.unsynced.companion is not None:
        again.log.unsynced.companion.sync_blocking()
    path = f"{again.log.directory}/{checkpoints.PARTITION_METADATA}"
    assert stage.disk.durable_size(path) == stage.disk.size(path)


def test_s12_the_high_watermark_is_what_was_written_down_of_this_very_log(stage):
    one = topic(A)
    stage.dirs[0].high_watermarks = {("t", 0): 7}
    [place], _ = stage.load(one)
    assert place.high_watermark == 0, "it was another log of that name"
    stage.find(one)
    [place], _ = stage.load(one)
    assert place.high_watermark == 7
    stage.dirs[0].high_watermarks = {}
    assert place.high_watermark == 0


def test_recovery_begins_where_the_log_was_flushed(stage):
    one = topic(A)
    _, [first] = stage.load(one)
    for _ in range(3):
        first.log.append_as_leader(memoryview(bytearray(batch(b"v"))), 0, 1000)
    first.log.close()
    stage.find(one)
    stage.dirs[0].start_offsets = {("t", 0): 2}
    _, [again] = stage.load(one)
    assert (again.log.log_start_offset, again.log.log_end_offset) == (2, 3)


def test_one_log_dir_that_fails_does_not_fail_the_logs_of_another(stage):
    stage.disk.faults.set("/a/t-0", Fault.WRITE_ERROR)
    _, (bad, good) = stage.load(topic(A, B))
    assert isinstance(bad, OSError)
    assert good.log.directory == "/b/t-1"


def test_a_log_dir_that_can_not_be_synced_has_no_new_log(stage):
    """Its directory might be gone after a power loss, and the records with it."""
    one = topic(A, B)
    places, _ = stage.loading.place(all_of(one), (), at_start=True)
    stage.disk.faults.set("/a", Fault.SYNC_ERROR)
    bad, good = stage.loading.load_all(places, [TopicConfig.build()] * 2)
    assert isinstance(bad, OSError)
    assert good.log.directory == "/b/t-1"


def test_once_no_descriptor_is_left_no_other_log_is_tried(stage):
    two = topic(A, B, A, B)
    stage.disk.faults.set("/b/t-1", Fault.NO_HANDLES, times=1)
    _, opened = stage.load(two)
    assert [isinstance(one, OSError) and one.errno == errno.EMFILE for one in opened] == [False, True, True, True]
    assert not stage.disk.exists("/b/t-3")
    _, opened = stage.load(two)
    assert not any(isinstance(one, OSError) for one in opened)
