"""Offsets of a stream, to Spark and back."""

from __future__ import annotations

import json

import pytest

from strandline.ids import ZERO_UUID
from strandline.spark.errors import SparkError
from strandline.spark.offsets import StreamOffsets
from strandline.spark.stream_offset import StreamOffset, read_offset

ZERO, FIVE = (StreamOffsets.of({"t": ZERO_UUID}, {("t", 0): offset}) for offset in (0, 5))


@pytest.mark.parametrize("offset", [StreamOffset(FIVE), StreamOffset(FIVE, ZERO)], ids=["any", "first"])
def test_there_and_back(offset: StreamOffset) -> None:
    assert read_offset(json.loads(json.dumps(offset.to_json()))) == offset


def test_only_the_end_of_a_first_batch_says_where_it_started() -> None:
    assert StreamOffset(FIVE).to_json() == FIVE.to_json()
    assert set(StreamOffset(FIVE, ZERO).to_json()) == {"t", "(start of the first batch)"}


def test_what_is_no_offset_is_refused() -> None:
    with pytest.raises(SparkError, match="checkpoint"):
        read_offset({"logOffset": 3})
