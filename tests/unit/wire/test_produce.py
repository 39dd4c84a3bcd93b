"""Produce, read and written by hand: the same as the codec that is made from the schemas, in every version."""

# mypy: allow-incomplete-defs, allow-untyped-calls, allow-untyped-defs, disable-error-code="arg-type, union-attr"

from __future__ import annotations

import random
import time
import tracemalloc

import pytest

from strandline.ids import Uuid
from strandline.wire import messages, produce
from strandline.wire.errors import MalformedRequest
from strandline.wire.primitives import encode_unsigned_varint as uvarint
from strandline.wire.primitives import tagged
from strandline.wire.produce import ENTRIES_MAX, FLEXIBLE_SINCE, TOPIC_ID_SINCE, VERSIONS, PartitionResponse

from .samples import sample

Request, Response = messages.request(0), messages.response(0)
FLEXIBLE = range(FLEXIBLE_SINCE, VERSIONS[-1] + 1)
UNKNOWN_TAGS = b"\x02" + tagged(7, b"seven") + tagged(300, b"")


def request_of(version, seed):
    return sample(messages.request_family(0).struct(version), random.Random(f"{version} {seed}"))


def small(version, **fields):
    """One topic with one partition; the last byte of a flexible one is its empty section of tagged fields."""
    partition = Request.PartitionProduceData(index=3, records=b"batch")
    topic = {"topic_id": Uuid(bytes(range(16)))} if version >= TOPIC_ID_SINCE else {"name": "t"}
    data = Request.TopicProduceData(**topic, partition_data=[partition])
    return messages.encode_request(0, version, Request(acks=-1, timeout_ms=1500, topic_data=[data], **fields))


def told(version, parsed):
    """What was read, in the words of the schema."""
    return (
        parsed.transactional_id,
        parsed.acks,
        parsed.timeout_ms,
        [(topic, [(i, None if r is None else bytes(r)) for i, r in partitions]) for topic, partitions in parsed.topics],
    )


def meant(version, message):
    def name(topic):
        return bytes(topic.topic_id) if version >= TOPIC_ID_SINCE else topic.name

    return (
        message.transactional_id,
        message.acks,
        message.timeout_ms,
        [(name(topic), [(p.index, p.records) for p in topic.partition_data]) for topic in message.topic_data],
    )


@pytest.mark.parametrize("version", VERSIONS)
def test_a_request_is_read_as_the_schemas_codec_reads_it(version):
    for seed in range(30):
        message = request_of(version, seed)
        body = messages.encode_request(0, version, message)
        parsed = produce.parse(version, memoryview(b"header" + body + b"and more"), 6)
        assert told(version, parsed) == meant(version, message)


@pytest.mark.parametrize("version", VERSIONS)
def test_records_are_views_into_the_frame(version):
    frame = memoryview(bytearray(small(version)))
    ((_, [(_, records)]),) = produce.parse(version, frame, 0).topics
    assert records.obj is frame.obj
    assert not records.readonly


@pytest.mark.parametrize("version", VERSIONS)
def test_a_request_cut_at_any_byte_is_malformed(version):
    for body in (small(version, transactional_id="id"), messages.encode_request(0, version, request_of(version, 1))):
        for size in range(len(body)):
            with pytest.raises(MalformedRequest):
                produce.parse(version, memoryview(body[:size]), 0)


@pytest.mark.parametrize("version", VERSIONS)
def test_mangled_requests_are_judged_as_the_schemas_codec_judges_them(version):
    chance = random.Random(version)
    refused = 0
    for seed in range(400):
        body = bytearray(messages.encode_request(0, version, request_of(version, seed)))
        for _ in range(chance.choice((1, 1, 2))):
            body[chance.randrange(len(body))] = chance.choice((0, 1, 2, 127, 128, 255, chance.randrange(256)))
        try:
            expected = meant(version, messages.decode_request(0, version, bytes(body)))
        except MalformedRequest:
            refused += 1
            with pytest.raises(MalformedRequest):
                produce.parse(version, memoryview(body), 0)
        else:
            assert told(version, produce.parse(version, memoryview(body), 0)) == expected
    assert refused > 20


@pytest.mark.parametrize("version", VERSIONS)
def test_the_short_way_for_one_batch_reads_what_the_long_way_reads(version):
    chance = random.Random(version)
    taken = 0
    for _ in range(2000):
        body = bytearray(small(version))
        for _ in range(chance.choice((0, 1, 1, 2))):
            body[chance.randrange(len(body))] = chance.choice((0, 1, 2, 127, 128, chance.randrange(256)))
        one = produce.parse_one(version, memoryview(body), 0)
        if one is None:
            continue
        acks, timeout_ms, topic, index, records = one
        # A name of another length than stated holds a byte below a space: no topic has such a name.
        if isinstance(topic, bytes) or topic.isprintable():
            taken += 1
            expected = (None, acks, timeout_ms, [(topic, [(index, bytes(records))])])
            assert told(version, produce.parse(version, memoryview(body), 0)) == expected
    assert (taken > 500) == (version >= FLEXIBLE_SINCE)


@pytest.mark.parametrize("version", FLEXIBLE)
def test_the_reply_for_one_batch_is_the_same_as_for_many(version):
    topic = Uuid(bytes(range(16))) if version >= TOPIC_ID_SINCE else "é" * 100
    answer = PartitionResponse(7, 0, 2**40, 1_700_000_000_000, 3)
    assert produce.write_one(topic, 7, 2**40, 1_700_000_000_000, 3) == produce.write_response(
        version, [(topic, [answer])]
    )


@pytest.mark.parametrize("version", FLEXIBLE)
def test_unknown_tagged_fields_are_skipped_wherever_they_stand(version):
    plain = small(version)
    expected = told(version, produce.parse(version, memoryview(plain), 0))
    assert plain.endswith(b"batch\0\0\0")
    for at in range(1, 4):
        end = len(plain) - at
        body = plain[:end] + UNKNOWN_TAGS + plain[end + 1 :]
        assert told(version, produce.parse(version, memoryview(body), 0)) == expected


@pytest.mark.parametrize(
    "tags",
    [
        b"\x02" + tagged(5, b"") + tagged(5, b""),
        b"\x02" + tagged(5, b"") + tagged(4, b""),
        uvarint(1_000_000),
        b"\x01\x05\xff\xff\xff\xff\x0f",
        b"\xff\xff\xff\xff\xff\xff",
        b"\x01\x05" + uvarint(2 << 20) + bytes(2 << 20),
    ],
    ids=["twice", "descending", "flood", "longer than the frame", "endless varint", "megabytes"],
)
def test_tagged_fields_that_break_the_rules_are_malformed(tags):
    with pytest.raises(MalformedRequest):
        produce.parse(12, memoryview(small(12)[:-1] + tags), 0)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("of", ["topics", "partitions"])
def test_a_flood_of_entries_is_refused_before_it_is_built(version, of):
    flexible = version >= FLEXIBLE_SINCE

    def count(number):
        return uvarint(number + 1) if flexible else number.to_bytes(4, "big")

    name = bytes(16) if version >= TOPIC_ID_SINCE else b"\x02t" if flexible else b"\0\x01t"
    tag = b"\0" if flexible else b""
    number = 2 * ENTRIES_MAX
    partition = bytes(4) + (b"\0" if flexible else b"\xff\xff\xff\xff") + tag
    if of == "topics":
        body = count(number) + (name + count(0) + tag) * number
    else:
        # Spread over topics, so that no single count is out of bounds.
        body = count(4) + (name + count(number // 4) + partition * (number // 4) + tag) * 4
    frame = memoryview((b"\0" if flexible else b"\xff\xff") + b"\xff\xff" + bytes(4) + body + tag)
    tracemalloc.start()
    started = time.process_time()
    with pytest.raises(MalformedRequest, match="array"):
        produce.parse(version, frame, 0)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 48 << 20
    assert time.process_time() - started < 5


@pytest.mark.parametrize("version", [3, 9, 13])
def test_negative_counts_and_names_are_malformed(version):
    head = (b"\0" if version >= FLEXIBLE_SINCE else b"\xff\xff") + b"\xff\xff" + bytes(4)
    null = b"\0" if version >= FLEXIBLE_SINCE else b"\xff\xff\xff\xff"
    one = b"\x02" if version >= FLEXIBLE_SINCE else b"\0\0\0\x01"
    name = bytes(16) if version >= TOPIC_ID_SINCE else b"\x02t" if version >= FLEXIBLE_SINCE else b"\0\x01t"
    bodies = [head + null + bytes(8), head + one + name + null + bytes(8)]
    if version < TOPIC_ID_SINCE:
        bodies.append(head + one + (b"\0" if version >= FLEXIBLE_SINCE else b"\xff\xff") + one + bytes(12))
    for body in bodies:
        with pytest.raises(MalformedRequest):
            produce.parse(version, memoryview(body), 0)


def test_names_that_are_not_utf_8_are_malformed():
    for version in (3, 9):
        body = small(version).replace(b"t", b"\xff", 1)
        with pytest.raises(MalformedRequest):
            produce.parse(version, memoryview(body), 0)


@pytest.mark.parametrize("version", FLEXIBLE)
@pytest.mark.parametrize("of", ["transactional_id", "name"])
def test_a_text_that_is_longer_than_kafka_takes_is_malformed(version, of):
    """SEC-L2. The schemas' codec takes none either: else an answer could name what no client can read."""
    if of == "name" and version >= TOPIC_ID_SINCE:
        return
    Request = messages.request(0)
    for size, is_taken in ((32_767, True), (32_768, False)):
        text = "x" * size
        topic = Request.TopicProduceData(name=text if of == "name" else "t", partition_data=[])
        fields = {"transactional_id": text} if of == "transactional_id" else {}
        request = Request(acks=-1, timeout_ms=1, topic_data=[topic], **fields)
        body = messages.encode_request(0, version, request)
        if is_taken:
            assert text in (produce.parse(version, memoryview(body), 0).transactional_id, topic.name)
        else:
            with pytest.raises(MalformedRequest, match="a string of 32768 bytes, more than 32767"):
                produce.parse(version, memoryview(body), 0)
            with pytest.raises(MalformedRequest):
                messages.decode_request(0, version, body)


ANSWERS = {
    "success": [PartitionResponse(0, 0, 17), PartitionResponse(200, 0, 2**40, 1_700_000_000_000, 5)],
    "error": [PartitionResponse(1, 2, -1)],
    "error with a message": [PartitionResponse(1, 87, -1, -1, -1, "é" * 100), PartitionResponse(2, 87, -1, -1, -1, "")],
    "not the leader": [PartitionResponse(1, 6, -1, leader_id=3, leader_epoch=9)],
    "mixed": [PartitionResponse(0, 0, 1), PartitionResponse(1, 6, -1, leader_id=0, leader_epoch=0)],
    "many": [PartitionResponse(i, i % 2, i) for i in range(300)],
    "none": [],
}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("answers", ANSWERS.values(), ids=ANSWERS)
def test_a_response_has_the_bytes_that_the_schemas_codec_writes(version, answers):
    topics = [Uuid(bytes(range(16))), Uuid(b"\xff" * 16)] if version >= TOPIC_ID_SINCE else ["t", "é" * 130]

    def expected(p):
        response = Response.PartitionProduceResponse(
            index=p.partition, error_code=p.error_code, base_offset=p.base_offset
        )
        response.log_append_time_ms, response.log_start_offset = p.log_append_time_ms, p.log_start_offset
        response.error_message = p.error_message
        if p.leader_id >= 0:
            response.current_leader.leader_id, response.current_leader.leader_epoch = p.leader_id, p.leader_epoch
        return response

    field = "topic_id" if version >= TOPIC_ID_SINCE else "name"
    message = Response(
        throttle_time_ms=77,
        responses=[
            Response.TopicProduceResponse(**{field: topic}, partition_responses=list(map(expected, answers)))
            for topic in topics
        ],
    )
    written = produce.write_response(version, [(topic, answers) for topic in topics], throttle_time_ms=77)
    assert written == messages.encode_response(0, version, message)
    assert produce.write_response(version, []) == messages.encode_response(0, version, Response())
