"""Which records of a batch break a rule of their topic: named one by one in the answer to their producer (KIP-467).

Always true: it is asked only about batches that the walk found sound and of which some record is to blame. A record is blamed once,
for its key before its timestamp; one wrong timestamp makes the whole answer INVALID_TIMESTAMP, as Kafka has it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NoReturn

from strandline.ports import Buffer
from strandline.records.errors import InvalidRecord, InvalidTimestamp, RecordError
from strandline.records.header import NO_TIMESTAMP, BatchHeader
from strandline.records.varint import read_varint, read_varlong

RECORD_ERRORS_MAX: Final = 1000
"""How many records of a batch are blamed one by one: a batch may have a hundred thousand, and each takes some fifty bytes."""


def blame(
    payload: Buffer,
    position: int,
    header: BatchHeader,
    require_keys: bool,
    earliest: int,
    latest: int,
    *,
    is_append_time: bool,
) -> NoReturn:
    """Raise the error that names them. `is_append_time`: the records of the topic get the broker's time."""
    errors: list[RecordError] = []
    is_untimely = False
    claims_append_time = is_append_time and header.is_log_append_time
    for index, (timestamp, has_key) in enumerate(_timestamps_and_keys(payload, position, header)):
        if require_keys and not has_key:
            errors.append(RecordError(index, "a record of a compacted topic needs a key"))
        elif claims_append_time:
            is_untimely = True
            errors.append(RecordError(index, "LogAppendTime is the broker's to set, and this batch claims it"))
        elif not is_append_time and timestamp != NO_TIMESTAMP and not earliest <= timestamp <= latest:
            is_untimely = True
            errors.append(RecordError(index, f"its timestamp {timestamp} is not in {earliest} to {latest}"))
        if len(errors) == RECORD_ERRORS_MAX:
            break
    assert errors, "some record is to blame"
    first = f"record {errors[0].index}: {errors[0].message}"
    if is_untimely:
        raise InvalidTimestamp(f"Some timestamps are not valid here, the batch is refused; {first}", errors)
    raise InvalidRecord(f"Some records are not valid here, the batch is refused; {first}", errors)


def _timestamps_and_keys(payload: Buffer, position: int, header: BatchHeader) -> Iterator[tuple[int, bool]]:
    """Of each record its own timestamp, and whether it has a key. Nothing is copied: it may be a lot."""
    for _ in range(header.records_count):
        length, position = read_varint(payload, position)
        timestamp_delta, at = read_varlong(payload, position + 1)
        _, at = read_varint(payload, at)
        key_size, _ = read_varint(payload, at)
        yield header.base_timestamp + timestamp_delta, key_size >= 0
        position += length
