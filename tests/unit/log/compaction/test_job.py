"""A cleaning from end to end: the newest of each key stays where it was, the rest goes, and a restart finds the same."""

from __future__ import annotations

import pickle

import pytest

from strandline.log.compaction.job import run
from strandline.log.errors import CorruptBatch
from strandline.records.compression import CompressionType

from ..conftest import NOW, LogDir
from .cleaning import COMPACT, batches, clean, job_for, put, puts, records, run_job, view


def test_the_newest_record_of_each_key_stays_at_its_offset(directory: LogDir) -> None:
    log = directory.open(**COMPACT)
    put(log, {"a": "1", "b": "1", "c": "1"})
    put(log, {"b": "2"})
    put(log, {"d": "1", "a": "2"})
    cleaned = clean(directory, log)
    assert records(log) == [(2, "c", "1"), (3, "b", "2"), (4, "d", "1"), (5, "a", "2")]
    assert (cleaned.end_offset, cleaned.keys_count, cleaned.records_read, cleaned.records_written) == (6, 4, 6, 4)
    assert cleaned.bytes_read == 2 * cleaned.bytes_read // 2 > cleaned.bytes_written > 0
    assert log.log_end_offset == 6
    log.close_clean()
    again = directory.recover(clean=True, recovery_point=6, **COMPACT)
    assert records(again.log) == [(2, "c", "1"), (3, "b", "2"), (4, "d", "1"), (5, "a", "2")]
    assert (again.scanned_bytes, again.log.log_end_offset) == (0, 6)


def test_headers_keep_their_offsets_and_sequences(directory: LogDir) -> None:
    log = directory.open(**COMPACT)
    put(log, {"a": "1", "b": "1", "c": "1"}, epoch=3, producer_id=9, producer_epoch=1, base_sequence=40)
    put(log, {"a": "2", "c": "2"}, epoch=4)
    clean(directory, log)
    first, _ = batches(log)[0]
    assert (first.base_offset, first.last_offset, first.records_count) == (0, 2, 1)
    assert (first.producer_id, first.producer_epoch, first.base_sequence, first.last_sequence) == (9, 1, 40, 42)
    assert first.partition_leader_epoch == 3
    assert log.epochs.entries == [(3, 0), (4, 3)]


def test_what_was_cleaned_before_gives_way_to_what_is_new(directory: LogDir) -> None:
    log = directory.open(**COMPACT)
    put(log, {"a": "1", "b": "1"})
    first = clean(directory, log)
    put(log, {"b": "2", "c": "2"})
    second = clean(directory, log, first.end_offset)
    assert records(log) == [(0, "a", "1"), (2, "b", "2"), (3, "c", "2")]
    assert (second.keys_count, second.records_read) == (2, 4)
    assert len(log.segments) == 2


def test_small_segments_are_cleaned_into_one(directory: LogDir) -> None:
    log = directory.open(**COMPACT, segment_bytes=200)
    for i in range(12):
        put(log, {f"k{i % 5}": f"v{i}"})
    assert len(log.segments) > 5
    log.config = directory.open(**COMPACT).config
    clean(directory, log)
    assert [segment.base_offset for segment in log.segments] == [0, 12]
    assert view(log) == {"k0": "v10", "k1": "v11", "k2": "v7", "k3": "v8", "k4": "v9"}


def test_a_job_and_its_result_can_cross_to_another_process(directory: LogDir) -> None:
    log = directory.open(**COMPACT)
    put(log, {"a": "1"}, producer_id=9, producer_epoch=1, base_sequence=0)
    put(log, {"a": "2"})
    log.roll(NOW)
    job = pickle.loads(pickle.dumps(job_for(log)))
    assert pickle.loads(pickle.dumps(run)) is run
    assert pickle.loads(pickle.dumps(run_job(log, job))).end_offset == 2


@pytest.mark.parametrize("codec", list(CompressionType))
def test_compressed_batches_keep_their_codec(directory: LogDir, codec: CompressionType) -> None:
    log = directory.open(**COMPACT)
    put(log, {f"k{i}": "x" * 200 for i in range(10)}, codec=codec)
    put(log, {f"k{i}": "y" * 200 for i in range(5)}, codec=codec)
    clean(directory, log)
    assert [header.codec for header, _ in batches(log)] == [codec, codec]
    assert [offset for offset, _, _ in records(log)] == list(range(5, 15))


def test_a_full_offset_map_ends_the_cleaning_at_a_batch(directory: LogDir) -> None:
    log = directory.open(**COMPACT)
    put(log, {"a": "1", "b": "1"})
    put(log, {"a": "2", "c": "2"})
    put(log, {"a": "3", "b": "3"})
    cleaned = clean(directory, log, offset_map_entries_max=3)
    assert (cleaned.end_offset, cleaned.keys_count) == (4, 3)
    assert records(log) == [(1, "b", "1"), (2, "a", "2"), (3, "c", "2"), (4, "a", "3"), (5, "b", "3")]
    cleaned = clean(directory, log, cleaned.end_offset, offset_map_entries_max=3)
    assert records(log) == [(3, "c", "2"), (4, "a", "3"), (5, "b", "3")]
    assert cleaned.end_offset == 6


def test_segments_above_a_full_offset_map_are_left_alone(directory: LogDir) -> None:
    log = directory.open(**COMPACT, segment_bytes=150)
    for i in range(8):
        put(log, {f"k{i % 4}": "v" * 20})
    files = {name: directory.bytes(name) for name in directory.names(".log")}
    cleaned = clean(directory, log, offset_map_entries_max=2)
    assert cleaned.end_offset == 2
    above = [name for name in files if int(name.partition(".")[0]) >= 2]
    assert {name: directory.bytes(name) for name in above} == {name: files[name] for name in above}


def test_an_unchanged_segment_is_not_replaced(directory: LogDir) -> None:
    log = directory.open(**COMPACT)
    put(log, {"a": "1"})
    put(log, {"b": "1"})
    log.roll(NOW)
    cleaned = run_job(log, job_for(log))
    assert (cleaned.groups, cleaned.end_offset, cleaned.bytes_written) == ((), 2, 0)
    assert not directory.names(".cleaned")


def test_records_without_a_key_go(directory: LogDir) -> None:
    log = directory.open(**COMPACT)
    put(log, [(None, "1"), ("a", "1"), (None, "2")])
    put(log, {"b": "1"})
    clean(directory, log)
    assert records(log) == [(1, "a", "1"), (3, "b", "1")]


def test_a_rotten_batch_ends_the_job_and_nothing_changes(directory: LogDir) -> None:
    log = directory.open(**COMPACT)
    for i in range(3):
        put(log, {"a": f"{i}", "b": f"{i}"})
    log.roll(NOW)
    job = job_for(log)
    name = "00000000000000000000.log"
    rotten = bytearray(directory.bytes(name))
    size = len(rotten) // 3
    rotten[size + 70] ^= 4
    directory.replace(name, bytes(rotten))
    with pytest.raises(CorruptBatch, match="checksum") as damaged:
        run_job(log, job)
    assert damaged.value.stretch == (0, size, 2 * size, 4)
    again = pickle.loads(pickle.dumps(damaged.value))
    assert (again.stretch, str(again)) == (damaged.value.stretch, str(damaged.value))


def test_a_clean_batch_is_checked_before_it_is_copied(directory: LogDir) -> None:
    log = directory.open(**COMPACT)
    put(log, {"a": "1", "b": "1"})
    first = clean(directory, log)
    put(log, {"a": "2"})
    log.roll(NOW)
    name = "00000000000000000000.log"
    rotten = bytearray(directory.bytes(name))
    rotten[70] ^= 4
    directory.replace(name, bytes(rotten))
    with pytest.raises(CorruptBatch, match="checksum"):
        run_job(log, job_for(log, first.end_offset))


def test_a_job_begins_anew_after_one_that_was_stopped(directory: LogDir) -> None:
    log = directory.open(**COMPACT)
    put(log, {"a": "1", "b": "1"})
    put(log, {"a": "2"})
    directory.replace("00000000000000000000.log.cleaned", b"half of a batch")
    directory.replace("00000000000000000007.index.cleaned", b"x")
    clean(directory, log)
    assert records(log) == [(1, "b", "1"), (2, "a", "2")]
    assert not directory.names(".cleaned")


def test_a_batch_larger_than_what_is_read_at_once(directory: LogDir, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("strandline.log.compaction.reading.CHUNK_BYTES", 100)
    log = directory.open(**COMPACT)
    put(log, {"a": "x" * 500})
    put(log, {"b": "1"})
    put(log, {"a": "2"})
    clean(directory, log)
    assert records(log) == [(1, "b", "1"), (2, "a", "2")]


def test_pace_is_told_of_all_that_is_read_and_written(directory: LogDir) -> None:
    log = directory.open(**COMPACT)
    put(log, {"a": "1", "b": "1"})
    put(log, {"a": "2"})
    log.roll(NOW)
    paced: list[int] = []
    cleaned = run(log.disk, paced.append, job_for(log))
    assert sum(paced) == cleaned.bytes_read + cleaned.bytes_written


def test_a_batch_may_grow_beyond_what_a_client_may_send(directory: LogDir) -> None:
    log = directory.open(**COMPACT, max_message_bytes=70)
    put(log, {"a": None, "b": "1"})
    clean(directory, log)
    assert batches(log)[0][0].size_bytes > len(puts({"a": None, "b": "1"})) > 70


def test_a_segment_that_is_gone_is_not_made_again(directory: LogDir) -> None:
    log = directory.open(**COMPACT)
    put(log, {"a": "1"})
    log.roll(NOW)
    job = job_for(log)
    log.truncate_fully_and_start_at(100)
    with pytest.raises(FileNotFoundError):
        run_job(log, job)
    assert directory.names(".log") == [f"{100:020d}.log"]


def test_what_rots_between_the_two_readings_gets_no_new_checksum(directory: LogDir) -> None:
    log = directory.open(**COMPACT)
    put(log, {"a": "1", "b": "value"})
    put(log, {"a": "2"})
    log.roll(NOW)
    job = job_for(log)

    def rot(size: int) -> None:
        name = f"{0:020d}.log"
        directory.replace(name, directory.bytes(name).replace(b"value", b"other"))

    with pytest.raises(CorruptBatch):
        run(log.disk, rot, job)
