"""SEC-L2: a turn of work ends after some milliseconds, and an answer that grows too large is given up."""

# mypy: allow-incomplete-defs, allow-untyped-calls, allow-untyped-defs

from __future__ import annotations

import pytest

from strandline.errors import ErrorCode, KafkaError
from strandline.sliced_work import ANSWER_BYTES_MAX, STEPS_PER_TURN_MAX, TURN_S, SlicedWork, finished


class Clock:
    """Each part of the work takes a millisecond."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 0.001
        return self.now


def work(parts, part_bytes=0):
    for _ in range(parts):
        yield part_bytes
    return "done"


def turns(sliced):
    count = 1
    while not sliced.turn():
        count += 1
    return count


def test_a_turn_ends_when_its_time_is_over():
    assert turns(SlicedWork(work(3), Clock())) == 1
    assert turns(SlicedWork(work(100), Clock())) == pytest.approx(100 / (TURN_S * 1000), rel=0.3)


def test_where_no_time_passes_a_turn_ends_by_its_steps():
    assert turns(SlicedWork(work(STEPS_PER_TURN_MAX - 1), lambda: 0.0)) == 1
    assert turns(SlicedWork(work(3 * STEPS_PER_TURN_MAX - 1), lambda: 0.0)) == 3


def test_an_answer_is_given_up_before_it_is_too_large():
    sliced = SlicedWork(work(1000, ANSWER_BYTES_MAX // 10), lambda: 0.0)
    with pytest.raises(KafkaError, match="ask for fewer things at once") as refused:
        turns(sliced)
    assert refused.value.code is ErrorCode.INVALID_REQUEST
    assert sliced.answer_bytes <= 1.1 * ANSWER_BYTES_MAX


def test_little_work_is_finished_at_once():
    assert finished(work(3 * STEPS_PER_TURN_MAX)) == "done"
