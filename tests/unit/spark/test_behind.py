"""How far behind a query is, from its progress."""

# mypy: allow-incomplete-defs, allow-untyped-calls, allow-untyped-defs

from __future__ import annotations

import json

from strandline.ids import ZERO_UUID
from strandline.spark import offsets_behind_latest
from strandline.spark.checkpointed_offsets import StreamOffset, StreamOffsets


def offset(first_start=None, **offsets: int) -> str:
    """p0=5 is partition 0 of topic t at offset 5."""
    read = StreamOffsets.of({"t": ZERO_UUID}, {("t", int(name[1:])): at for name, at in offsets.items()})
    return json.dumps(StreamOffset(read, first_start and read).to_json())


def progress(*sources):
    return {"sources": [{"endOffset": end, "latestOffset": latest} for end, latest in sources]}


def test_latest_less_what_was_read() -> None:
    behind = offsets_behind_latest(progress((offset(p0=5, p1=5), offset(p0=9, p1=5))))
    assert behind.by_partition == {("t", 0): 4, ("t", 1): 0}
    assert (behind.minimum, behind.maximum, behind.average, behind.total) == (0, 4, 2.0, 4)


def test_the_end_of_a_first_batch_is_understood() -> None:
    assert offsets_behind_latest(progress((offset(True, p0=5), offset(p0=9)))).total == 4


def test_a_partition_that_no_batch_has_reached_is_wholly_behind() -> None:
    assert offsets_behind_latest(progress((offset(p0=5), offset(p0=5, p1=3)))).by_partition["t", 1] == 3


def test_a_log_that_went_back_is_not_less_than_nothing() -> None:
    assert offsets_behind_latest(progress((offset(p0=5), offset(p0=2)))).total == 0


def test_json_objects_as_a_listener_gives_them() -> None:
    assert offsets_behind_latest(progress((json.loads(offset(p0=5)), json.loads(offset(p0=6))))).total == 1


def test_other_sources_and_no_progress_are_nothing() -> None:
    for nothing in (None, progress(("3", "7")), progress((None, offset(p0=1))), progress(("file", "log"))):
        behind = offsets_behind_latest(nothing)
        assert (behind.minimum, behind.maximum, behind.average, behind.total) == (0, 0, 0.0, 0)
