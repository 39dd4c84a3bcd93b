"""Which records of a batch break a rule of their topic: named one by one in the answer to their producer (KIP-467).

Always true: it is asked only about batches that the walk found sound and of which some record is to blame. A record is blamed once,
for its key before its timestamp; one wrong timestamp makes the whole answer INVALID_TIMESTAMP, as Kafka has it, also if records
that are named before it leave no room for its name.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from strandline.ports import Buffer
from strandline.records.errors import CorruptRecord, InvalidRecord, InvalidTimestamp, RecordError
from strandline.records.header import NO_TIMESTAMP, BatchHeader
from strandline.records.varint import read_varint, read_varlong


class Offences(NamedTuple):
    """What the walk found against a batch: some record has no key and needs one, or a wrong timestamp, or both are there."""

    keyless: bool
    untimely: bool


class RecordRules(NamedTuple):
    """What a topic asks of each record."""

    require_keys: bool
    is_append_time: bool
    """The records of the topic get the broker's time, so the bounds are for none of them."""
    earliest: int
    latest: int


def blame(
    payload: Buffer,
    position: int,
    header: BatchHeader,
    rules: RecordRules,
    found: Offences,
    *,
    records_max: int,
    errors_max: int,
) -> CorruptRecord:
    """The error that names them: at most so many, among the first so many records."""
    errors: list[RecordError] = []
    # Unless some record has no key, the walk's word is enough.
    is_untimely = found.untimely and not found.keyless
    claims_append_time = rules.is_append_time and header.is_log_append_time
    count = header.records_count
    for index, (timestamp, has_key) in enumerate(_timestamps_and_keys(payload, position, header, records_max)):
        if len(errors) >= errors_max and is_untimely == found.untimely:
            break
        if rules.require_keys and not has_key:
            problem = "a record of a compacted topic needs a key"
        elif claims_append_time:
            is_untimely = True
            problem = "LogAppendTime is the broker's to set, and this batch claims it"
        elif not rules.is_append_time and timestamp != NO_TIMESTAMP and not rules.earliest <= timestamp <= rules.latest:
            is_untimely = True
            problem = f"its timestamp {timestamp} is not in {rules.earliest} to {rules.latest}"
        else:
            continue
        if len(errors) < errors_max:
            errors.append(RecordError(index, problem))
    else:
        if count > records_max:
            is_untimely = found.untimely
    which = f"record {errors[0].index}: {errors[0].message}" if errors else "there are too many to look at: not named"
    if is_untimely:
        return InvalidTimestamp(f"Some timestamps are not valid here, the batch is refused; {which}", errors)
    return InvalidRecord(f"Some records are not valid here, the batch is refused; {which}", errors)


def _timestamps_and_keys(
    payload: Buffer, position: int, header: BatchHeader, records_max: int
) -> Iterator[tuple[int, bool]]:
    """Of each of the first records its own timestamp, and whether it has a key. Nothing is copied: it may be a lot."""
    for _ in range(min(header.records_count, records_max)):
        length, position = read_varint(payload, position)
        timestamp_delta, at = read_varlong(payload, position + 1)
        _, at = read_varint(payload, at)
        key_size, _ = read_varint(payload, at)
        yield header.base_timestamp + timestamp_delta, key_size >= 0
        position += length
