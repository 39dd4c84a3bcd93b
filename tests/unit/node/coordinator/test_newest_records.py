"""The newest record of each key, whatever their sizes, and nothing taken from bytes that are not whole records."""

# mypy: disable-error-code="var-annotated"

from __future__ import annotations

import random

import pytest

from strandline.node.coordinator.newest_records import NewestRecords
from strandline.records.batch import BatchBuilder, decode
from strandline.records.errors import CorruptRecord, InvalidRecord
from strandline.records.header import RECORDS_AT, read_header


@pytest.mark.parametrize("seed", range(20))
def test_it_is_what_reading_all_of_them_gives(seed: int) -> None:
    chance = random.Random(seed)
    data, expected, base_offset = b"", {}, 0
    for _ in range(chance.randrange(1, 6)):
        builder = BatchBuilder()
        for _ in range(chance.choice((1, 3, 200))):
            key = chance.choice((None, b"", b"k" * chance.choice((1, 63, 64, 9_000)), bytes([chance.randrange(8)])))
            value = chance.choice((None, b"", chance.randbytes(chance.choice((5, 63, 64, 20_000)))))
            builder.append(key, value, timestamp=chance.choice((0, 5, 10**6, 2**40)))
        batch = builder.build(base_offset=base_offset)
        base_offset += builder.records_count
        data += batch
        for record in decode(batch):
            if record.key is not None:
                expected.pop(record.key, None)
                expected[record.key] = (record.value, record.timestamp)
    newest = NewestRecords()
    position, next_offset = 0, 0
    while position < len(data):
        position, _, next_offset = newest.note_plain(data, position, 10)
    assert next_offset == base_offset
    assert [(key, (value, timestamp)) for key, value, timestamp in newest.take()] == list(expected.items())
    assert not list(newest.take())


def batch() -> bytes:
    builder = BatchBuilder()
    for number in range(3):
        builder.append(b"key", b"value" * 20 * number, timestamp=number)
    return bytes(builder.build())


def test_a_batch_that_is_not_whole_is_left_alone() -> None:
    data = batch()
    for cut in (0, 10, RECORDS_AT, len(data) - 1):
        assert NewestRecords().note_plain(data[:cut], 0, 10).records == 0


def test_every_damage_is_noticed() -> None:
    data = batch()
    for position in range(21, len(data)):
        damaged = bytearray(data)
        damaged[position] ^= 0xFF
        try:
            assert not NewestRecords().note_plain(bytes(damaged), 0, 10).records  # it does not look plain any more
        except CorruptRecord:
            continue


def test_records_that_lie_about_their_sizes_are_refused() -> None:
    data = batch()
    header = read_header(data)
    for position in range(RECORDS_AT, len(data)):
        for byte in (0x00, 0x7F, 0xFF):
            damaged = bytearray(data)
            damaged[position] = byte
            newest = NewestRecords()
            try:
                newest.note(bytes(damaged), RECORDS_AT, len(data), header.records_count, 0)
                list(newest.take())
            except InvalidRecord:
                continue
