"""Fetch, read and written by hand: the same as the codec that is made from the schemas, in every version."""

# mypy: allow-incomplete-defs, allow-untyped-calls, allow-untyped-defs, disable-error-code="arg-type"

from __future__ import annotations

import random
import tracemalloc

import pytest

from strandline.ids import Uuid
from strandline.wire import fetch, messages
from strandline.wire.errors import MalformedRequest
from strandline.wire.fetch import (
    ENTRIES_MAX,
    FLEXIBLE_SINCE,
    REPLICA_STATE_SINCE,
    SESSION_SINCE,
    TOPIC_ID_SINCE,
    VERSIONS,
    FetchedPartition,
)
from strandline.wire.primitives import encode_unsigned_varint as uvarint
from strandline.wire.primitives import tagged

from .samples import sample

Request, Response = messages.request(1), messages.response(1)
FLEXIBLE = range(FLEXIBLE_SINCE, VERSIONS[-1] + 1)
UNKNOWN_TAGS = b"\x02" + tagged(70, b"seven") + tagged(300, b"")


def request_of(version, seed):
    return sample(messages.request_family(1).struct(version), random.Random(f"{version} {seed}"))


def small(version):
    """One topic with one partition, nothing forgotten, no rack."""
    topic = {"topic_id": Uuid(bytes(range(16)))} if version >= TOPIC_ID_SINCE else {"topic": "t"}
    partition = Request.FetchPartition(partition=1, fetch_offset=2, partition_max_bytes=3)
    return messages.encode_request(
        1, version, Request(topics=[Request.FetchTopic(**topic, partitions=[partition])], max_wait_ms=500, min_bytes=1)
    )


def told(parsed):
    return (
        *parsed[:8],
        [(topic, [tuple(p) for p in partitions]) for topic, partitions in parsed.topics],
        parsed.forgotten,
        parsed.rack_id,
        parsed.cluster_id,
    )


def meant(version, m):
    def name(topic):
        return bytes(topic.topic_id) if version >= TOPIC_ID_SINCE else topic.topic

    state = version >= REPLICA_STATE_SINCE
    return (
        m.replica_state.replica_id if state else m.replica_id,
        m.replica_state.replica_epoch if state else -1,
        m.max_wait_ms,
        m.min_bytes,
        m.max_bytes,
        m.isolation_level,
        m.session_id if version >= SESSION_SINCE else 0,
        m.session_epoch if version >= SESSION_SINCE else -1,
        [
            (
                name(topic),
                [
                    (
                        p.partition,
                        p.current_leader_epoch if version >= 9 else -1,
                        p.fetch_offset,
                        p.last_fetched_epoch if version >= 12 else -1,
                        p.log_start_offset if version >= 5 else -1,
                        p.partition_max_bytes,
                    )
                    for p in topic.partitions
                ],
            )
            for topic in m.topics
        ],
        [(name(topic), list(topic.partitions)) for topic in m.forgotten_topics_data]
        if version >= SESSION_SINCE
        else [],
        m.rack_id if version >= 11 else "",
        m.cluster_id if version >= 12 else None,
    )


@pytest.mark.parametrize("version", VERSIONS)
def test_a_request_is_read_as_the_schemas_codec_reads_it(version):
    for seed in range(30):
        message = request_of(version, seed)
        body = messages.encode_request(1, version, message)
        assert told(fetch.parse(version, memoryview(b"header" + body + b"and more"), 6)) == meant(version, message)


@pytest.mark.parametrize("version", FLEXIBLE)
@pytest.mark.parametrize("of", ["topic", "rack_id", "cluster_id"])
def test_a_text_that_is_longer_than_kafka_takes_is_malformed(version, of):
    if of == "topic" and version >= TOPIC_ID_SINCE:
        return
    for size, is_taken in ((32_767, True), (32_768, False)):
        text = "x" * size
        topics = [Request.FetchTopic(topic=text, partitions=[])] if of == "topic" else []
        fields = {} if of == "topic" else {of: text}
        body = messages.encode_request(1, version, Request(topics=topics, **fields))
        if is_taken:
            assert told(fetch.parse(version, memoryview(body), 0)) == meant(
                version, messages.decode_request(1, version, body)
            )
        else:
            with pytest.raises(MalformedRequest):
                messages.decode_request(1, version, body)
            with pytest.raises(MalformedRequest, match="a string of 32768 bytes, more than 32767"):
                fetch.parse(version, memoryview(body), 0)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_request_cut_at_any_byte_is_malformed(version):
    for body in (small(version), messages.encode_request(1, version, request_of(version, 1))):
        for size in range(len(body)):
            with pytest.raises(MalformedRequest):
                fetch.parse(version, memoryview(body[:size]), 0)


@pytest.mark.parametrize("version", VERSIONS)
def test_mangled_requests_are_judged_as_the_schemas_codec_judges_them(version):
    chance = random.Random(version)
    refused = 0
    for seed in range(400):
        body = bytearray(messages.encode_request(1, version, request_of(version, seed)))
        for _ in range(chance.choice((1, 1, 2))):
            body[chance.randrange(len(body))] = chance.choice((0, 1, 2, 127, 128, 255, chance.randrange(256)))
        try:
            expected = meant(version, messages.decode_request(1, version, bytes(body)))
        except MalformedRequest as error:
            refused += 1
            # Tagged fields of a partition are a follower's, and skipped as a whole: what is wrong inside goes unseen.
            if "stated size" not in str(error):
                with pytest.raises(MalformedRequest):
                    fetch.parse(version, memoryview(body), 0)
        else:
            assert told(fetch.parse(version, memoryview(body), 0)) == expected
    assert refused > 20


@pytest.mark.parametrize("version", FLEXIBLE)
def test_unknown_tagged_fields_are_skipped_wherever_they_stand(version):
    plain = small(version)
    expected = told(fetch.parse(version, memoryview(plain), 0))
    # Partition's tags, topic's tags, nothing forgotten, no rack, the request's own tags.
    assert plain.endswith(b"\0\0\0\x03" + b"\0\0\x01\x01\0")
    for at in (5, 4, 1):
        end = len(plain) - at
        body = plain[:end] + UNKNOWN_TAGS + plain[end + 1 :]
        assert told(fetch.parse(version, memoryview(body), 0)) == expected


@pytest.mark.parametrize(
    "tags",
    [
        b"\x02" + tagged(5, b"") + tagged(5, b""),
        b"\x02" + tagged(5, b"") + tagged(4, b""),
        uvarint(1_000_000),
        b"\x01\x05\xff\xff\xff\xff\x0f",
        b"\xff\xff\xff\xff\xff\xff",
        b"\x01\x05" + uvarint(2 << 20) + bytes(2 << 20),
        b"\x01" + tagged(0, b"\x05ab"),
        b"\x01" + tagged(0, b"\x02abc"),
        b"\x01" + tagged(1, bytes(12)),
        b"\x01" + tagged(1, bytes(20)),
    ],
    ids=[
        "twice",
        "descending",
        "flood",
        "longer than the frame",
        "endless varint",
        "megabytes",
        "cluster id too short",
        "cluster id too long",
        "replica state too short",
        "replica state too long",
    ],
)
def test_tagged_fields_that_break_the_rules_are_malformed(tags):
    with pytest.raises(MalformedRequest):
        fetch.parse(17, memoryview(small(17)[:-1] + tags), 0)


@pytest.mark.parametrize("version", [4, 7, 12, 13])
@pytest.mark.parametrize("of", ["topics", "partitions", "forgotten"])
def test_a_flood_of_entries_is_refused_before_it_is_built(version, of):
    flexible = version >= FLEXIBLE_SINCE
    if of == "forgotten" and version < SESSION_SINCE:
        return

    def count(number):
        return uvarint(number + 1) if flexible else number.to_bytes(4, "big")

    name = bytes(16) if version >= TOPIC_ID_SINCE else b"\x02t" if flexible else b"\0\x01t"
    tag = b"\0" if flexible else b""
    number = 2 * ENTRIES_MAX
    head = bytes({4: 17, 7: 25, 12: 25, 13: 25}[version])
    partition = bytes({4: 16, 7: 24, 12: 32, 13: 32}[version]) + tag
    if of == "topics":
        body = count(number) + (name + count(0) + tag) * number
    elif of == "partitions":
        body = count(4) + (name + count(number // 4) + partition * (number // 4) + tag) * 4
    else:
        body = count(0) + count(4) + (name + count(number // 4) + bytes(4) * (number // 4) + tag) * 4
    tracemalloc.start()
    with pytest.raises(MalformedRequest, match="array"):
        fetch.parse(version, memoryview(head + body + bytes(100)), 0)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 80 << 20


def part(p, version):
    """The answer in the words of the schema."""
    response = Response.PartitionData(
        partition_index=p.partition,
        error_code=p.error_code,
        high_watermark=p.high_watermark,
        last_stable_offset=p.last_stable_offset,
        log_start_offset=p.log_start_offset,
        preferred_read_replica=p.preferred_read_replica,
        records=bytes(p.records),
        aborted_transactions=None
        if p.aborted is None
        else [Response.AbortedTransaction(producer_id=i, first_offset=o) for i, o in p.aborted],
    )
    if version >= FLEXIBLE_SINCE:
        if p.diverging_epoch is not None:
            response.diverging_epoch.epoch, response.diverging_epoch.end_offset = p.diverging_epoch
        if p.current_leader is not None:
            response.current_leader.leader_id, response.current_leader.leader_epoch = p.current_leader
        if p.snapshot_id is not None:
            response.snapshot_id.end_offset, response.snapshot_id.epoch = p.snapshot_id
    return response


ANSWERS = {
    "records": [FetchedPartition(3, 0, 100, 90, 5, b"r" * 300), FetchedPartition(4, 0, 100, 90, 5, bytearray(b"x"))],
    "nothing new": [FetchedPartition(0, 0, 100, 100, 0)],
    "aborted": [
        FetchedPartition(0, 0, 9, 8, 0, b"rec", [(5, 6), (2**40, 0)]),
        FetchedPartition(1, 0, 9, 8, 0, b"", []),
        FetchedPartition(2, 0, 9, 8, 0, b"", [(i, i) for i in range(200)]),
    ],
    "error": [FetchedPartition(0, 1), FetchedPartition(1, 3)],
    "not the leader": [FetchedPartition(0, 6, current_leader=(7, 12))],
    "diverging": [FetchedPartition(0, 0, 5, 5, 0, diverging_epoch=(3, 44)), FetchedPartition(1, 0, 5, 5, 0, b"after")],
    "snapshot": [FetchedPartition(0, 0, 5, 5, 0, snapshot_id=(44, 3))],
    "every tag": [
        FetchedPartition(0, 0, 5, 5, 0, b"r", [], 9, diverging_epoch=(3, 4), current_leader=(5, 6), snapshot_id=(7, 8))
    ],
    "replica": [FetchedPartition(0, 0, 5, 5, 0, preferred_read_replica=4)],
    "many": [FetchedPartition(i, 0, i, i, 0, b"r" * (i % 3)) for i in range(300)],
    "none": [],
}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("answers", ANSWERS.values(), ids=ANSWERS)
def test_a_response_has_the_bytes_that_the_schemas_codec_writes(version, answers):
    topics = [Uuid(bytes(range(16))), Uuid(b"\xff" * 16)] if version >= TOPIC_ID_SINCE else ["t", "é" * 130]
    field = "topic_id" if version >= TOPIC_ID_SINCE else "topic"
    message = Response(
        throttle_time_ms=77,
        error_code=71,
        session_id=123,
        responses=[
            Response.FetchableTopicResponse(**{field: topic}, partitions=[part(p, version) for p in answers])
            for topic in topics
        ],
    )
    written = fetch.write_response(
        version, [(topic, answers) for topic in topics], throttle_time_ms=77, error_code=71, session_id=123
    )
    assert b"".join(written) == messages.encode_response(1, version, message)
    assert b"".join(fetch.write_response(version, [])) == messages.encode_response(1, version, Response())


def test_records_stand_in_the_response_as_they_are():
    records = b"r" * 1000
    written = fetch.write_response(12, [("t", [FetchedPartition(0, 0, records=records), FetchedPartition(1, 0)])])
    assert any(buffer is records for buffer in written)
    assert len(written) == 3
