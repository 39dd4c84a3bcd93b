"""Every Kafka message by its API key, and the way to and from bytes.

    CreateTopicsResponse = messages.response(19)
    reply = CreateTopicsResponse(topics=[CreateTopicsResponse.CreatableTopicResult(name="t")])
    body = messages.encode_response(19, 7, reply)

Bodies only: headers are in `headers.py`; `decoder.py` and `encoder.py` write the code for each struct; Produce and Fetch have
readers and writers of their own for the fast path (`produce.py`, `fetch.py`).

Always true: decoding raises MalformedRequest or returns a message; LookupError means an API or version that does not exist.
"""

from __future__ import annotations

from collections.abc import Generator
from functools import cache
from typing import TYPE_CHECKING

from strandline.wire import schemas
from strandline.wire.codec import Buffer
from strandline.wire.message import Family, Message
from strandline.wire.primitives import REQUEST_OBJECTS_MAX, RESPONSE_OBJECTS_MAX


@cache
def request_family(api_key: int) -> Family:
    return Family(schemas.request(api_key))


@cache
def response_family(api_key: int) -> Family:
    return Family(schemas.response(api_key))


@cache
def data_family(name: str) -> Family:
    return Family(schemas.data(name))


if TYPE_CHECKING:
    from strandline.wire.stubs.by_key import data as data
    from strandline.wire.stubs.by_key import decode_data as decode_data
    from strandline.wire.stubs.by_key import decode_request as decode_request
    from strandline.wire.stubs.by_key import decode_response as decode_response
    from strandline.wire.stubs.by_key import request as request
    from strandline.wire.stubs.by_key import response as response
else:

    def request(api_key):
        """The class of this API's requests. Its nested structs are its attributes, by Kafka's names."""
        return request_family(api_key).root

    def response(api_key):
        """The class of this API's responses."""
        return response_family(api_key).root

    def data(name):
        """The class of a message that is no request or response: headers, control records, consumer protocol."""
        return data_family(name).root

    def decode_request(api_key, version, buffer, position=0):
        return request_family(api_key).codec(version).decode(buffer, position, REQUEST_OBJECTS_MAX)[0]

    def decode_response(api_key, version, buffer, position=0):
        return response_family(api_key).codec(version).decode(buffer, position, RESPONSE_OBJECTS_MAX)[0]

    def decode_data(name, version, buffer, position=0):
        return data_family(name).codec(version).decode(buffer, position, REQUEST_OBJECTS_MAX)[0]


def count_and_decode_request(api_key: int, version: int, buffer: Buffer, position: int) -> tuple[Message, int]:
    """The request, and how many objects it became."""
    codec = request_family(api_key).codec(version)
    message, _, objects = codec.decode_counted(buffer, position, REQUEST_OBJECTS_MAX)
    return message, objects


def decode_request_in_slices(
    api_key: int, version: int, data: bytes, position: int = 0
) -> Generator[int, None, tuple[Message, int]]:
    """The same, pausing after every array element (`api/requests/slices.py`)."""
    codec = request_family(api_key).codec(version)
    message, _, objects = yield from codec.decode_in_slices(data, position, REQUEST_OBJECTS_MAX)
    return message, objects


def encode_response(api_key: int, version: int, message: Message) -> bytes:
    return response_family(api_key).codec(version).encode(message)


def encode_response_in_slices(api_key: int, version: int, message: Message) -> Generator[int, None, bytes]:
    """The same, pausing after every array element."""
    return response_family(api_key).codec(version).encode_in_slices(message)


def encode_request(api_key: int, version: int, message: Message) -> bytes:
    return request_family(api_key).codec(version).encode(message)


def encode_data(name: str, version: int, message: Message) -> bytes:
    return data_family(name).codec(version).encode(message)
