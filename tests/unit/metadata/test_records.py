"""Metadata records in all their versions, and the frame around them."""

# mypy: allow-incomplete-defs, allow-untyped-defs, disable-error-code="attr-defined, misc"

from __future__ import annotations

import dataclasses
import typing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strandline.ids import Uuid
from strandline.metadata import framing, records
from strandline.metadata.framing import MalformedMetadataRecord
from strandline.wire.errors import MalformedRequest

TOPIC_ID = Uuid(bytes(range(16)))
EVERY_VERSION = [(cls, version) for _, cls in sorted(records.BY_KEY.items()) for version in cls.VERSIONS]

_VALUES = {
    "bool": st.booleans(),
    "int8": st.integers(-128, 127),
    "int16": st.integers(-(2**15), 2**15 - 1),
    "uint16": st.integers(0, 2**16 - 1),
    "int32": st.integers(-(2**31), 2**31 - 1),
    "int64": st.integers(-(2**63), 2**63 - 1),
    "float64": st.floats(allow_nan=False),
    "uuid": st.binary(min_size=16, max_size=16).map(Uuid),
    "string": st.text(st.characters(exclude_categories=["Cs"]), max_size=200),
    "bytes": st.binary(max_size=200),
}


def values(cls: type, version: int) -> st.SearchStrategy:
    hints = typing.get_type_hints(cls, include_extras=True)
    present = [field for field in dataclasses.fields(cls) if field.metadata.get("since", 0) <= version]
    return st.builds(cls, **{field.name: value(hints[field.name], version) for field in present})


def value(hint: typing.Any, version: int) -> st.SearchStrategy:
    args = typing.get_args(hint)
    if type(None) in args:
        return st.none() | value(args[0], version)
    if typing.get_origin(hint) is tuple:
        return st.lists(value(args[0], version), max_size=4).map(tuple)
    return _VALUES[args[1]] if args else values(hint, version)


@pytest.mark.parametrize(
    ("cls", "version"), EVERY_VERSION, ids=[f"{cls.__name__} {version}" for cls, version in EVERY_VERSION]
)
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_every_version_comes_back_as_it_was(cls, version, data):
    record = data.draw(values(cls, version))
    assert framing.decode(framing.encode(record, version)) == (record, version)


def test_bytes_of_records_as_kafka_writes_them():
    assert framing.encode(records.NoOpRecord(), 0) == b"\x01\x14\x00\x00"
    feature = records.FeatureLevelRecord(name="metadata.version", feature_level=30)
    assert framing.encode(feature, 0) == b"\x01\x0c\x00\x11metadata.version\x00\x1e\x00"
    change = records.PartitionChangeRecord(partition_id=1, topic_id=TOPIC_ID, isr=(2, 3), leader=2)
    assert framing.encode(change, 2) == (
        b"\x01\x05\x02"
        + b"\0\0\0\x01"
        + TOPIC_ID
        + b"\x02"
        + b"\x00\x09\x03\0\0\0\x02\0\0\0\x03"
        + b"\x01\x04\0\0\0\x02"
    )


def test_a_change_to_an_empty_isr_is_not_no_change():
    for isr in (None, ()):
        change = records.PartitionChangeRecord(partition_id=1, topic_id=TOPIC_ID, isr=isr)
        assert framing.decode(framing.encode(change, 2))[0].isr == isr


def test_tags_are_written_in_ascending_order():
    change = records.PartitionChangeRecord(
        partition_id=1, topic_id=TOPIC_ID, directories=(TOPIC_ID,), eligible_leader_replicas=(1,), last_known_elr=(2,)
    )
    body = framing.encode(change, 2)[3 + 20 :]
    assert body.startswith(b"\x03\x06\x05\x02\0\0\0\x01\x07\x05\x02\0\0\0\x02\x08\x11\x02")


def test_the_keys_are_kafkas():
    keys = {cls.__name__: key for key, cls in records.BY_KEY.items()}
    assert len(keys) == 26
    assert (keys["RegisterBrokerRecord"], keys["TopicRecord"], keys["PartitionRecord"], keys["NoOpRecord"]) == (
        0,
        2,
        3,
        20,
    )
    assert set(range(29)) - set(records.BY_KEY) == {6, 13, 16}


@pytest.mark.parametrize(
    ("cls", "versions"),
    [
        (records.PartitionRecord, {7: 0, 16: 0, 17: 1, 22: 1, 23: 2, 29: 2, 30: 2}),
        (records.PartitionChangeRecord, {7: 0, 17: 1, 23: 2, 30: 2}),
        (records.RegisterBrokerRecord, {7: 1, 8: 2, 17: 3, 29: 3, 30: 4}),
        (records.BrokerRegistrationChangeRecord, {7: 1, 17: 2, 29: 2, 30: 3}),
        (records.TopicRecord, {7: 0, 30: 0}),
    ],
)
def test_the_version_to_write_follows_from_the_metadata_version(cls, versions):
    assert {level: records.version_for(cls, level) for level in versions} == versions


def test_a_record_that_did_not_exist_yet_has_no_version():
    with pytest.raises(ValueError, match=r"ClearElrRecord does not exist at metadata\.version 22"):
        records.version_for(records.ClearElrRecord, 22)


def test_each_version_has_its_level():
    for cls in records.BY_KEY.values():
        assert len(cls.LEVELS) == len(cls.VERSIONS)
        assert list(cls.LEVELS) == sorted(cls.LEVELS)
        assert records.version_for(cls, records.METADATA_VERSION_4_3) == cls.VERSIONS[-1]


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"", "the bytes end within its frame"),
        (b"\x01\x14", "the bytes end within its frame"),
        (b"\x00\x14\x00\x00", "frame version 0, not 1"),
        (b"\x02\x14\x00\x00", "frame version 2, not 1"),
        (b"\x01\x06\x00\x00", "unknown key 6"),
        (b"\x01\x14\x01\x00", "NoOpRecord with unknown version 1"),
        (b"\x01\x14\x00\x00more", "NoOpRecord version 0: 4 bytes after its end"),
    ],
)
def test_a_value_that_is_no_record(value, reason):
    with pytest.raises(MalformedMetadataRecord, match=reason):
        framing.decode(value)


def test_a_body_that_is_malformed():
    with pytest.raises(MalformedRequest, match="TopicRecord version 0, name: a size of 15 where 1 bytes are left"):
        framing.decode(b"\x01\x02\x00\x10t")


def test_records_are_values():
    topic = records.TopicRecord(name="t", topic_id=TOPIC_ID)
    assert {topic: 1}[records.TopicRecord(name="t", topic_id=TOPIC_ID)] == 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        topic.name = "u"
