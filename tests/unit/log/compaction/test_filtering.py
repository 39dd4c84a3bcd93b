"""What stays of a batch: tombstones and their horizon, producers' last sequences, markers, timestamps."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.log.compaction.filtering import _rewritten
from strandline.log.compaction.offset_map import OffsetMap
from strandline.log.log import Log
from strandline.log.lookup import first_at_or_after, of_max_timestamp
from strandline.log.txn_index import AbortedTxn
from strandline.records.batch import BatchBuilder, decode
from strandline.records.compression import CompressionType
from strandline.records.control import ControlRecordType
from strandline.records.header import read_header, stamp_append_time

from ..conftest import NOW, LogDir, PoweredLogDir, marker
from .cleaning import COMPACT, batches, clean, put, puts, records, view

RETENTION = 1000
FIELDS = {**COMPACT, "delete_retention_ms": RETENTION}


def txn(log: Log, pairs: dict[str, str], producer_id: int, sequence: int = 0) -> int:
    return put(log, pairs, producer_id=producer_id, producer_epoch=0, base_sequence=sequence, transactional=True)


def end_txn(log: Log, producer_id: int, *, abort: bool, epoch: int = 0) -> int:
    kind = ControlRecordType.ABORT if abort else ControlRecordType.COMMIT
    return log.append_own(marker(kind, producer_id, 0), epoch, NOW)


# Tombstones


def test_a_tombstone_takes_what_came_before_and_stays_for_delete_retention(directory: LogDir) -> None:
    log = directory.open(**FIELDS)
    put(log, {"a": "1", "b": "1"})
    put(log, {"a": None, "c": "1"}, timestamp=NOW + 7)
    put(log, {"d": "1"})
    clean(directory, log, now_ms=NOW)
    assert records(log) == [(1, "b", "1"), (2, "a", None), (3, "c", "1"), (4, "d", "1")]
    assert [header.delete_horizon_ms for header, _ in batches(log)] == [None, NOW + RETENTION, None]
    assert [record.timestamp for record in batches(log)[1][1]] == [NOW + 7, NOW + 7]
    assert batches(log)[1][0].max_timestamp == NOW + 7

    put(log, {"d": "2"})
    clean(directory, log, 5, now_ms=NOW + RETENTION - 1)
    assert (2, "a", None) in records(log)
    assert [header.delete_horizon_ms for header, _ in batches(log)][1] == NOW + RETENTION

    put(log, {"d": "3"})
    clean(directory, log, 6, now_ms=NOW + RETENTION)
    assert records(log) == [(1, "b", "1"), (3, "c", "1"), (6, "d", "3")]
    kept, (record,) = batches(log)[1]
    assert (kept.base_offset, kept.last_offset, kept.delete_horizon_ms) == (2, 3, NOW + RETENTION)
    assert record.timestamp == NOW + 7


def test_the_first_cleaning_counts_not_the_last(directory: LogDir) -> None:
    log = directory.open(**FIELDS)
    put(log, {"a": None, "b": "1"})
    for i in range(3):
        put(log, {"x": f"{i}"})
        clean(directory, log, log.log_end_offset - 1 if i else None, now_ms=NOW + i)
    assert batches(log)[0][0].delete_horizon_ms == NOW + RETENTION


def test_a_superseded_tombstone_goes_at_once(directory: LogDir) -> None:
    log = directory.open(**FIELDS)
    put(log, {"a": None})
    put(log, {"a": "1"})
    clean(directory, log)
    assert records(log) == [(1, "a", "1")]


@given(
    st.lists(
        st.tuples(
            st.integers(0, 3),
            st.one_of(st.none(), st.binary(max_size=100)),
            st.lists(st.tuples(st.text(max_size=5), st.one_of(st.none(), st.binary(max_size=70))), max_size=2),
            st.one_of(st.integers(0, 200), st.integers(0, 2**40)),
        ),
        min_size=1,
        max_size=8,
    ),
    st.sampled_from(list(CompressionType)),
)
def test_a_delete_horizon_changes_nothing_that_a_reader_sees(entries: Any, codec: CompressionType) -> None:
    builder = BatchBuilder()
    for key, value, headers, timestamp in entries:
        builder.append(b"%d" % key, value, headers, timestamp)
    batch = bytes(builder.build(base_offset=30))
    header = read_header(batch)
    offsets = OffsetMap()
    offsets.note(batch, 61, len(batch), header)
    offsets.settle()
    sifted = offsets.sift_noted(batch, 61, len(batch), header, drop_tombstones=False)
    rewritten, left = _rewritten(batch, sifted, header._replace(attributes=codec), NOW)
    newest = {record.key: record for record in decode(batch)}
    expected = sorted(newest.values(), key=lambda record: record.offset)
    assert list(decode(rewritten)) == expected
    assert read_header(rewritten).delete_horizon_ms == NOW
    assert left.max_timestamp == read_header(rewritten).max_timestamp == max(record.timestamp for record in expected)


# Timestamps


def test_the_greatest_timestamp_is_that_of_what_stayed(directory: LogDir) -> None:
    log = directory.open(**COMPACT)
    builder = BatchBuilder()
    for key, timestamp in ((b"a", NOW + 5), (b"b", NOW + 900), (b"c", NOW + 20), (b"d", NOW)):
        builder.append(key, b"1", timestamp=timestamp)
    log.append_own(builder.build(), 0, NOW)
    put(log, {"b": "2"}, timestamp=NOW + 1)
    clean(directory, log)
    assert [header.max_timestamp for header, _ in batches(log)] == [NOW + 20, NOW + 1]
    found = of_max_timestamp(log)
    assert found is not None
    assert (found.timestamp, found.offset) == (NOW + 20, 2)
    by_time = first_at_or_after(log, NOW + 6)
    assert by_time is not None
    assert by_time.offset == 2


def test_the_timestamp_of_an_emptied_batch_is_nobodys(directory: LogDir) -> None:
    log = directory.open(**COMPACT)
    put(log, {"a": "1"}, timestamp=NOW + 90, producer_id=9, producer_epoch=2, base_sequence=0)
    put(log, {"b": "1"}, timestamp=NOW + 40)
    put(log, {"a": "2"}, timestamp=NOW + 30)
    clean(directory, log)
    assert [header.records_count for header, _ in batches(log)] == [0, 1, 1]
    found = of_max_timestamp(log)
    assert found is not None
    assert (found.timestamp, found.offset) == (NOW + 40, 1)
    assert first_at_or_after(log, NOW + 41) is None


def test_an_append_time_stays(directory: LogDir) -> None:
    log = directory.open(**COMPACT)
    data = puts({"a": "1", "b": None, "c": "1"}, timestamp=NOW - 50)
    stamp_append_time(data, NOW + 3)
    log.append_own(data, 0, NOW)
    put(log, {"c": "2"})
    clean(directory, log)
    header, kept = batches(log)[0]
    assert (header.is_log_append_time, header.max_timestamp, header.records_count) == (True, NOW + 3, 2)
    assert [record.timestamp for record in kept] == [NOW + 3, NOW + 3]


# Producers


def test_the_batch_with_a_producers_last_sequence_stays_empty(directory: LogDir) -> None:
    log = directory.open(**COMPACT)
    put(log, {"a": "1", "b": "1"}, producer_id=9, producer_epoch=2, base_sequence=0)
    put(log, {"a": "2", "b": "2"}, producer_id=9, producer_epoch=2, base_sequence=2)
    put(log, {"a": "3", "b": "3"})
    clean(directory, log)
    (emptied, nothing), (last, _) = batches(log)
    assert (emptied.base_offset, emptied.last_offset, emptied.records_count, nothing) == (2, 3, 0, [])
    assert (emptied.producer_id, emptied.producer_epoch, emptied.last_sequence) == (9, 2, 3)
    assert emptied.max_timestamp == NOW
    assert last.base_offset == 4
    log.close()
    for name in directory.names(".snapshot"):
        log.disk.remove(directory.file(name))
    again = directory.recover(**COMPACT).log
    assert again.producers.by_id[9].last_sequence == 3
    put(again, {"c": "1"}, producer_id=9, producer_epoch=2, base_sequence=4)
    clean(directory, again, 6)
    assert [header.base_offset for header, _ in batches(again)] == [4, 6]


def test_the_last_batch_of_a_segment_stays_to_say_where_it_ends(directory: LogDir) -> None:
    log = directory.open(**COMPACT, segment_bytes=150)
    put(log, {"a": "x" * 30})
    put(log, {"a": "y" * 30})
    put(log, {"a": "z" * 30})
    clean(directory, log)
    assert [(h.base_offset, h.records_count) for h, _ in batches(log)] == [(0, 0), (1, 0), (2, 1)]
    assert all(
        segment.next_offset == following.base_offset
        for segment, following in zip(log.segments, log.segments[1:], strict=False)
    )


# Transactions


def test_txn_p32_aborted_records_go_and_their_marker_after_them(directory: LogDir) -> None:
    log = directory.open(**FIELDS)
    put(log, {"a": "1", "b": "1"})
    txn(log, {"a": "bad", "c": "bad"}, 5)
    end_txn(log, 5, abort=True)
    put(log, {"d": "1"})
    log.producers.expire(NOW * 2, 1)
    clean(directory, log)
    assert records(log) == [(0, "a", "1"), (1, "b", "1"), (5, "d", "1")]
    assert [(h.base_offset, h.is_control, h.delete_horizon_ms) for h, _ in batches(log)][1] == (4, True, None)
    assert log.aborted_between(0, 6) == [AbortedTxn(5, 2, 4, 5)]

    put(log, {"d": "2"})
    clean(directory, log, 6)
    assert [(h.base_offset, h.delete_horizon_ms) for h, _ in batches(log)][1] == (4, NOW + RETENTION)
    assert log.aborted_between(0, 7) == []

    put(log, {"d": "3"})
    clean(directory, log, 7, now_ms=NOW + RETENTION)
    assert [h.base_offset for h, _ in batches(log)] == [0, 7]
    log.close()
    assert view(directory.recover(**COMPACT).log) == {"a": "1", "b": "1", "d": "3"}


def test_txn_p32_a_commit_marker_stays_while_a_record_of_its_transaction_does(directory: LogDir) -> None:
    log = directory.open(**FIELDS)
    txn(log, {"a": "1"}, 5)
    end_txn(log, 5, abort=False)
    put(log, {"b": "1"})
    log.producers.expire(NOW * 2, 1)
    clean(directory, log)
    put(log, {"b": "2"})
    clean(directory, log, 3, now_ms=NOW + 10 * RETENTION)
    assert [h.base_offset for h, _ in batches(log)] == [0, 1, 3]
    assert log.producers.first_unstable_offset(log.log_end_offset) is None


def test_txn_p32_an_emptied_batch_of_a_transaction_keeps_its_marker(directory: LogDir) -> None:
    """Else the transaction would be open again after a restart."""
    log = directory.open(**FIELDS)
    txn(log, {"a": "1"}, 5)
    end_txn(log, 5, abort=True)
    for i in range(3):
        put(log, {"b": f"{i}"})
        clean(directory, log, log.log_end_offset - 1 if i else None, now_ms=NOW + i * 2 * RETENTION)
    assert [(h.base_offset, h.records_count) for h, _ in batches(log)] == [(0, 0), (1, 1), (4, 1)]
    assert log.aborted_between(0, 5) == [AbortedTxn(5, 0, 1, 2)]
    log.close()
    for name in directory.names(".snapshot"):
        log.disk.remove(directory.file(name))
    again = directory.recover(**COMPACT).log
    assert again.producers.first_unstable_offset(again.log_end_offset) is None
    assert again.producers.by_id[5].last_sequence == 0


def test_a_transaction_aborted_above_what_is_cleaned(directory: LogDir) -> None:
    log = directory.open(**FIELDS)
    put(log, {"a": "1"})
    txn(log, {"a": "bad"}, 5)
    put(log, {"b": "1"})
    log.roll(NOW)
    end_txn(log, 5, abort=True)
    clean(directory, log, roll=False)
    assert records(log) == [(0, "a", "1"), (2, "b", "1")]
    assert log.aborted_between(0, 4) == [AbortedTxn(5, 1, 3, 4)]


@pytest.mark.parametrize("is_first_deleted", [False, True])
def test_a_transaction_that_began_before_what_is_cleaned_is_aborted_all_the_same(
    directory: LogDir, is_first_deleted: bool
) -> None:
    """Two producers, one of which commits; what they began lies below the dirty part, or is not in the log any more."""
    log = directory.open(**FIELDS)
    put(log, {"a": "1"})
    txn(log, {"x": "bad"}, 5)
    txn(log, {"y": "good"}, 6)
    log.roll(NOW)
    if is_first_deleted:
        log.drop_segments(1, NOW)
    txn(log, {"a": "bad"}, 5)
    txn(log, {"b": "good"}, 6)
    put(log, {"c": "1"})
    end_txn(log, 6, abort=False)
    end_txn(log, 5, abort=True)
    log.roll(NOW)
    clean(directory, log, None if is_first_deleted else 3, roll=False)
    kept = [(key, value) for _, key, value in records(log)]
    before = [] if is_first_deleted else [("a", "1"), ("y", "good")]
    assert kept == [*before, ("b", "good"), ("c", "1")]


def test_txn_p31_a_lost_watermark_opens_no_transaction_whose_marker_was_cleaned_away(powered: PoweredLogDir) -> None:
    """Without it a start trusts the oldest snapshot alone, which is from before the marker."""
    log = powered.open(**{**FIELDS, "delete_retention_ms": 0})
    txn(log, {"k": "1"}, 5)  # 0
    log.roll(NOW)  # a snapshot that says: open
    end_txn(log, 5, abort=False)  # 1
    put(log, {"x": "1"})  # 2
    log.roll(NOW)  # one that says: ended
    txn(log, {"y": "1"}, 6)  # 3
    powered.flush(log)
    for path in log.drop_segments(1, NOW):
        powered.disk.remove(path)
    for later in (1, 10):
        clean(powered, log, now_ms=NOW + later, roll=False)
    powered.flush(log)
    assert not any(header.producer_id == 5 and read for header, read in batches(log)), "nothing says that it ended"
    log.close_clean()

    def first_unstable(clean_offset: int, start: int) -> int | None:
        recovered = powered.recover(
            clean=True, recovery_point=4, start=start, clean_offset=clean_offset, high_watermark=0, **FIELDS
        )
        recovered.log.close()
        return recovered.log.producers.first_unstable_offset(4)

    assert first_unstable(clean_offset=3, start=1) == 3, "what is open above is open still"
    assert first_unstable(clean_offset=5, start=1) == 0, "the log was cut since: it may have lost the marker"
    assert first_unstable(clean_offset=1, start=1) == 0, "readers wait at the log start, and so does the cleaner"


def test_txn_p32_a_marker_that_says_the_epoch_of_its_producer_stays(directory: LogDir) -> None:
    log = directory.open(**FIELDS)
    log.append_own(marker(ControlRecordType.ABORT, 5, 3), 0, NOW)
    for i in range(4):
        put(log, {"b": f"{i}"})
        clean(directory, log, log.log_end_offset - 1 if i else None, now_ms=NOW + i * 2 * RETENTION)
    header, _ = batches(log)[0]
    assert (header.base_offset, header.producer_epoch, header.records_count) == (0, 3, 0)
