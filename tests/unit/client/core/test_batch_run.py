"""Which batches of a fetch are whole, and where to go on."""

# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

import pytest

from strandline.client.core.batch_run import BatchRun, run_of
from strandline.records.batch import BatchBuilder
from strandline.records.errors import CorruptRecord
from strandline.records.header import LENGTH_AT, MAGIC_AT

END = 1_000


def batch(base_offset: int, count: int = 10, epoch: int = 0) -> bytes:
    builder = BatchBuilder()
    for number in range(count):
        builder.append(None, b"%d" % number, (), 7)
    return bytes(builder.build(base_offset=base_offset, leader_epoch=epoch))


def test_whole_batches_are_counted_and_an_incomplete_one_is_left():
    two = batch(0, epoch=1) + batch(10, epoch=2)
    assert run_of(memoryview(two), 0, END) == BatchRun(len(two), 20, 2, 0)
    for cut in (1, 11, 13, 40, 70):
        assert run_of(memoryview(two + batch(20)[:cut]), 0, END) == BatchRun(len(two), 20, 2, 0)


def test_a_batch_that_begins_before_the_position_belongs_to_it():
    data = batch(0)
    assert run_of(memoryview(data), 7, END) == BatchRun(len(data), 10, 0, 0)


def test_batches_from_the_end_on_are_left_out_and_prove_that_nothing_is_missing():
    first = batch(0)
    assert run_of(memoryview(first + batch(10) + batch(20)), 0, 10) == BatchRun(len(first), 10, 0, 0)
    assert run_of(memoryview(first + batch(40)), 0, 20) == BatchRun(len(first), 40, 0, 0)
    assert run_of(memoryview(batch(40)), 5, 20) == BatchRun(0, 40, -1, 0)


def test_a_batch_that_ends_beyond_the_end_is_in():
    data = batch(0)
    assert run_of(memoryview(data), 0, 5) == BatchRun(len(data), 10, 0, 0)


@pytest.mark.parametrize("cut", [12, 16, 17, 60, 70])
def test_a_first_batch_that_did_not_fit_says_what_it_needs(cut: int):
    data = batch(5)
    assert run_of(memoryview(data[:cut]), 5, END) == BatchRun(0, 5, -1, len(data))


@pytest.mark.parametrize("cut", [0, 1, 11])
def test_bytes_that_say_nothing_are_nothing(cut: int):
    assert run_of(memoryview(batch(5)[:cut]), 5, END) == BatchRun(0, 5, -1, 0)


@pytest.mark.parametrize("at", [LENGTH_AT, MAGIC_AT])
def test_what_is_no_batch_is_refused_when_it_comes_first_and_left_for_later_otherwise(at: int):
    broken = bytearray(batch(10))
    broken[at] = 0xFF
    good = batch(0)
    assert run_of(memoryview(good + broken), 0, END) == BatchRun(len(good), 10, 0, 0)
    with pytest.raises(CorruptRecord):
        run_of(memoryview(broken), 10, END)
