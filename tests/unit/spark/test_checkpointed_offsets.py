"""Offsets of a stream and their JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.ids import ZERO_UUID, Uuid
from strandline.spark.checkpointed_offsets import StreamOffset, StreamOffsets, read_offset
from strandline.spark.errors import SparkError
from tests.unit.spark.memory_cluster_view import offsets, topic_id

names = st.text("abc.-_19", min_size=1, max_size=8) | st.sampled_from(["id", "partitions", "0"])
streams = st.dictionaries(
    names,
    st.tuples(
        st.binary(min_size=16, max_size=16).map(Uuid),
        st.dictionaries(st.integers(0, 20), st.integers(0, 2**63 - 1), min_size=1, max_size=4),
    ),
    max_size=4,
)


@given(streams)
def test_json_brings_back_the_same_offsets(stream: dict[str, tuple[Uuid, dict[int, int]]]) -> None:
    made = StreamOffsets.of(
        {topic: id for topic, (id, _) in stream.items()},
        {(topic, partition): offset for topic, (_, at) in stream.items() for partition, offset in at.items()},
    )
    assert StreamOffsets.from_json(json.loads(json.dumps(made.to_json()))) == made


@given(streams, st.randoms())
def test_equal_offsets_have_equal_json_whatever_order_they_were_made_in(stream: Any, randomness: Any) -> None:
    pairs = [((topic, partition), offset) for topic, (_, at) in stream.items() for partition, offset in at.items()]
    shuffled = list(pairs)
    randomness.shuffle(shuffled)
    ids = {topic: id for topic, (id, _) in stream.items()}
    texts = {json.dumps(StreamOffsets(ids, dict(order)).to_json()) for order in (pairs, shuffled)}
    assert len(texts) == 1


def test_partitions_are_ordered_by_number_not_by_text() -> None:
    assert list(offsets(t={10: 1, 9: 2}).to_json()["t"]["partitions"]) == ["9", "10"]


def test_its_form() -> None:
    assert offsets(t={0: 5}).to_json() == {"t": {"id": str(topic_id(1)), "partitions": {"0": 5}}}


def test_a_checkpoint_of_sparks_own_connector_is_understood_and_matches_any_topic_id() -> None:
    taken_over = StreamOffsets.from_json({"t": {"1": 7, "0": 5}})
    assert taken_over.offsets == {("t", 0): 5, ("t", 1): 7}
    assert taken_over.topic_ids == {"t": ZERO_UUID}
    assert taken_over.is_same_topic("t", topic_id(4))


def test_a_topic_is_another_one_if_both_ids_are_known_and_differ() -> None:
    known = offsets(t={0: 5})
    assert known.is_same_topic("t", topic_id(1))
    assert not known.is_same_topic("t", topic_id(2))
    assert known.is_same_topic("t", ZERO_UUID)


@pytest.mark.parametrize(
    "value",
    [
        {"t": 5},
        {"t": {"0": "5"}},
        {"t": {"0": -1}},
        {"t": {"0": True}},
        {"t": {"x": 5}},
        {"t": {}},
        {"t": {"id": "short", "partitions": {"0": 5}}},
        {"t": {"partitions": {"0": 5}}},
        {"t": {"id": str(topic_id(1)), "partitions": [5]}},
    ],
)
def test_what_is_no_offset_is_refused_in_one_line(value: dict[str, Any]) -> None:
    with pytest.raises(SparkError, match="use a new checkpointLocation") as refused:
        StreamOffsets.from_json(value)
    assert "\n" not in str(refused.value)


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
