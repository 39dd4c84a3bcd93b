"""A connection's bytes, with a broker that is a plain function."""

# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

import struct

import pytest

from strandline.client.core.connection import ClientConnection
from strandline.client.core.frames import size_of
from strandline.client.errors import ProtocolViolation, UnsupportedApi
from strandline.errors import ErrorCode
from strandline.wire import messages
from strandline.wire.headers import read_request_header, response_header

KEYS = {0: (0, 13), 1: (4, 18), 3: (0, 12), 18: (0, 4)}


def versions_body(version: int, error: int = 0, keys: dict[int, tuple[int, int]] = KEYS) -> bytes:
    ApiVersions = messages.response(18)
    entries = [ApiVersions.ApiVersion(api_key=k, min_version=a, max_version=b) for k, (a, b) in keys.items()]
    return messages.encode_response(18, version, ApiVersions(error_code=error, api_keys=entries))


def frame(*parts: bytes) -> bytes:
    return b"".join((size_of(*parts), *parts))


def reply_to(request: bytes, body: bytes) -> bytes:
    header = read_request_header(request, 4)
    return frame(response_header(header.api_key, header.api_version, header.correlation_id), body)


def ready() -> ClientConnection[object]:
    connection = ClientConnection[object]("me")
    connection.receive(reply_to(connection.open(1.0), versions_body(4)))
    assert connection.ready
    return connection


def metadata_request(connection: ClientConnection[object], context: object = None) -> bytes:
    return b"".join(connection.send(3, messages.request(3)(topics=None), 9.0, context))


def test_the_newest_common_version_is_used():
    connection = ready()
    header = read_request_header(metadata_request(connection), 4)
    assert (header.api_key, header.api_version, header.client_id) == (3, 12, "me")
    limited = b"".join(connection.send(1, messages.request(1)(), 9.0, version_max=12))
    assert read_request_header(limited, 4).api_version == 12


def test_an_api_that_is_not_served_is_refused_by_name():
    with pytest.raises(UnsupportedApi, match=r"API 75: .* does not serve it"):
        ready().send(75, messages.request(75)(), 9.0)


def test_an_old_broker_is_asked_again_in_the_version_it_names():
    connection = ClientConnection[object]("me")
    first = connection.open(1.0)
    assert read_request_header(first, 4).api_version == 4
    refusal = versions_body(0, ErrorCode.UNSUPPORTED_VERSION, {18: (0, 2)})
    replies, second = connection.receive(reply_to(first, refusal))
    assert replies == []
    assert read_request_header(second, 4).api_version == 2
    assert not connection.ready
    connection.receive(reply_to(second, versions_body(2)))
    assert connection.ready


def test_a_broker_that_names_nothing_is_asked_in_version_0():
    connection = ClientConnection[object]("me")
    _, second = connection.receive(reply_to(connection.open(1.0), versions_body(0, ErrorCode.UNSUPPORTED_VERSION, {})))
    assert read_request_header(second, 4).api_version == 0


@pytest.mark.parametrize("cut", [1, 3, 7, 1000])
def test_replies_come_in_pieces_and_in_order(cut):
    connection = ready()
    requests = [metadata_request(connection, name) for name in ("a", "b")]
    bodies = [messages.encode_response(3, 12, messages.response(3)(cluster_id=name)) for name in ("A", "B")]
    data = b"".join(reply_to(request, body) for request, body in zip(requests, bodies, strict=True))
    got = []
    for start in range(0, len(data), cut):
        replies, _ = connection.receive(data[start : start + cut])
        for reply in replies:
            assert isinstance(reply.message, messages.response(3))
            got.append((reply.request.context, reply.message.cluster_id))
    assert got == [("a", "A"), ("b", "B")]
    assert connection.deadline() is None


def test_a_reply_out_of_order_ends_the_connection():
    connection = ready()
    metadata_request(connection)
    second = metadata_request(connection)
    with pytest.raises(ProtocolViolation, match=r"where .* is next"):
        connection.receive(reply_to(second, b""))


def test_a_reply_to_nothing_ends_the_connection():
    with pytest.raises(ProtocolViolation, match="nothing that was asked"):
        ready().receive(frame(b"\0\0\0\x01"))


def test_a_reply_that_cannot_be_read_ends_the_connection():
    connection = ready()
    with pytest.raises(ProtocolViolation, match="cannot be read"):
        connection.receive(reply_to(metadata_request(connection), b"\xff"))


@pytest.mark.parametrize("is_out_of_order", [False, True])
def test_who_waits_is_in_flight_until_a_reply_was_read(is_out_of_order):
    """Or nobody would ever hear of the end of the connection: seed 801206, in which a flush waited for ever."""
    connection = ready()
    first, second, third = (metadata_request(connection, name) for name in "abc")
    good = messages.encode_response(3, 12, messages.response(3)(cluster_id="A"))
    bad = reply_to(third, good) if is_out_of_order else reply_to(second, b"\xff")
    with pytest.raises(ProtocolViolation):
        connection.receive(reply_to(first, good) + bad)
    assert [request.context for request in connection.in_flight] == ["a", "b", "c"]


@pytest.mark.parametrize("size", [-1, 0, 3, 1001, 0x7FFFFFFF, 0x48545450])
def test_a_hostile_size_is_refused_before_anything_is_kept(size):
    connection = ClientConnection[object]("me", frame_bytes_max=1000)
    connection.open(1.0)
    with pytest.raises(ProtocolViolation, match="claims"):
        connection.receive(struct.pack(">i", size))


def test_the_first_deadline_counts():
    connection = ready()
    connection.send(3, messages.request(3)(), 9.0)
    connection.send(3, messages.request(3)(), 4.0)
    assert connection.deadline() == 4.0


def test_a_request_without_reply_is_not_waited_for():
    connection = ready()
    connection.send(0, messages.request(0)(acks=0), 9.0, expects_reply=False)
    assert not connection.in_flight
