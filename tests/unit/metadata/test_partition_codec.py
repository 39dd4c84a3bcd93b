"""The hand-written codecs against the general one: the same records, the same bytes, the same errors."""

from __future__ import annotations

from typing import Any
from unittest import mock

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from strandline.ids import Uuid
from strandline.metadata import framing, partition_codec
from strandline.metadata import records as r
from strandline.wire.errors import MalformedRequest
from tests.unit.metadata.test_records import values

CLASSES = [
    (cls, version) for cls in (r.TopicRecord, r.PartitionRecord, r.PartitionChangeRecord) for version in cls.VERSIONS
]
TOPIC_ID = Uuid(b"t" * 16)
LONG = tuple(range(200))

any_record = st.sampled_from(CLASSES).flatmap(lambda pair: st.tuples(values(*pair), st.just(pair[1])))


def general(work: Any, *arguments: Any) -> Any:
    """The same without the hand-written codecs."""
    with (
        mock.patch.object(partition_codec, "decode", return_value=None),
        mock.patch.object(partition_codec, "encode", return_value=None),
    ):
        return result(work, *arguments)


def result(work: Any, *arguments: Any) -> Any:
    try:
        return work(*arguments)
    except MalformedRequest as error:
        return type(error), str(error)


def partition(**fields: Any) -> r.PartitionRecord:
    given: dict[str, Any] = {"partition_id": 3, "topic_id": TOPIC_ID, "replicas": (1, 2), "isr": (2,)}
    return r.PartitionRecord(**{**given, **fields})


@given(any_record)
@settings(max_examples=80, deadline=None)
@example((partition(replicas=LONG, isr=LONG[:126], adding_replicas=LONG[:127]), 2))
@example((partition(replicas=LONG[:126], isr=LONG[:127], directories=(TOPIC_ID,) * 130), 1))
@example((r.TopicRecord(name="n" * 126, topic_id=TOPIC_ID), 0))
@example((r.TopicRecord(name="n" * 127, topic_id=TOPIC_ID), 0))
@example((r.PartitionChangeRecord(partition_id=0, topic_id=TOPIC_ID, isr=LONG, directories=(TOPIC_ID,) * 8), 2))
def test_the_same_bytes_and_the_same_records(pair: tuple[r.MetadataRecord, int]) -> None:
    record, version = pair
    encoded = framing.encode(record, version)
    assert encoded == general(framing.encode, record, version)
    decoded = framing.decode(encoded)
    assert decoded == general(framing.decode, encoded)
    assert type(decoded[0]) is type(record)


@given(any_record, st.data())
@settings(max_examples=120, deadline=None)
def test_the_same_verdict_on_damaged_bytes(pair: tuple[r.MetadataRecord, int], data: st.DataObject) -> None:
    encoded = bytearray(framing.encode(*pair))
    for _ in range(data.draw(st.integers(1, 3))):
        if encoded:
            at = data.draw(st.integers(0, len(encoded) - 1))
            match data.draw(st.sampled_from(["cut", "change", "insert"])):
                case "cut":
                    del encoded[at : data.draw(st.integers(at, len(encoded)))]
                case "change":
                    encoded[at] = data.draw(st.sampled_from([0, 1, 2, 5, 8, 127, 128, 255]))
                case "insert":
                    encoded[at:at] = data.draw(st.binary(max_size=5))
    value = bytes(encoded)
    assert result(framing.decode, value) == general(framing.decode, value)


ONES = Uuid(b"\x01" * 16)
BARE = b"\x01\x05\x02" + bytes(4) + TOPIC_ID
"""A partition change up to its tagged fields."""
CRAFTED = {
    "replicas are null, and the bytes before them would do": b"\x01\x03\x00" + bytes(4) + ONES + bytes(13),
    "a size of two bytes that would do as one": framing.encode(partition(), 0)[:23] + b"\x81" + bytes(512) + b"\1\1\1" + bytes(13),
    "a byte after a partition": framing.encode(partition(), 2) + b"\0",
    "a byte after a topic": framing.encode(r.TopicRecord(name="t", topic_id=TOPIC_ID), 0) + b"\0",
    "a byte after a change": BARE + b"\0\0",
    "tags in the wrong order": BARE + b"\x02" + b"\x01\x04\0\0\0\1" + b"\x00\x05\x02\0\0\0\1",
    "the same tag twice": BARE + b"\x02" + b"\x01\x04\0\0\0\1" + b"\x01\x04\0\0\0\2",
    "a null array": BARE + b"\x01" + b"\x00\x01\x00",
    "an array that is shorter than its field": BARE + b"\x01" + b"\x00\x06\x02\0\0\0\1\0",
    "a leader of five bytes": BARE + b"\x01" + b"\x01\x05\0\0\0\1\0",
    "a recovery state of two bytes": BARE + b"\x01" + b"\x05\x02\0\0",
    "a tag that is not known yet": BARE + b"\x01" + b"\x09\x01\x00",
    "a tag of two bytes": BARE + b"\x01" + b"\x81\x00\x01\x00",
    "more tags than one byte can count": BARE + b"\x81\x00",
    "tags that version 1 does not have": b"\x01\x05\x01" + BARE[3:] + b"\x01" + b"\x06\x05\x02\0\0\0\1",
    "tags that version 0 does not have": b"\x01\x05\x00" + BARE[3:] + b"\x01" + b"\x08\x01\x01",
    "a name of no length": b"\x01\x02\x00\x00" + TOPIC_ID + b"\0",
    "a name that is not UTF-8": b"\x01\x02\x00\x02\xff" + TOPIC_ID + b"\0",
    "a topic with a tag": b"\x01\x02\x00\x02t" + TOPIC_ID + b"\x01\x00\x00",
}  # fmt: skip


@pytest.mark.parametrize("value", CRAFTED.values(), ids=CRAFTED)
def test_the_same_verdict_on_bytes_that_are_nearly_ordinary(value: bytes) -> None:
    assert partition_codec.decode(value) is None
    assert result(framing.decode, value) == general(framing.decode, value)


@pytest.mark.parametrize(
    ("record", "version"),
    [
        (partition(), 0),
        (partition(directories=(TOPIC_ID, TOPIC_ID)), 1),
        (partition(directories=(TOPIC_ID, TOPIC_ID), removing_replicas=(2,)), 2),
        (r.TopicRecord(name="t", topic_id=TOPIC_ID), 0),
        (r.PartitionChangeRecord(partition_id=1, topic_id=TOPIC_ID, isr=(1,), leader=-1, leader_recovery_state=0), 0),
        (r.PartitionChangeRecord(partition_id=1, topic_id=TOPIC_ID, replicas=(1, 2), directories=(TOPIC_ID,) * 2), 1),
        (
            r.PartitionChangeRecord(
                partition_id=1, topic_id=TOPIC_ID, eligible_leader_replicas=(1,), last_known_elr=()
            ),
            2,
        ),
    ],
)
def test_the_ordinary_needs_no_general_codec(record: r.MetadataRecord, version: int) -> None:
    encoded = framing.encode(record, version)
    assert partition_codec.decode(encoded) == (record, version)
    if isinstance(record, r.PartitionRecord):
        assert partition_codec.encode(record, version) == encoded


def test_equal_arrays_are_one_tuple() -> None:
    first, second = (
        partition_codec.decode(framing.encode(partition(partition_id=each, directories=(TOPIC_ID,) * 2), 2))
        for each in (0, 1)
    )
    assert first is not None
    assert second is not None
    assert first[0].replicas is second[0].replicas  # type: ignore[attr-defined]
    assert first[0].directories is second[0].directories  # type: ignore[attr-defined]


def test_what_is_decoded_is_frozen() -> None:
    decoded, _ = framing.decode(framing.encode(partition(), 2))
    with pytest.raises(AttributeError):
        decoded.leader = 5  # type: ignore[attr-defined]
