"""Where damage ends: at the next batch that is sound, found by its length or byte by byte."""

from __future__ import annotations

import random

import pytest

from strandline.log import damage
from strandline.log.damage import BatchPosition, BatchSearch
from strandline.records.header import assign

from .conftest import sized

SIZES = [100, 150, 90, 400, 75]
STARTS = [sum(SIZES[:i]) for i in range(len(SIZES))]
BASE = 0x0102030405


def file() -> bytearray:
    """Batches of one record each, from BASE on."""
    data = bytearray()
    for i, size in enumerate(SIZES):
        batch = bytearray(sized(size))
        assign(batch, BASE + i, 3)
        data += batch
    return data


def after(data: bytes | bytearray, i: int) -> BatchPosition:
    """The next sound batch after the damaged one `i`."""
    whole = bytes(data)
    limit = BASE + len(SIZES)
    search = BatchSearch(lambda at, size: whole[at : at + size], len(whole), limit, end_is_known=True)
    return search.next_sound(STARTS[i], BASE + i)


@pytest.mark.parametrize("i", range(4))
@pytest.mark.parametrize("position", [0, 3, 7, 8, 10, 11, 13, 16, 17, 22, 26, 60, 74])
def test_one_bad_batch_ends_where_the_next_begins(i: int, position: int) -> None:
    data = file()
    data[STARTS[i] + position] ^= 0x21
    assert after(data, i) == BatchPosition(STARTS[i + 1], BASE + i + 1)


def test_the_last_one_ends_where_the_segment_does() -> None:
    data = file()
    data[STARTS[4] + 70] ^= 1
    assert after(data, 4) == BatchPosition(len(data), BASE + 5)
    data[STARTS[4] + 8] ^= 1
    assert after(data, 4) == BatchPosition(len(data), BASE + 5)


def test_bad_batches_in_a_row_are_one_stretch() -> None:
    data = file()
    data[STARTS[1] + 70] ^= 1
    data[STARTS[2] + 70] ^= 1
    assert after(data, 1) == BatchPosition(STARTS[3], BASE + 3)


@pytest.mark.parametrize("junk", ["zeros", "ones", "random"])
def test_a_lost_block_is_passed_over(junk: str) -> None:
    data = file()
    start, end = STARTS[1] + 20, STARTS[3] + 30
    fill = {"zeros": bytes(end - start), "ones": b"\xff" * (end - start)}
    data[start:end] = fill.get(junk) or random.Random(1).randbytes(end - start)
    assert after(data, 1) == BatchPosition(STARTS[4], BASE + 4)


def test_a_batch_across_two_reads_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    data = file()
    data[STARTS[0] + 8] ^= 0x7F
    data[STARTS[1] + 8] ^= 0x7F
    for size in (62, 64, 77, 100, 251):
        monkeypatch.setattr(damage, "SEARCH_BYTES", size)
        assert after(data, 0) == BatchPosition(STARTS[2], BASE + 2)


def test_a_batch_of_other_offsets_is_not_taken_for_the_next() -> None:
    """One that a record carries, say, or that was there before the file was used again."""
    data = file()
    data[STARTS[1] + 9] ^= 0x7F
    stale = bytearray(sized(90))
    assign(stale, BASE - 7, 3)
    data[STARTS[2] : STARTS[3]] = stale
    assert after(data, 1) == BatchPosition(STARTS[3], BASE + 3)


def test_a_wrong_base_offset_after_damage_is_not_believed() -> None:
    """A block of zeros ends in the header of a batch whose records, and so its checksum, are untouched."""
    data = file()
    data[STARTS[1] + 30 : STARTS[2] + 30] = bytes(SIZES[1])
    data[STARTS[3] + 7] ^= 1
    assert after(data, 1) == BatchPosition(STARTS[4], BASE + 4)
