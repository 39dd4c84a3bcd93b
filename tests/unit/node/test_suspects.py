"""Brokers that may be gone, and brokers that just went."""

# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

import pytest

from strandline.node.suspects import DEPARTED_S, SUSPECTED_S, Suspects


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def suspects(clock):
    return Suspects(clock)


def test_a_closed_connection_makes_a_suspect_for_a_while(suspects, clock):
    assert suspects.now() == frozenset()
    suspects.closed(2)
    assert suspects.now() == {2}
    clock.now += SUSPECTED_S - 0.001
    assert suspects.now() == {2}
    clock.now += 0.001
    assert suspects.now() == frozenset()


def test_each_has_its_own_time_and_a_second_loss_counts_anew(suspects, clock):
    suspects.closed(2)
    suspects.closed(3)
    clock.now += SUSPECTED_S / 2
    suspects.closed(3)
    clock.now += SUSPECTED_S / 2
    assert suspects.now() == {3}


def test_one_that_is_reached_again_is_no_suspect(suspects):
    suspects.closed(2)
    suspects.reached(2)
    suspects.reached(3)
    assert suspects.now() == frozenset()


def test_one_that_was_fenced_is_named_a_little_longer(suspects, clock):
    suspects.fenced(2)
    assert (suspects.departed(), suspects.now()) == ({2}, frozenset())
    clock.now += DEPARTED_S - 0.001
    assert suspects.departed() == {2}
    clock.now += 0.001
    assert suspects.departed() == frozenset()


def test_what_is_over_is_not_kept(suspects, clock):
    for broker_id in range(1000):
        suspects.closed(broker_id)
        suspects.fenced(broker_id)
    clock.now += 10
    assert not suspects.now()
    assert not suspects.departed()
    assert not suspects._closed
    assert not suspects._fenced
