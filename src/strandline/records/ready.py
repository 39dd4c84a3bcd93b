"""A batch whose records are all in it, and which only lacks its producer and its place in the producer's sequence.

Whoever encodes records makes it, whoever sends it stamps it: the identity of a producer and the next sequence of a
partition are known only when the batch is about to leave.

Always true: `data` is one whole batch of message format v2. Its base offset is 0, it has no producer id, epoch and
sequence, and its CRC means nothing until it is stamped. `stamp` is the last to write, and reads the batch once.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from strandline.records import header as layout

_ATTRIBUTES: Final = struct.Struct(">h")
_PRODUCER: Final = struct.Struct(">qhi")
assert layout.PRODUCER_ID_AT + _PRODUCER.size == layout.COUNT_AT


class ReadyBatch(NamedTuple):
    """Records on their way to one partition."""

    data: bytearray
    count: int  # type: ignore[assignment]  # a record batch has a count, and nobody counts in a tuple of three
    """Of its records."""
    timestamp_max: int
    """The largest of its records' timestamps."""


def stamp(
    batch: ReadyBatch,
    producer_id: int,
    producer_epoch: int,
    base_sequence: int,
    *,
    is_transactional: bool = False,
) -> None:
    """Write who sends the batch, and then the CRC. May be done again: an identity can change before the first sending."""
    data = batch.data
    attributes: int = _ATTRIBUTES.unpack_from(data, layout.ATTRIBUTES_AT)[0]
    attributes = attributes | layout.TRANSACTIONAL_FLAG if is_transactional else attributes & ~layout.TRANSACTIONAL_FLAG
    _ATTRIBUTES.pack_into(data, layout.ATTRIBUTES_AT, attributes)
    _PRODUCER.pack_into(data, layout.PRODUCER_ID_AT, producer_id, producer_epoch, base_sequence)
    layout.seal(data)
