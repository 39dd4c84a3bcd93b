"""What was lost, and what can still be read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.ids import ZERO_UUID
from strandline.spark.checkpointed_offsets import StreamOffsets
from strandline.spark.data_loss import LossCause, ReadableRanges, judge, settle, vanished, went_back
from strandline.spark.errors import DataLoss
from strandline.spark.splits import OffsetRange
from tests.unit.spark.memory_cluster_view import MemoryClusterView, offsets, topic_id


def judged(start: StreamOffsets, end: StreamOffsets, view: MemoryClusterView) -> ReadableRanges:
    wanted = list(end.offsets)
    return judge(start, end, view.topics(None), view.earliest(wanted), view.latest(wanted))


def read(found: ReadableRanges) -> list[tuple[str, int, int, int]]:
    return [(r.topic, r.partition, r.start, r.end) for r in found.ranges]


def causes(found: ReadableRanges) -> list[tuple[LossCause, tuple[str, int]]]:
    return [(loss.cause, loss.topic_partition) for loss in found.losses]


def test_nothing_is_lost() -> None:
    found = judged(
        offsets(t={0: 3, 1: 5}), offsets(t={0: 9, 1: 5}), MemoryClusterView({("t", 0): (3, 9), ("t", 1): (0, 9)})
    )
    assert found == ReadableRanges([OffsetRange("t", topic_id(1), 0, 3, 9)], [])


def test_the_log_starts_later_than_the_query() -> None:
    found = judged(offsets(t={0: 3}), offsets(t={0: 9}), MemoryClusterView({("t", 0): (5, 12)}))
    assert read(found) == [("t", 0, 5, 9)]
    assert causes(found) == [(LossCause.AGED_OUT, ("t", 0))]
    assert "t-0 has no offset 3 any more: its log starts at 5" in found.losses[0].what


def test_all_of_a_batch_aged_out() -> None:
    found = judged(offsets(t={0: 3}), offsets(t={0: 9}), MemoryClusterView({("t", 0): (50, 60)}))
    assert read(found) == []
    assert causes(found) == [(LossCause.AGED_OUT, ("t", 0))]


def test_an_empty_range_loses_nothing_yet() -> None:
    assert judged(offsets(t={0: 3}), offsets(t={0: 3}), MemoryClusterView({("t", 0): (5, 5)})) == ReadableRanges([], [])


def test_the_log_ends_before_the_batch() -> None:
    found = judged(offsets(t={0: 3}), offsets(t={0: 9}), MemoryClusterView({("t", 0): (0, 7)}))
    assert read(found) == [("t", 0, 3, 7)]
    assert causes(found) == [(LossCause.WENT_BACK, ("t", 0))]
    assert "t-0 is wanted up to offset 9, and its log ends at 7" in found.losses[0].what


def test_the_query_is_beyond_the_log() -> None:
    found = judged(offsets(t={0: 30}), offsets(t={0: 7}), MemoryClusterView({("t", 0): (0, 7)}))
    assert read(found) == []
    assert causes(found) == [(LossCause.WENT_BACK, ("t", 0))]


def test_a_new_partition_is_read_from_its_beginning() -> None:
    found = judged(offsets(t={0: 3}), offsets(t={0: 3, 1: 8}), MemoryClusterView({("t", 0): (0, 3), ("t", 1): (0, 8)}))
    assert found == ReadableRanges([OffsetRange("t", topic_id(1), 1, 0, 8)], [])


def test_a_new_partition_that_lost_its_beginning() -> None:
    found = judged(offsets(t={0: 3}), offsets(t={0: 3, 1: 8}), MemoryClusterView({("t", 0): (0, 3), ("t", 1): (5, 8)}))
    assert read(found) == [("t", 1, 5, 8)]
    assert causes(found) == [(LossCause.ADDED_LATE, ("t", 1))]


def test_a_partition_that_the_end_leaves_out_is_gone() -> None:
    found = judged(offsets(t={0: 3}, u={0: 3}), offsets(t={0: 4}), MemoryClusterView({("t", 0): (0, 4)}))
    assert read(found) == [("t", 0, 3, 4)]
    assert causes(found) == [(LossCause.GONE, ("u", 0))]


def test_a_partition_that_went_away_after_the_batch_was_planned() -> None:
    found = judged(offsets(t={0: 3}, u={0: 3}), offsets(t={0: 4}, u={0: 9}), MemoryClusterView({("t", 0): (0, 4)}))
    assert read(found) == [("t", 0, 3, 4)]
    assert causes(found) == [(LossCause.GONE, ("u", 0))]


def test_a_topic_created_anew_since_the_last_batch_is_read_from_its_beginning_as_another() -> None:
    view = MemoryClusterView({("t", 0): (0, 100)}, ids={"t": topic_id(2)})
    found = judged(offsets(t={0: 3}), offsets({"t": topic_id(2)}, t={0: 9}), view)
    assert found.ranges == [OffsetRange("t", topic_id(2), 0, 0, 9)]
    assert causes(found) == [(LossCause.RECREATED, ("t", 0))]


def test_a_topic_created_anew_after_the_batch_was_planned_is_not_read() -> None:
    view = MemoryClusterView({("t", 0): (0, 100)}, ids={"t": topic_id(2)})
    found = judged(offsets(t={0: 3}), offsets(t={0: 9}), view)
    assert found.ranges == []
    assert causes(found) == [(LossCause.RECREATED, ("t", 0))]


def test_brokers_that_tell_no_topic_ids_do_no_harm() -> None:
    view = MemoryClusterView({("t", 0): (0, 100)}, ids={"t": ZERO_UUID})
    assert read(judged(offsets(t={0: 3}), offsets(t={0: 9}), view)) == [("t", 0, 3, 9)]


@given(st.tuples(*[st.integers(0, 12)] * 4), st.booleans())
def test_what_is_read_is_in_the_log_and_in_the_batch_and_what_is_not_is_told(
    numbers: tuple[int, int, int, int], is_new: bool
) -> None:
    first, last, earliest, length = numbers
    view = MemoryClusterView({("t", 0): (earliest, earliest + length)})
    found = judged(offsets() if is_new else offsets(t={0: first}), offsets(t={0: last}), view)
    begin = 0 if is_new else first
    wanted = set(range(begin, last))
    there = set(range(earliest, earliest + length))
    assert {o for r in found.ranges for o in range(r.start, r.end)} == wanted & there
    if not is_new:
        assert bool(found.losses) == (bool(wanted - there) or first > last or last > earliest + length)


def test_what_vanished_from_a_running_stream() -> None:
    known = offsets(t={0: 3, 1: 3}, u={0: 3}, v={0: 3})
    view = MemoryClusterView({("t", 0): (0, 4), ("v", 0): (0, 4)}, ids={"v": topic_id(7)})
    assert [(loss.cause, loss.topic_partition) for loss in vanished(known, view.topics(None))] == [
        (LossCause.GONE, ("t", 1)),
        (LossCause.GONE, ("u", 0)),
        (LossCause.RECREATED, ("v", 0)),
    ]


def test_partitions_that_went_back() -> None:
    assert went_back({("t", 0): 5, ("t", 1): 5}, {("t", 0): 4, ("t", 1): 5, ("t", 2): 0}) == [("t", 0)]


def test_a_loss_fails_the_query_in_one_line_with_what_to_do() -> None:
    losses = judged(
        offsets(t={0: 3, 1: 3}), offsets(t={0: 9, 1: 9}), MemoryClusterView({("t", 0): (5, 9), ("t", 1): (5, 9)})
    ).losses
    with pytest.raises(
        DataLoss, match=r"^t-0 has no offset 3.*\(and 1 more partitions\).*failOnDataLoss to false"
    ) as failed:
        settle(losses, fail_on_data_loss=True)
    assert "\n" not in str(failed.value)


def test_a_tolerated_loss_is_a_warning_for_each_partition() -> None:
    losses = judged(
        offsets(t={0: 3, 1: 3}), offsets(t={0: 9, 1: 9}), MemoryClusterView({("t", 0): (5, 9), ("t", 1): (5, 9)})
    ).losses
    warnings = settle(losses, fail_on_data_loss=False)
    assert [warning.split()[0] for warning in warnings] == ["t-0", "t-1"]
    assert settle([], fail_on_data_loss=True) == []
