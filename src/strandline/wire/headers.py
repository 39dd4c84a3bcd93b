"""Request and response headers, read and written by hand: they come before everything else, authentication included.

Request header v1 is api key, api version, correlation id and client id; v2 adds tagged fields, of which Kafka has none, so
they are skipped, and capped (CVE-2026-111115). Response header v0 is the correlation id; v1 adds tagged fields.
Which of them a message has follows from whether its version is flexible; only the response of ApiVersions keeps header v0,
since a client reads it before it knows what the server speaks.

Always true: nothing here needs the schemas, so a frame can be routed before any of them is loaded.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from strandline.wire.codec import Buffer
from strandline.wire.errors import MalformedRequest
from strandline.wire.primitives import TAGS_MAX as TAGS_MAX
from strandline.wire.primitives import skip_tags

API_VERSIONS: Final = 18
ENVELOPE = 58

HEADER_OBJECTS_MAX = 1_000
"""Bounds a header's tagged fields to a hundred."""

_FLEXIBLE_SINCE: dict[int, int | None] = dict.fromkeys((45, 46, 50, 51, 52, *range(55, 93)), 0)
# fmt: off
_FLEXIBLE_SINCE |= {
    0: 9, 1: 12, 2: 6, 3: 9, 8: 8, 9: 6, 10: 3, 11: 6, 12: 4, 13: 4, 14: 4, 15: 5, 16: 3, 17: None, 18: 3, 19: 5, 20: 4,
    21: 2, 22: 2, 23: 4, 24: 3, 25: 3, 26: 3, 27: 1, 28: 3, 29: 2, 30: 2, 31: 2, 32: 4, 33: 2, 34: 2, 35: 2, 36: 2, 37: 2,
    38: 2, 39: 2, 40: 2, 41: 2, 42: 2, 43: 2, 44: 1, 47: None, 48: 1, 49: 1, 53: 1, 54: 1,
}
# fmt: on
"""By API key, the first flexible version; None if there is none. Every API since KIP-482 was born flexible."""

_NEVER = 1 << 15

_FIRST_FLEXIBLE = [_NEVER] * 93
for _key, _since in _FLEXIBLE_SINCE.items():
    _FIRST_FLEXIBLE[_key] = _NEVER if _since is None else _since

_FIXED = struct.Struct(">hhih")
_UNPACK = _FIXED.unpack_from
_CORRELATION_ID = struct.Struct(">i")


class RequestHeader(NamedTuple):
    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    body_position: int


def flexible_since(api_key: int) -> int | None:
    """The first flexible version of this API, or None; LookupError for an API that does not exist."""
    return _FLEXIBLE_SINCE[api_key]


def is_flexible(api_key: int, version: int) -> bool:
    """False for an API that does not exist: its request is refused whatever its header was."""
    return 0 <= api_key < len(_FIRST_FLEXIBLE) and version >= _FIRST_FLEXIBLE[api_key]


def read_request_header(buffer: Buffer, position: int = 0) -> RequestHeader:
    """The header that begins here. Whether we serve that API and version is the caller's question."""
    try:
        api_key, api_version, correlation_id, size = _UNPACK(buffer, position)
    except struct.error:
        raise MalformedRequest("request header: the bytes end here") from None
    position += _FIXED.size
    if size < 0:
        client_id = None
    else:
        end = position + size
        if end > len(buffer):
            raise MalformedRequest(
                f"request header, client_id: a size of {size} where {len(buffer) - position} bytes are left"
            )
        try:
            client_id = str(buffer[position:end], "utf-8")
        except UnicodeDecodeError:
            raise MalformedRequest("request header, client_id: not UTF-8") from None
        position = end
    if is_flexible(api_key, api_version):
        position = skip_tagged_fields(buffer, position, "request header")
    return RequestHeader(api_key, api_version, correlation_id, client_id, position)


def request_header(api_key: int, version: int, correlation_id: int, client_id: str | None) -> bytes:
    name = b"" if client_id is None else client_id.encode()
    fixed = _FIXED.pack(api_key, version, correlation_id, -1 if client_id is None else len(name))
    return fixed + name + (b"\0" if is_flexible(api_key, version) else b"")


def has_flexible_response_header(api_key: int, version: int) -> bool:
    """ApiVersions' never is: a client that reads it does not know yet what the broker speaks."""
    return api_key != API_VERSIONS and is_flexible(api_key, version)


def response_header(api_key: int, version: int, correlation_id: int) -> bytes:
    header = _CORRELATION_ID.pack(correlation_id)
    return header + b"\0" if has_flexible_response_header(api_key, version) else header


def read_response_header(api_key: int, version: int, buffer: Buffer, position: int = 0) -> tuple[int, int]:
    """The correlation id, and the position of the body."""
    if len(buffer) - position < _CORRELATION_ID.size:
        raise MalformedRequest("response header: the bytes end here")
    (correlation_id,) = _CORRELATION_ID.unpack_from(buffer, position)
    position += _CORRELATION_ID.size
    if api_key != API_VERSIONS and is_flexible(api_key, version):
        position = skip_tagged_fields(buffer, position, "response header")
    return correlation_id, position


def skip_tagged_fields(buffer: Buffer, position: int, title: str = "request") -> int:
    """Pass over a section of tagged fields of which we know none; the position after it."""
    # Nearly every header ends in a zero: no tagged fields.
    if position < len(buffer) and buffer[position] == 0:
        return position + 1
    try:
        return skip_tags(buffer, position, HEADER_OBJECTS_MAX)[0]
    except IndexError:
        raise MalformedRequest(f"{title}, tagged fields: the bytes end here") from None
    except MalformedRequest as error:
        raise MalformedRequest(f"{title}, tagged fields: {error}") from None
