"""Where a query starts and ends."""

# mypy: disable-error-code="arg-type"

from __future__ import annotations

import json
import re

import pytest

from strandline.ids import TopicPartition
from strandline.spark.bounds import batch_bounds, carried_on, initial_offsets, required, selected
from strandline.spark.errors import OptionError, TopicError
from strandline.spark.options import ReadOptions, read_options
from tests.unit.spark.memory_cluster_view import BROKER, MemoryClusterView, offsets, options, topic_id


def two(**more: dict[TopicPartition, list[int]]) -> MemoryClusterView:
    """Partition 0 has offsets 10-19, of the times 100-109; partition 1 has 0-4, of the times 200-204."""
    times = {("t", 0): list(range(100, 110)), ("t", 1): list(range(200, 205))}
    return MemoryClusterView({("t", 0): (10, 20), ("t", 1): (0, 5)}, timestamps=times | more.get("timestamps", {}))


def started(view: MemoryClusterView, streaming: bool = True, **given: str) -> dict[int, int]:
    return {p: offset for (_, p), offset in initial_offsets(options(streaming, **given), view).offsets.items()}


def batch(view: MemoryClusterView, **given: str) -> tuple[dict[int, int], dict[int, int]]:
    start, end = batch_bounds(options(**given), view)
    return {p: o for (_, p), o in start.offsets.items()}, {p: o for (_, p), o in end.offsets.items()}


def selecting(**given: str) -> ReadOptions:
    return read_options(BROKER | given, streaming=True)


def test_a_stream_starts_at_latest_and_knows_its_topics_id() -> None:
    assert initial_offsets(options(streaming=True), two()) == offsets(t={0: 20, 1: 5})


def test_a_batch_goes_from_earliest_to_latest() -> None:
    assert batch(two()) == ({0: 10, 1: 0}, {0: 20, 1: 5})


def test_offsets_by_partition_with_the_two_special_ones() -> None:
    assert started(two(), startingOffsets='{"t":{"0":-2,"1":-1}}') == {0: 10, 1: 5}
    assert batch(two(), startingOffsets='{"t":{"0":12,"1":-2}}', endingOffsets='{"t":{"0":13,"1":-1}}') == (
        {0: 12, 1: 0},
        {0: 13, 1: 5},
    )


def test_offsets_outside_of_the_log_are_taken_as_given() -> None:
    """They are judged with data_loss.py, for they may be tolerated."""
    assert started(two(), startingOffsets='{"t":{"0":3,"1":99}}') == {0: 3, 1: 99}
    assert batch(two(), startingOffsets='{"t":{"0":3,"1":99}}') == ({0: 3, 1: 99}, {0: 20, 1: 5})


def test_timestamps_are_looked_up_and_a_missing_end_is_latest() -> None:
    assert started(two(), startingTimestamp="105") == {0: 15, 1: 0}
    assert started(two(), startingOffsetsByTimestamp='{"t":{"0":101,"1":203}}') == {0: 11, 1: 3}
    assert batch(two(), startingTimestamp="101", endingTimestamp="203") == ({0: 11, 1: 0}, {0: 20, 1: 3})


def test_a_start_that_no_record_matches_is_refused_or_latest() -> None:
    with pytest.raises(OptionError, match=r"'startingTimestamp': t-0 has no record of 150 or later.*Strategy"):
        started(two(), startingTimestamp="150")
    with pytest.raises(OptionError, match="'startingOffsetsByTimestamp': t-1"):
        started(two(), startingOffsetsByTimestamp='{"t":{"0":101,"1":900}}')
    assert started(two(), startingTimestamp="150", startingOffsetsByTimestampStrategy="latest") == {0: 20, 1: 0}


def test_a_group_starts_where_it_committed_and_else_at_earliest() -> None:
    view = two()
    view.committed = {("g", ("t", 0)): 17, ("other", ("t", 1)): 3}
    assert started(view, startingOffsets="group", groupId="g") == {0: 17, 1: 0}
    assert batch(view, startingOffsets="group", groupId="g") == ({0: 17, 1: 0}, {0: 20, 1: 5})


def test_each_partition_must_be_given_and_no_other() -> None:
    for name in ("startingOffsets", "startingOffsetsByTimestamp"):
        with pytest.raises(OptionError, match=f"'{name}' lacks t-1; give each"):
            started(two(), **{name: '{"t":{"0":11}}'})
        with pytest.raises(OptionError, match=f"'{name}' has t-2, u-0, which the query does not read"):
            started(two(), **{name: '{"t":{"0":11,"1":2,"2":2},"u":{"0":1}}'})


def test_many_missing_partitions_are_told_briefly() -> None:
    view = MemoryClusterView({("t", p): (0, 1) for p in range(100)})
    with pytest.raises(OptionError, match=r"lacks t-1, t-2, t-3, t-4, t-5, t-6, t-7, t-8 and 91 more; give"):
        started(view, startingOffsets='{"t":{"0":1}}')


def test_a_batch_does_not_start_after_its_end() -> None:
    with pytest.raises(OptionError, match=re.escape("t-0 starts at offset 15 ('startingTimestamp'), after its end 12")):
        batch(two(), startingTimestamp="105", endingOffsets='{"t":{"0":12,"1":4}}')


def test_the_ends_of_the_log_are_looked_at_once() -> None:
    view = two()
    batch(view, startingTimestamp="150", startingOffsetsByTimestampStrategy="latest")
    assert view.asked == ["by_timestamp", "latest"]


def test_what_a_pattern_selects() -> None:
    view = MemoryClusterView(
        {("orders-eu", 0): (0, 1), ("orders-us", 0): (0, 1), ("my-orders", 0): (0, 1), ("x", 0): (0, 1)}
    )
    assert list(selected(selecting(subscribePattern="orders").selection, view)) == [
        "my-orders",
        "orders-eu",
        "orders-us",
    ]
    assert list(selected(selecting(subscribePattern="^orders-.s$").selection, view)) == ["orders-us"]
    with pytest.raises(TopicError, match="'subscribePattern': no topic matches 'none'"):
        required(selecting(subscribePattern="none").selection, view)


def test_what_is_assigned() -> None:
    view = MemoryClusterView({("t", 0): (0, 1), ("t", 1): (0, 1), ("u", 0): (0, 1)})
    assigned = selecting(assign='{"t":[1]}').selection
    assert {name: topic.partitions for name, topic in selected(assigned, view).items()} == {"t": frozenset({1})}
    with pytest.raises(TopicError, match="'assign': t-7, v-0 not there"):
        required(selecting(assign='{"t":[1,7],"v":[0]}').selection, view)
    assert set(selected(selecting(assign='{"t":[1,7],"v":[0]}').selection, view)) == {"t"}
    assert not selected(selecting(assign='{"t":[7]}').selection, view)


def test_a_topic_that_is_not_there_is_named() -> None:
    with pytest.raises(TopicError, match="'subscribe': there is no topic 'nope'; create it, or leave it out"):
        initial_offsets(selecting(subscribe="t,nope"), two())


def test_a_topic_that_goes_away_while_planning() -> None:
    class Leaving(MemoryClusterView):
        def latest(self, partitions: object) -> dict[TopicPartition, int]:
            return {}

    with pytest.raises(TopicError, match="t-0 went away while the query was planned"):
        initial_offsets(options(streaming=True), Leaving({("t", 0): (0, 1)}))


def test_a_stream_goes_on_and_takes_new_partitions_and_topics_from_earliest() -> None:
    view = MemoryClusterView({("t", 0): (0, 20), ("t", 1): (3, 5), ("u", 0): (0, 9)})
    known = offsets(t={0: 15})
    assert carried_on(known, view.topics(None), view) == offsets(t={0: 15, 1: 3}, u={0: 0})


def test_a_stream_leaves_out_what_vanished() -> None:
    view = MemoryClusterView({("t", 0): (0, 20)})
    assert carried_on(offsets(t={0: 15, 1: 4}, gone={0: 3}), view.topics(None), view) == offsets(t={0: 15})
    assert view.asked == []


def test_a_topic_created_anew_starts_at_earliest_under_its_new_id() -> None:
    view = MemoryClusterView({("t", 0): (2, 20)}, ids={"t": topic_id(9)})
    assert carried_on(offsets(t={0: 15}), view.topics(None), view) == offsets({"t": topic_id(9)}, t={0: 2})


def test_nothing_new_gives_the_same_json() -> None:
    view = two()
    known = initial_offsets(options(streaming=True), view)
    assert json.dumps(carried_on(known, view.topics(None), view).to_json()) == json.dumps(known.to_json())
