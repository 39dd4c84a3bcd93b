"""A follower's turn: which answers count, where its log is cut, and how far it believes its leader."""

from __future__ import annotations

from dataclasses import replace

import pytest

from strandline.errors import ErrorCode
from strandline.replica.following import FetchOutcome
from strandline.sim.faults import Fault
from strandline.wire.fetch import FetchedPartition, FetchPartition

from .bench import NOW_MS, Bench, as_leader_wrote, image

FOLLOWER = image(2)


def following(*batches: tuple[int, int, int], **fields: int) -> Bench:
    """A follower in epoch 5 that has these batches (base offset, count, leader epoch)."""
    on = Bench(FOLLOWER, **fields)  # type: ignore[arg-type]
    if batches:
        on.take(records=as_leader_wrote(*batches), high_watermark=0, log_start_offset=0)
    return on


def test_what_it_asks_for_says_what_it_has() -> None:
    on = following((0, 3, 2), (3, 2, 4))
    assert on.partition.fetch_position(77) == FetchPartition(0, 5, 5, 4, 0, 77)


def test_a_flush_that_is_due_comes_before_the_next_fetch() -> None:
    on = following(flush_messages=1)
    on.take(records=as_leader_wrote((0, 1, 5)), high_watermark=0, log_start_offset=0)
    assert on.partition.fetch_position(1) is None
    on.flush()
    assert on.partition.fetch_position(1) is not None


def test_a9_a_cut_is_where_the_shorter_of_both_ends_of_the_epoch_is() -> None:
    for told, end in (((4, 9), 5), ((4, 4), 4), ((3, 9), 3), ((2, 2), 2), ((2, 9), 3), ((1, 1), 0)):
        on = following((0, 1, 2), (1, 1, 2), (2, 1, 2), (3, 1, 4), (4, 1, 4))
        taken = on.take(diverging_epoch=told)
        assert taken.outcome is FetchOutcome.TRUNCATED
        assert on.partition.log.log_end_offset == end, told
        assert all(start < end for _, start in on.partition.log.epochs.entries)


def test_a9_the_watermark_waits_until_the_logs_agree() -> None:
    on = following((0, 5, 4))
    on.take(diverging_epoch=(3, 2), high_watermark=5)
    assert on.offsets == (0, 0)


def test_a10_an_answer_of_another_epoch_or_position_is_stale() -> None:
    on = following((0, 2, 5))
    answer = FetchedPartition(0, 0, 2, -1, 0, as_leader_wrote((2, 1, 5)))
    for asked in (
        FetchPartition(0, 4, 2, 5, 0, 100),
        FetchPartition(0, 6, 2, 5, 0, 100),
        FetchPartition(0, 5, 1, 5, 0, 100),
    ):
        assert on.partition.take(asked, answer, NOW_MS).outcome is FetchOutcome.STALE
    assert on.offsets == (0, 2)


def test_a10_one_that_leads_by_now_takes_nothing() -> None:
    on = following((0, 2, 5))
    asked = on.partition.fetch_position(100)
    assert asked is not None
    on.partition.apply(image(1, epoch=6, partition_epoch=2))
    answer = FetchedPartition(0, 0, 2, -1, 0, as_leader_wrote((2, 1, 5)))
    assert on.partition.take(asked, answer, NOW_MS).outcome is FetchOutcome.STALE


def test_a10_batches_of_a_later_epoch_than_asked_for_are_not_taken() -> None:
    on = following()
    taken = on.take(records=as_leader_wrote((0, 1, 5), (1, 1, 6)), high_watermark=0, log_start_offset=0)
    assert taken.outcome is FetchOutcome.FAILED
    assert on.offsets == (0, 1)


def test_a11_the_watermark_is_the_leaders_as_far_as_the_log_goes() -> None:
    on = following((0, 2, 5))
    assert on.take(high_watermark=9, log_start_offset=0).outcome is FetchOutcome.ADVANCED
    assert on.offsets == (2, 2)
    assert on.take(high_watermark=1, log_start_offset=0).outcome is FetchOutcome.NOTHING
    assert on.offsets == (2, 2), "what was committed stays so"


def test_a11_a_watermark_above_what_is_flushed_counts_after_the_flush() -> None:
    on = following(flush_messages=1)
    on.take(records=as_leader_wrote((0, 2, 5)), high_watermark=2, log_start_offset=0)
    assert on.offsets == (0, 2)
    on.flush()
    assert on.offsets == (2, 2)


def test_a11_a_corrupt_batch_is_not_written_and_the_good_ones_before_it_are() -> None:
    on = following()
    data = bytearray(as_leader_wrote((0, 1, 5), (1, 1, 5)))
    data[-1] ^= 1
    taken = on.take(records=bytes(data), high_watermark=2, log_start_offset=0)
    assert taken.outcome is FetchOutcome.FAILED
    assert "checksum" in taken.reason
    assert on.offsets == (1, 1)


@pytest.mark.parametrize(
    ("code", "outcome"),
    [
        (ErrorCode.OFFSET_OUT_OF_RANGE, FetchOutcome.OUT_OF_RANGE),
        (ErrorCode.FENCED_LEADER_EPOCH, FetchOutcome.FAILED),
        (ErrorCode.UNKNOWN_LEADER_EPOCH, FetchOutcome.FAILED),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, FetchOutcome.FAILED),
    ],
)
def test_a_refusal_has_its_own_end(code: ErrorCode, outcome: FetchOutcome) -> None:
    assert following((0, 2, 5)).take(error_code=code).outcome is outcome


def test_a8_a_leader_that_is_shorter_cuts_and_one_that_starts_later_begins_anew() -> None:
    on = following((0, 5, 5))
    assert on.partition.reset(0, 3) == 0, "a batch that reaches over the cut goes as a whole"
    on = following((0, 1, 5), (1, 1, 5))
    assert on.partition.reset(7, 9) == 7
    assert (on.partition.log.log_start_offset, on.offsets) == (7, (7, 7))
    assert on.partition.log.epochs.entries == []
    assert on.partition.reset(0, 9) == 7, "in range: nothing to do"


def test_the_log_start_follows_the_leaders_below_the_watermark() -> None:
    on = following((0, 1, 5), (1, 1, 5), (2, 1, 5))
    on.take(high_watermark=2, log_start_offset=3)
    assert on.partition.log.log_start_offset == 2


def test_sec_l5_a_follower_goes_on_behind_the_segment_that_it_could_fill() -> None:
    """The answer is for two segments, and for the second no descriptor is left."""
    on = Bench(image(2))
    log = on.partition.log
    log.config = replace(log.config, segment_bytes=150)
    on.disk.faults.set(log.directory, Fault.NO_HANDLES)
    with pytest.raises(OSError, match="/t-0"):
        on.take(records=as_leader_wrote((0, 1, 5), (1, 1, 5), (2, 1, 5)), high_watermark=0, log_start_offset=0)
    assert 0 < log.log_end_offset < 3
    on.disk.faults.clear()
    asked = on.partition.fetch_position(2**20)
    assert asked is not None
    assert asked.fetch_offset == log.log_end_offset
