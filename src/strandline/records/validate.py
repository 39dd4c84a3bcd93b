"""The look inside that a broker takes when a rule of the topic asks for it.

Always true: a batch that passes has offset deltas 0, 1, 2, … up to its lastOffsetDelta, and a key in every record if the
topic is compacted. The CRC is the caller's business: it was checked when the batch came in.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from strandline.ports import Buffer
from strandline.records.batch import open_records
from strandline.records.errors import InvalidRecord
from strandline.records.header import NO_TIMESTAMP, read_header

RECORD_ERRORS_MAX: Final = 100
"""How many records of a batch are blamed one by one; a batch may have thousands."""


class ValidatedRecords(NamedTuple):
    """What only the records themselves could tell."""

    min_timestamp: int
    """Of the records that have a timestamp; NO_TIMESTAMP if none has."""
    max_timestamp: int
    offset_delta_of_max_timestamp: int
    """Of the first record that has it."""


def validate_records(batch: Buffer, *, require_keys: bool, max_decompressed_bytes: int) -> ValidatedRecords:
    """Read every record of the batch, or raise InvalidRecord naming those that are to blame."""
    header = read_header(batch)
    min_timestamp, max_timestamp, delta_of_max = NO_TIMESTAMP, NO_TIMESTAMP, 0
    keyless: list[tuple[int, str]] = []
    expected = header.base_offset
    for record in open_records(header, batch, max_decompressed_bytes):
        offset, timestamp = record.offset, record.timestamp
        if offset != expected:
            delta, wanted = offset - header.base_offset, expected - header.base_offset
            raise InvalidRecord(f"Offset delta {delta} stands where {wanted} should", [(wanted, "Offset out of order")])
        if require_keys and record.key is None and len(keyless) < RECORD_ERRORS_MAX:
            keyless.append((offset - header.base_offset, "A record of a compacted topic needs a key"))
        if timestamp > max_timestamp:
            max_timestamp, delta_of_max = timestamp, offset - header.base_offset
        if timestamp != NO_TIMESTAMP and (timestamp < min_timestamp or min_timestamp == NO_TIMESTAMP):
            min_timestamp = timestamp
        expected += 1
    if expected != header.next_offset:
        raise InvalidRecord(
            f"The batch has {header.records_count} records, but its last offset delta is {header.last_offset_delta}"
        )
    if keyless:
        raise InvalidRecord("A compacted topic cannot take records without a key", keyless)
    return ValidatedRecords(min_timestamp, max_timestamp, delta_of_max)
