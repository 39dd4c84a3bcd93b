"""A broker passes a request on as it came, and answers in the client's terms whatever becomes of it."""

# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any

import pytest

from strandline.api.requests import forwarding
from strandline.api.table import BROKER_APIS
from strandline.errors import ErrorCode, KafkaError
from strandline.wire import messages
from strandline.wire.errors import MalformedRequest
from strandline.wire.headers import request_header, response_header

CREATE_TOPICS, ELECT_LEADERS = 19, 43
Create = messages.request(CREATE_TOPICS)


class Forward:
    """The way to the controller: keeps what went there."""

    def __init__(self, outcome: Any) -> None:
        self.outcome = outcome
        self.sent: list[tuple[bytes, bytes, bytes]] = []

    async def __call__(self, frame: bytes, principal: bytes, host: bytes) -> bytes:
        self.sent.append((frame, principal, host))
        if isinstance(self.outcome, Exception):
            raise self.outcome
        if self.outcome is None:
            await asyncio.get_running_loop().create_future()
        return bytes(self.outcome)


def create(name: str = "t", timeout_ms: int = 5_000) -> Any:
    return Create(
        topics=[Create.CreatableTopic(name=name, num_partitions=1, replication_factor=1)], timeout_ms=timeout_ms
    )


def framed(api_key: int, version: int, message: Any) -> tuple[bytearray, int]:
    header = request_header(api_key, version, 77, "client")
    return bytearray(header + messages.encode_request(api_key, version, message)), len(header)


async def forward(
    broker: Any, outcome: Any, message: Any = None, api_key: int = CREATE_TOPICS, version: int = 7
) -> Any:
    """The decoded reply, and what was sent."""
    way = broker.parts.controller.forward = Forward(outcome)
    frame, position = framed(api_key, version, message or create())
    whole = bytes(frame)
    broker.parts.controller.quorum.is_active = False
    reply = BROKER_APIS[api_key].handle(memoryview(frame), broker.context(api_key, version), position)
    frame[:] = bytes(len(frame))  # the buffer is used again for the next request
    assert isinstance(reply, Awaitable)
    body = await reply
    assert isinstance(body, bytes)
    assert way.sent[0][0] == whole
    return messages.decode_response(api_key, version, body), way.sent[0]


async def test_the_request_goes_as_it_came_and_the_answer_comes_without_its_header(broker):
    Created = messages.response(CREATE_TOPICS)
    answer = Created(topics=[Created.CreatableTopicResult(name="t", num_partitions=9)])
    payload = response_header(CREATE_TOPICS, 7, 77) + messages.encode_response(CREATE_TOPICS, 7, answer)
    reply, (_, principal, host) = await forward(broker, payload)
    assert [(topic.name, topic.num_partitions) for topic in reply.topics] == [("t", 9)]
    assert principal == b"\0\0" + b"\x05User" + b"\x0aANONYMOUS" + b"\0" + b"\0"
    assert host == bytes([127, 0, 0, 1])


@pytest.mark.parametrize(
    ("peer", "expected"),
    [
        ("10.1.2.3", bytes([10, 1, 2, 3])),
        ("::1", bytes(15) + b"\1"),
        ("fe80::1%eth0", b"\xfe\x80" + bytes(13) + b"\1"),
        ("n1", bytes(4)),
        ("?", bytes(4)),
    ],
)
def test_the_clients_address(peer, expected):
    assert forwarding.host_bytes(peer) == expected


async def test_a_controller_that_is_not_found_in_time_is_told_per_topic(broker):
    error = KafkaError(ErrorCode.REQUEST_TIMED_OUT, "no leader of the quorum is known")
    reply, _ = await forward(broker, error)
    [topic] = reply.topics
    assert (topic.name, topic.error_code) == ("t", ErrorCode.REQUEST_TIMED_OUT)
    assert "no leader" in topic.error_message


async def test_the_clients_own_time_counts(broker, monkeypatch):
    monkeypatch.setattr(forwarding, "TIMEOUT_MIN_S", 0.001)
    reply, _ = await forward(broker, None, create(timeout_ms=1))
    assert reply.topics[0].error_code == ErrorCode.REQUEST_TIMED_OUT


@pytest.mark.parametrize(("timeout_ms", "expected_s"), [(0, 1.0), (-1, 1.0), (5_000, 4.5), (2**31 - 1, 60.0)])
async def test_how_long_a_request_may_take_so_that_the_client_still_hears_of_it(broker, timeout_ms, expected_s):
    ctx = broker.context(CREATE_TOPICS, 7)
    assert forwarding.timeout_s(create(timeout_ms=timeout_ms), ctx) == expected_s


async def test_a_request_that_names_no_time_has_that_of_any_request(broker):
    assert forwarding.timeout_s(messages.request(55)(), broker.context(55, 2)) == 27.0


@pytest.mark.parametrize("code", [ErrorCode.INVALID_REQUEST, ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE])
async def test_what_went_wrong_with_the_envelope_is_not_the_clients_business(broker, code):
    reply, _ = await forward(broker, KafkaError(code))
    assert reply.topics[0].error_code == ErrorCode.UNKNOWN_SERVER_ERROR


async def test_a_version_that_the_controller_does_not_know_ends_the_connection(broker):
    with pytest.raises(ConnectionError, match="API 19 version 7"):
        await forward(broker, KafkaError(ErrorCode.UNSUPPORTED_VERSION))


async def test_an_error_that_has_no_place_in_the_reply_ends_the_connection(broker):
    with pytest.raises(ConnectionError, match="REQUEST_TIMED_OUT"):
        await forward(
            broker, KafkaError(ErrorCode.REQUEST_TIMED_OUT), messages.request(ELECT_LEADERS)(), ELECT_LEADERS, 0
        )


async def test_an_answer_that_can_not_be_read(broker):
    reply, _ = await forward(broker, b"\0")
    assert reply.topics[0].error_code == ErrorCode.UNKNOWN_SERVER_ERROR


async def test_a_request_that_can_not_be_read_goes_nowhere(broker):
    way = broker.parts.controller.forward = Forward(b"")
    frame, position = framed(CREATE_TOPICS, 7, create())
    broker.parts.controller.quorum.is_active = False
    with pytest.raises(MalformedRequest):
        BROKER_APIS[CREATE_TOPICS].handle(memoryview(frame)[:-3], broker.context(CREATE_TOPICS, 7), position)
    assert way.sent == []


async def test_a_controller_that_is_none_any_more_when_it_has_decided_passes_the_request_on(broker):
    """Leadership goes while the decision is being committed: the client is not told to look for a controller itself."""

    async def lost(decision: Any) -> Any:
        raise KafkaError(ErrorCode.NOT_CONTROLLER, "the leader of epoch 2 is node 2")

    broker.parts.controller.decide = lost
    Created = messages.response(CREATE_TOPICS)
    there = Created(topics=[Created.CreatableTopicResult(name="t", num_partitions=9)])
    payload = response_header(CREATE_TOPICS, 7, 77) + messages.encode_response(CREATE_TOPICS, 7, there)
    way = broker.parts.controller.forward = Forward(payload)
    frame, position = framed(CREATE_TOPICS, 7, create())
    whole = bytes(frame)
    reply = BROKER_APIS[CREATE_TOPICS].handle(memoryview(frame), broker.context(CREATE_TOPICS, 7), position)
    frame[:] = bytes(len(frame))
    assert isinstance(reply, Awaitable)
    body = await reply
    assert isinstance(body, bytes)
    answer = messages.decode_response(CREATE_TOPICS, 7, body)
    assert [sent[0] for sent in way.sent] == [whole]
    assert answer.topics[0].num_partitions == 9
