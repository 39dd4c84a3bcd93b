"""A rate over a few windows, and whom it binds."""

from __future__ import annotations

import pytest

from strandline.replica.throttle import Throttle, is_throttled


def test_without_a_limit_it_is_never_over() -> None:
    throttle = Throttle()
    throttle.record(10**12, 0.0)
    assert not throttle.is_over(0.0)
    assert throttle.pause_s(0.0) == 0.0


def test_the_first_bytes_are_measured_over_a_whole_window() -> None:
    throttle = Throttle(1000)
    throttle.record(1000, 5.0)
    assert throttle.rate(5.001) == 1000
    assert not throttle.is_over(5.001)
    throttle.record(1, 5.001)
    assert throttle.is_over(5.001)


def test_a_burst_is_paid_for_with_time() -> None:
    throttle = Throttle(1000)
    throttle.record(5000, 0.0)
    assert throttle.is_over(4.9)
    assert not throttle.is_over(5.0)
    assert throttle.pause_s(4.5) == pytest.approx(0.5)
    assert throttle.pause_s(1.0) == 1.0  # at most a window, then it is looked at again


def test_whoever_obeys_keeps_to_the_rate() -> None:
    throttle = Throttle(10_000)
    now, taken = 0.0, 0
    while now < 60:
        pause_s = throttle.pause_s(now)
        if pause_s:
            now += pause_s
        else:
            throttle.record(3_000, now)
            taken += 3_000
            now += 0.001
    assert 0.9 * 600_000 < taken < 1.1 * 600_000


def test_old_windows_are_forgotten() -> None:
    throttle = Throttle(1000, windows_max=3, window_s=2.0)
    throttle.record(9000, 0.0)
    throttle.record(10, 5.0)
    assert throttle.rate(5.9) == pytest.approx(9010 / 5.9)
    assert throttle.rate(6.0) == pytest.approx(10 / 2.0)
    assert throttle.rate(11.0) == 0.0


def test_no_bytes_at_all_may_pass_a_limit_of_none() -> None:
    throttle = Throttle(0)
    assert not throttle.is_over(0.0)
    throttle.record(1, 0.0)
    assert throttle.pause_s(0.5) == 1.0


def test_a_new_limit_counts_for_what_was_recorded() -> None:
    throttle = Throttle(1000)
    throttle.record(5000, 0.0)
    throttle.limit = 5000
    assert not throttle.is_over(0.5)


def test_a_list_binds_its_replicas_and_a_star_all() -> None:
    assert not is_throttled((), 0, 1)
    assert is_throttled(("*",), 3, 9)
    assert is_throttled(("0:1", "3:9"), 3, 9)
    assert not is_throttled(("0:1", "3:9"), 3, 1)
    assert not is_throttled(("13:9",), 3, 9)
