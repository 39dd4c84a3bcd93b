"""What a peer may send: each way of being malformed, and anything at all."""

# mypy: allow-incomplete-defs, allow-untyped-calls, allow-untyped-defs, disable-error-code="call-overload, misc"

from __future__ import annotations

import random
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strandline.wire import messages, primitives, schemas
from strandline.wire.codec import Codec
from strandline.wire.errors import MalformedRequest
from strandline.wire.message import Message
from strandline.wire.primitives import encode_unsigned_varint
from strandline.wire.structs import Field, Struct

from .samples import sample


def codec(*fields: Field, flexible: bool = True) -> Codec:
    defaults = {field.name: field.default for field in fields if field.default != ()}
    cls = type(Message)("Thing", (Message,), {"_fields": {field.name: field for field in fields}, **defaults})
    return Codec(Struct("Thing", flexible, fields, cls), 1)


def refused(codec: Codec, data: bytes, **limits: int) -> str:
    with pytest.raises(MalformedRequest) as caught:
        codec.decode(data, **limits)
    return str(caught.value)


NUMBER = Field("number", "int32", 0)
TEXT = Field("text", "string", "")
BLOB = Field("blob", "bytes", b"")
NUMBERS = Field("numbers", "int32", (), array=True)
TEXTS = Field("texts", "string", (), array=True)
IDS = Field("ids", "uuid", (), array=True)


@pytest.mark.parametrize("size", range(4))
def test_bytes_that_end_within_a_number(size):
    assert refused(codec(NUMBER), bytes(size)) == "Thing version 1, number..tagged fields: the bytes end here"


def test_bytes_that_end_before_the_tagged_fields():
    assert refused(codec(TEXT), b"\x01") == "Thing version 1, tagged fields: the bytes end here"


def test_a_size_beyond_the_bytes_left():
    assert refused(codec(TEXT), b"\x05abc") == "Thing version 1, text: a size of 4 where 3 bytes are left"
    assert refused(codec(BLOB), b"\x05abc") == "Thing version 1, blob: a size of 4 where 3 bytes are left"
    long = encode_unsigned_varint(32_769) + bytes(32_768)
    assert refused(codec(TEXT), long) == "Thing version 1, text: a string of 32768 bytes, more than 32767"
    assert (
        refused(codec(TEXT, flexible=False), b"\x7f\xffabc")
        == "Thing version 1, text: a size of 32767 where 3 bytes are left"
    )


def test_null_where_there_may_be_none():
    reason = "null, or a negative size, where the field may not be null"
    assert refused(codec(TEXT), b"\x00\x00") == f"Thing version 1, text: {reason}"
    assert refused(codec(NUMBERS), b"\x00\x00") == f"Thing version 1, numbers: {reason}"
    assert refused(codec(TEXT, flexible=False), b"\xff\xff") == f"Thing version 1, text: {reason}"
    assert refused(codec(BLOB, flexible=False), b"\xff\xff\xff\xff") == f"Thing version 1, blob: {reason}"
    assert refused(codec(NUMBERS, flexible=False), b"\x80\0\0\0") == f"Thing version 1, numbers: {reason}"


def test_text_that_is_not_utf8():
    assert refused(codec(TEXT), b"\x03\xc3\x28\x00") == "Thing version 1, text: not UTF-8"
    assert refused(codec(TEXTS), b"\x02\x02\xff\x00") == "Thing version 1, texts.element: not UTF-8"


def test_a_varint_of_six_bytes_or_of_more_than_32_bits():
    assert refused(codec(TEXT), b"\x80\x80\x80\x80\x80\x01").endswith("text: a varint is longer than 5 bytes")
    assert refused(codec(TEXT), b"\xff\xff\xff\xff\x7f").endswith("text: a varint does not fit into 32 bits")


def test_more_elements_than_the_bytes_left_can_hold():
    for field, size in ((NUMBERS, 4), (IDS, 16), (TEXTS, 1)):
        reason = f"5 elements, with {5 * size - 1} bytes and"
        assert reason in refused(codec(field), b"\x06" + bytes(5 * size - 1))
    assert "elements" in refused(codec(NUMBERS, flexible=False), b"\x7f\xff\xff\xff" + bytes(100))


def test_elements_count_by_their_smallest_size_nested_structs_included():
    inner = codec(NUMBER, TEXT, NUMBERS).struct
    things = Field("things", "struct", (), array=True, struct=inner)
    assert inner.size_min == 4 + 1 + 1 + 1
    assert "3 elements, with 20 bytes" in refused(codec(things), b"\x04" + bytes(20))


def test_more_objects_than_one_message_may_have():
    data = b"\xe9\x07" + b"\x01" * 1000 + b"\x00"
    assert codec(TEXTS).decode(data)[0].texts == [""] * 1000
    assert "1000 elements" in refused(codec(TEXTS), data, objects_max=1001)
    inner = codec(Field("a", "int8", 0), Field("b", "int8", 0), flexible=False).struct
    things = Field("things", "struct", (), array=True, struct=inner)
    data = b"\0\0\0\x0a" + bytes(20)
    assert len(codec(things, flexible=False).decode(data, objects_max=2 + 30)[0].things) == 10
    refused(codec(things, flexible=False), data, objects_max=2 + 29)


def test_nested_arrays_share_one_allowance():
    inner = codec(NUMBERS, flexible=False).struct
    things = Field("things", "struct", (), array=True, struct=inner)
    data = b"\0\0\0\x02" + (b"\0\0\0\x03" + bytes(12)) * 2
    codec(things, flexible=False).decode(data, objects_max=2 + 2 * 2 + 6)
    assert "things.numbers: 3 elements" in refused(codec(things, flexible=False), data, objects_max=2 + 2 * 2 + 5)


def test_unknown_tags_are_skipped_and_not_kept():
    tags = b"\x02" + b"\x05\x03abc" + b"\x80\x01\x00"
    message, end = codec(NUMBER).decode(b"\0\0\0\x07" + tags + b"more")
    assert (message.number, end) == (7, 4 + len(tags))
    assert vars(message) == {"number": 7}


def test_unknown_tags_beside_known_ones():
    known = Field("known", "int32", -1, tag=1)
    message, _ = codec(known).decode(b"\x03" + b"\x00\x01x" + b"\x01\x04\0\0\0\x09" + b"\x07\x00")
    assert message.known == 9
    assert codec(known).decode(b"\x01\x07\x00")[0].known == -1


@pytest.mark.parametrize("field", [NUMBER, Field("known", "int8", 0, tag=0)], ids=["no known tag", "a known tag"])
class TestTags:
    def prefix(self, field):
        return bytes(4) if field is NUMBER else b""

    def test_must_ascend(self, field):
        assert "tag 3 after tag 3" in refused(codec(field), self.prefix(field) + b"\x02\x03\x00\x03\x00")
        assert "tag 2 after tag 3" in refused(codec(field), self.prefix(field) + b"\x02\x03\x00\x02\x00")

    def test_must_fit(self, field):
        assert "a size of 9 where 1 bytes are left" in refused(codec(field), self.prefix(field) + b"\x01\x03\x09x")
        assert refused(codec(field), self.prefix(field) + b"\x02\x03\x00").endswith("the bytes end here")

    def test_are_counted(self, field):
        flood = b"".join(bytes((tag & 0x7F | 0x80, tag >> 7, 0)) for tag in range(1, 200))
        assert "199 tagged fields in one struct" in refused(codec(field), self.prefix(field) + b"\xc7\x01" + flood)
        assert "more than 128" in refused(codec(field), self.prefix(field) + b"\xff\xff\xff\x0f" + flood)

    def test_are_bounded_in_bytes(self, field):
        size = primitives.TAG_BYTES_MAX + 1
        data = self.prefix(field) + b"\x01\x07" + primitives.encode_unsigned_varint(size) + bytes(size)
        assert "unknown tagged field 7 of 1048577 bytes" in refused(codec(field), data)

    def test_of_many_structs_share_one_allowance(self, field):
        things = Field("things", "struct", (), array=True, struct=codec(field).struct)
        data = b"\x65" + (self.prefix(field) + b"\x01\x09\x00") * 100 + b"\x00"
        codec(things).decode(data)
        assert "more tagged fields than one message" in refused(codec(things), data, objects_max=1_000)


def test_a_known_tag_whose_size_is_not_its_value_s():
    known = Field("known", "int32", 0, tag=0)
    reason = "known: the tagged field's value and its stated size differ"
    assert reason in refused(codec(known), b"\x01\x00\x05\0\0\0\x01\x00")
    assert reason in refused(codec(known), b"\x01\x00\x03\0\0\0\x01")


def test_a_nullable_struct():
    inner = codec(NUMBER).struct
    maybe = codec(Field("thing", "struct", None, nullable=True, struct=inner))
    assert maybe.decode(b"\xff\x00")[0].thing is None
    message, _ = maybe.decode(b"\x01\0\0\0\x05\x00\x00")
    assert message.thing.number == 5
    assert maybe.encode(message) == b"\x01\0\0\0\x05\x00\x00"


def test_bytes_after_the_message_are_left_alone():
    assert codec(NUMBER, flexible=False).decode(b"\0\0\0\x01rest")[1] == 4


def test_a_huge_count_allocates_nothing():
    tracemalloc.start()
    refused(codec(NUMBERS), b"\xff\xff\xff\xff\x07" + bytes(1000))
    refused(codec(NUMBERS, flexible=False), b"\x7f\xff\xff\xff" + bytes(1000))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 20


FUZZED = [(key, version) for key in schemas.api_keys() for version in schemas.request(key).versions]


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(FUZZED), st.integers(0, 2**32), st.data())
def test_a_mutated_request_is_a_message_or_malformed(target, seed, data):
    family = messages.request_family(target[0])
    raw = bytearray(family.codec(target[1]).encode(sample(family.struct(target[1]), random.Random(seed))))
    for _ in range(data.draw(st.integers(1, 4))):
        if raw:
            raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.sampled_from((0, 1, 0x7F, 0x80, 0xFE, 0xFF)))
    raw = raw[: data.draw(st.integers(0, len(raw)))] if data.draw(st.booleans()) else raw
    try:
        messages.decode_request(*target, raw)
    except MalformedRequest as error:
        reason = str(error)
    else:
        return
    assert reason.startswith(f"{family.root.__name__} version {target[1]}")


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(FUZZED), st.binary(max_size=200))
def test_any_bytes_are_a_message_or_malformed(target, raw):
    try:
        messages.decode_request(*target, raw)
    except MalformedRequest:
        pass


def test_a_request_cut_anywhere_is_malformed():
    family = messages.request_family(19)
    for version in family.versions:
        message = sample(family.struct(version), random.Random(version))
        data = family.codec(version).encode(message)
        for size in range(len(data)):
            with pytest.raises(MalformedRequest):
                family.codec(version).decode(data[:size])
