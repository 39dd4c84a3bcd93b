"""A Produce request as parts to be written one after the other, so that no batch is copied on its way to the socket.

Always true: the parts joined are what `messages.encode_request` gives; each batch is a part of its own, as it was.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from strandline.ports import Buffer
from strandline.wire.headers import is_flexible
from strandline.wire.primitives import encode_unsigned_varint as uvarint

if TYPE_CHECKING:
    from strandline.wire.stubs.produce import ProduceRequest

PRODUCE: Final = 0
TOPIC_ID_SINCE = 13

_ACKS_TIMEOUT = struct.Struct(">hi")
_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
_NO_TAGS = b"\0"


def parts_of(version: int, message: ProduceRequest) -> list[Buffer]:
    flexible = is_flexible(PRODUCE, version)
    head = bytearray(_text(message.transactional_id, flexible))
    head += _ACKS_TIMEOUT.pack(message.acks, message.timeout_ms)
    head += _size(len(message.topic_data), flexible)
    parts: list[Buffer] = []
    for topic in message.topic_data:
        head += topic.topic_id if version >= TOPIC_ID_SINCE else _text(topic.name, flexible)
        head += _size(len(topic.partition_data), flexible)
        for partition in topic.partition_data:
            head += _INT32.pack(partition.index)
            head += _size(-1 if partition.records is None else len(partition.records), flexible)
            if partition.records is not None:
                parts += [head, partition.records]
                head = bytearray()
            if flexible:
                head += _NO_TAGS
        if flexible:
            head += _NO_TAGS
    if flexible:
        head += _NO_TAGS
    return [*parts, head] if head else parts


def _text(text: str | None, flexible: bool) -> bytes:
    data = b"" if text is None else text.encode()
    size = -1 if text is None else len(data)
    return (uvarint(size + 1) if flexible else _INT16.pack(size)) + data


def _size(size: int, flexible: bool) -> bytes:
    """-1 is null."""
    return uvarint(size + 1) if flexible else _INT32.pack(size)
