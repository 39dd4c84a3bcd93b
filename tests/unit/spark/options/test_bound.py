"""Where a read starts or ends, in words."""

from __future__ import annotations

import pytest

from strandline.spark.errors import OptionError
from strandline.spark.options.bound import (
    AtGroup,
    AtOffsets,
    AtTimestamp,
    AtTimestamps,
    Earliest,
    Latest,
    check_order,
    end_bound,
    start_bound,
)

OFFSETS = '{"t":{"0":5}}'


def test_defaults() -> None:
    assert start_bound({}, streaming=True) == Latest()
    assert start_bound({}, streaming=False) == Earliest()
    assert end_bound({}) == Latest()


def test_words_in_any_case() -> None:
    assert start_bound({"startingOffsets": " Earliest "}, streaming=True) == Earliest()
    assert end_bound({"endingOffsets": "LATEST"}) == Latest()
    assert start_bound({"startingOffsets": "group", "groupId": "g"}, streaming=False) == AtGroup("g")


def test_the_first_of_timestamp_timestamps_and_offsets_decides() -> None:
    options = {"startingOffsets": "latest", "startingOffsetsByTimestamp": OFFSETS, "startingTimestamp": "7"}
    assert start_bound(options, streaming=False) == AtTimestamp(7)
    del options["startingTimestamp"]
    assert start_bound(options, streaming=False) == AtTimestamps({("t", 0): 5})
    assert end_bound({"endingOffsets": OFFSETS}) == AtOffsets({("t", 0): 5})


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"startingOffsets": "latest"}, "'startingOffsets' of a batch query is not 'latest'"),
        ({"startingOffsets": '{"t":{"0":5,"1":-1}}'}, "'startingOffsets': t-1 in a batch query is not latest"),
        ({"startingOffsets": "group"}, "say which group with the option 'groupId'"),
        ({"startingOffsets": "first"}, "'startingOffsets' is earliest, latest, group or JSON"),
        ({"startingOffsets": "5"}, "'startingOffsets' is earliest, latest, group or JSON"),
        ({"startingTimestamp": "-1"}, "'startingTimestamp' is at least 0"),
        ({"startingTimestamp": "2026-01-01"}, "'startingTimestamp' is a whole number"),
    ],
)
def test_starts_of_a_batch_that_are_refused(options: dict[str, str], says: str) -> None:
    with pytest.raises(OptionError, match=says):
        start_bound(options, streaming=False)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"endingOffsets": "earliest"}, "'endingOffsets' is not 'earliest'"),
        ({"endingOffsets": '{"t":{"0":-2}}'}, "'endingOffsets': t-0 in a batch query is not earliest"),
        ({"endingOffsets": "group", "groupId": "g"}, "'endingOffsets' is latest or JSON"),
    ],
)
def test_ends_that_are_refused(options: dict[str, str], says: str) -> None:
    with pytest.raises(OptionError, match=says):
        end_bound(options)


def test_a_stream_may_start_at_latest_partitions() -> None:
    assert start_bound({"startingOffsets": '{"t":{"0":-1}}'}, streaming=True) == AtOffsets({("t", 0): -1})


def test_what_is_wrong_between_the_two_without_looking_at_the_log() -> None:
    def at(**offsets: int) -> dict[tuple[str, int], int]:
        return {(topic, 0): offset for topic, offset in offsets.items()}

    with pytest.raises(OptionError, match=r"'startingTimestamp' \(9\) is after 'endingTimestamp' \(5\)"):
        check_order(AtTimestamp(9), AtTimestamp(5))
    with pytest.raises(OptionError, match=r"t-0: option 'startingOffsets' \(9\) is after 'endingOffsets' \(5\)"):
        check_order(AtOffsets(at(t=9)), AtOffsets(at(t=5)))
    with pytest.raises(OptionError, match="u-0 is in option 'endingOffsets' and not in 'startingOffsets'"):
        check_order(AtOffsets(at(t=1)), AtOffsets(at(t=5, u=5)))
    with pytest.raises(OptionError, match="u-0 is in option 'startingOffsetsByTimestamp' and not in"):
        check_order(AtTimestamps(at(t=1, u=1)), AtTimestamps(at(t=5)))
    check_order(AtOffsets(at(t=9)), AtOffsets(at(t=-1)))
    check_order(AtOffsets(at(t=-2)), AtOffsets(at(t=0)))
    check_order(Earliest(), AtOffsets(at(t=0)))
