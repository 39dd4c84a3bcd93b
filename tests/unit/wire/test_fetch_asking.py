"""Fetch as a follower asks it: the same bytes as the codec that is made from the schemas, in both directions."""

# mypy: allow-incomplete-defs, allow-untyped-calls, allow-untyped-defs

from __future__ import annotations

import random

import pytest

from strandline.ids import Uuid
from strandline.wire import fetch, messages
from strandline.wire.errors import MalformedRequest
from strandline.wire.fetch import (
    REPLICA_STATE_SINCE,
    TOPIC_ID_SINCE,
    FetchedPartition,
    FetchPartition,
    FetchRequest,
)
from strandline.wire.fetch_asking import RESPONSE_ENTRIES_MAX, VERSIONS, parse_response, write_request
from strandline.wire.primitives import encode_unsigned_varint as uvarint
from strandline.wire.primitives import tagged

from .samples import sample
from .test_fetch import ANSWERS

Request, Response = messages.request(1), messages.response(1)
UNKNOWN_TAGS = b"\x02" + tagged(70, b"seven") + tagged(300, b"")


def topics_of(version):
    return [Uuid(bytes(range(16))), Uuid(b"\xff" * 16)] if version >= TOPIC_ID_SINCE else ["t", "é" * 130]


def request_of(version, partitions, forgotten):
    first, second = topics_of(version)
    named = [(first, partitions), (second, partitions[:1])] if partitions else []
    return FetchRequest(
        5, 2**40, 500, 1, 10 << 20, 0, 77, 3, named, [(second, forgotten)] if forgotten else [], "", None
    )


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("count", [0, 1, 200])
@pytest.mark.parametrize("forgotten", [[], [0], list(range(300))], ids=len)
def test_a_request_has_the_bytes_that_the_schemas_codec_writes(version, count, forgotten):
    asked = request_of(version, [FetchPartition(i, 7, 2**33 + i, 6, i, 1 << 20) for i in range(count)], forgotten)
    field = "topic_id" if version >= TOPIC_ID_SINCE else "topic"
    message = Request(
        max_wait_ms=500,
        min_bytes=1,
        max_bytes=10 << 20,
        session_id=77,
        session_epoch=3,
        topics=[
            Request.FetchTopic(
                **{field: topic}, partitions=[Request.FetchPartition(**wanted._asdict()) for wanted in partitions]
            )
            for topic, partitions in asked.topics
        ],
        forgotten_topics_data=[
            Request.ForgottenTopic(**{field: topic}, partitions=indexes) for topic, indexes in asked.forgotten
        ],
    )
    if version >= REPLICA_STATE_SINCE:
        message.replica_state.replica_id, message.replica_state.replica_epoch = 5, 2**40
    else:
        message.replica_id = 5
    body = write_request(version, asked)
    assert body == messages.encode_request(1, version, message)
    read = fetch.parse(version, memoryview(body), 0)
    assert read == asked._replace(replica_epoch=2**40 if version >= REPLICA_STATE_SINCE else -1)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("answers", ANSWERS.values(), ids=ANSWERS)
def test_a_response_is_read_as_it_was_written(version, answers):
    topics = [(topic, answers) for topic in topics_of(version)]
    written = b"".join(fetch.write_response(version, topics, throttle_time_ms=7, error_code=71, session_id=9))
    read = parse_response(version, memoryview(b"header" + written + b"and more"), 6)
    assert read == (7, 71, 9, topics)
    assert parse_response(version, memoryview(b"".join(fetch.write_response(version, []))), 0) == (0, 0, 0, [])


@pytest.mark.parametrize("version", VERSIONS)
def test_records_are_views_into_the_frame(version):
    frame = bytearray(b"".join(fetch.write_response(version, [(topics_of(version)[0], ANSWERS["records"])])))
    [(_, [first, second])] = parse_response(version, memoryview(frame), 0).topics
    frame[:] = bytes(len(frame))
    assert bytes(first.records) == bytes(300)
    assert bytes(second.records) == bytes(1)


def response_of(version, seed):
    return sample(messages.response_family(1).struct(version), random.Random(f"{version} {seed}"))


def meant(version, m):
    def pair(one, other, default=(-1, -1)):
        return None if (one, other) == default else (one, other)

    return (
        m.throttle_time_ms,
        m.error_code,
        m.session_id,
        [
            (
                bytes(topic.topic_id) if version >= TOPIC_ID_SINCE else topic.topic,
                [
                    FetchedPartition(
                        p.partition_index,
                        p.error_code,
                        p.high_watermark,
                        p.last_stable_offset,
                        p.log_start_offset,
                        p.records or b"",
                        None
                        if p.aborted_transactions is None
                        else [(a.producer_id, a.first_offset) for a in p.aborted_transactions],
                        p.preferred_read_replica,
                        pair(p.diverging_epoch.epoch, p.diverging_epoch.end_offset),
                        pair(p.current_leader.leader_id, p.current_leader.leader_epoch),
                        pair(p.snapshot_id.end_offset, p.snapshot_id.epoch),
                    )
                    for p in topic.partitions
                ],
            )
            for topic in m.responses
        ],
    )


@pytest.mark.parametrize("version", VERSIONS)
def test_any_response_is_read_as_the_schemas_codec_reads_it(version):
    for seed in range(50):
        message = response_of(version, seed)
        body = messages.encode_response(1, version, message)
        assert parse_response(version, memoryview(body), 0) == meant(version, message)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_response_cut_at_any_byte_is_malformed(version):
    body = b"".join(fetch.write_response(version, [(topics_of(version)[0], ANSWERS["every tag"] + ANSWERS["aborted"])]))
    for size in range(len(body)):
        with pytest.raises(MalformedRequest):
            parse_response(version, memoryview(body[:size]), 0)


@pytest.mark.parametrize("version", VERSIONS)
def test_mangled_responses_are_read_or_refused_and_nothing_else(version):
    chance = random.Random(version)
    refused = agreed = 0
    for seed in range(400):
        body = bytearray(messages.encode_response(1, version, response_of(version, seed)))
        for _ in range(chance.choice((1, 1, 2))):
            body[chance.randrange(len(body))] = chance.choice((0, 1, 2, 127, 128, 255, chance.randrange(256)))
        try:
            read = parse_response(version, memoryview(body), 0)
        except MalformedRequest:
            refused += 1
            continue
        try:
            expected = meant(version, messages.decode_response(1, version, bytes(body)))
        except MalformedRequest:
            continue  # what is wrong stands in a field that a follower passes over
        agreed += 1
        assert [(t, [p[:8] for p in answers]) for t, answers in read.topics] == [
            (t, [p[:8] for p in answers]) for t, answers in expected[3]
        ]
    assert refused > 20
    assert agreed > 20


@pytest.mark.parametrize("version", VERSIONS)
def test_unknown_tagged_fields_are_skipped_wherever_they_stand(version):
    answers = [FetchedPartition(0, 0, 5, 5, 0, b"r", current_leader=(5, 6))]
    plain = b"".join(fetch.write_response(version, [(topics_of(version)[0], answers)]))
    expected = parse_response(version, memoryview(plain), 0)
    assert plain.endswith(b"\x01\x01\x09" + bytes((0, 0, 0, 5, 0, 0, 0, 6, 0)) + b"\0\0")
    for at in (2, 1):
        end = len(plain) - at
        body = plain[:end] + UNKNOWN_TAGS + plain[end + 1 :]
        assert parse_response(version, memoryview(body), 0) == expected
    # Beside the ones that are known.
    at = len(plain) - 2 - 12
    assert plain[at] == 1
    body = plain[:at] + b"\x03" + plain[at + 1 : -2] + UNKNOWN_TAGS[1:] + b"\0\0"
    assert parse_response(version, memoryview(body), 0) == expected


@pytest.mark.parametrize("of", ["topics", "partitions"])
def test_a_flood_of_entries_is_refused_before_it_is_built(of):
    topic = bytes(16)
    number = 2 * RESPONSE_ENTRIES_MAX
    if of == "topics":
        body = uvarint(number + 1) + (topic + b"\x01\0") * number
    else:
        body = uvarint(2) + topic + uvarint(number + 1) + bytes(40) * number
    with pytest.raises(MalformedRequest, match=f"more than {RESPONSE_ENTRIES_MAX}"):
        parse_response(17, memoryview(bytes(10) + body + bytes(100)), 0)


@pytest.mark.parametrize(
    "tags",
    [
        b"\x02" + tagged(1, bytes(9)) + tagged(1, bytes(9)),
        uvarint(1_000_000),
        b"\x01\x05\xff\xff\xff\xff\x0f",
        b"\x01" + tagged(0, bytes(12)),
        b"\x01" + tagged(0, bytes(14)),
    ],
    ids=["twice", "flood", "longer than the frame", "too short", "too long"],
)
def test_tagged_fields_that_break_the_rules_are_malformed(tags):
    plain = b"".join(fetch.write_response(17, [(bytes(16), [FetchedPartition(0, 0, 5, 5, 0)])]))
    with pytest.raises(MalformedRequest):
        parse_response(17, memoryview(plain[:-3] + tags + b"\0\0"), 0)
