"""An answer to Fetch, with its records cut out: the same in every version, and refused when it cannot be read."""

# mypy: allow-incomplete-defs, allow-untyped-defs, disable-error-code="comparison-overlap"

from __future__ import annotations

from typing import Any

import pytest

from strandline.client.core.connection import RawReply
from strandline.client.core.fetch_answer import read_answer
from strandline.client.errors import ProtocolViolation
from strandline.ids import Uuid
from strandline.wire import messages

VERSIONS = messages.response_family(1).versions
HEADER = b"header"


def answer(records: bytes | None, aborted: list[tuple[int, int]] | None = None, **fields: Any) -> Any:
    Fetch = messages.response(1)
    partition = Fetch.PartitionData(
        partition_index=3,
        high_watermark=70,
        last_stable_offset=60,
        log_start_offset=5,
        aborted_transactions=None
        if aborted is None
        else [Fetch.AbortedTransaction(producer_id=p, first_offset=o) for p, o in aborted],
        records=records,
        **fields,
    )
    topic = Fetch.FetchableTopicResponse(topic="a topic", topic_id=Uuid(b"topic-id-16bytes"), partitions=[partition])
    return Fetch(throttle_time_ms=9, responses=[topic])


def raw(version: int, message: Any) -> RawReply:
    return RawReply(version, memoryview(HEADER + messages.encode_response(1, version, message)), len(HEADER))


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("aborted", [None, [], [(1, 10), (2, 20)]])
@pytest.mark.parametrize("size", [0, 1, 126, 127, 20_000])
def test_records_are_cut_out_and_everything_else_is_read(version: int, aborted: Any, size: int):
    records = bytes(range(256)) * 80
    read = read_answer(raw(version, answer(records[:size], aborted)))
    assert read.records == records[:size]
    expected = answer(b"", aborted)
    again = messages.decode_response(1, version, messages.encode_response(1, version, expected))
    assert read.message == again
    assert read.message.responses[0].partitions[0].high_watermark == 70


def test_the_records_are_a_view_of_the_frame():
    reply = raw(17, answer(b"some records"))
    assert read_answer(reply).records.obj is memoryview(reply.frame).obj


@pytest.mark.parametrize("version", VERSIONS)
def test_null_records_and_an_answer_without_partitions_have_none(version: int):
    assert read_answer(raw(version, answer(None))).records == b""
    nothing = read_answer(raw(version, messages.response(1)(throttle_time_ms=5)))
    assert nothing.records == b""
    assert nothing.message.throttle_time_ms == 5


def test_what_follows_the_records_is_read_too():
    Fetch = messages.response(1)
    leader = Fetch.LeaderIdAndEpoch(leader_id=4, leader_epoch=2)
    message = answer(b"records", current_leader=leader)
    message.node_endpoints = [Fetch.NodeEndpoint(node_id=4, host="h", port=1)]
    read = read_answer(raw(17, message)).message
    assert read.responses[0].partitions[0].current_leader == leader
    assert read.node_endpoints[0].host == "h"


@pytest.mark.parametrize("version", VERSIONS)
def test_an_answer_that_is_cut_anywhere_is_refused(version: int):
    reply = raw(version, answer(bytes(40), [(1, 10)]))
    whole = bytes(reply.frame)
    for end in range(len(HEADER), len(whole)):
        with pytest.raises(ProtocolViolation, match="cannot be read"):
            read_answer(reply._replace(frame=memoryview(whole[:end])))
