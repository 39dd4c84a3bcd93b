"""One follower as its leader sees it: when it last had everything."""

from __future__ import annotations

from strandline.replica.followers import NEVER, UNKNOWN, FollowerProgress


def test_nothing_is_known_before_the_first_fetch() -> None:
    follower = FollowerProgress(2)
    assert (follower.log_end_offset, follower.caught_up_at) == (UNKNOWN, NEVER)
    assert not follower.is_caught_up(0, 0.0, 30.0)


def test_a15_what_is_appended_during_a_fetch_keeps_nobody_out() -> None:
    follower = FollowerProgress(2)
    follower.fetched(0, 0, 10, 1, now=100.0)
    assert follower.caught_up_at == NEVER
    follower.fetched(10, 0, 20, 1, now=110.0)
    assert follower.caught_up_at == 100.0, "it has what there was when it fetched last"
    follower.fetched(19, 0, 30, 1, now=120.0)
    assert follower.caught_up_at == 100.0, "one record less, and it has not"
    follower.fetched(30, 0, 30, 1, now=130.0)
    assert follower.caught_up_at == 130.0


def test_a_follower_that_is_cut_back_has_less() -> None:
    follower = FollowerProgress(2)
    follower.fetched(10, 0, 10, 1, now=100.0)
    follower.fetched(5, 0, 12, 1, now=101.0)
    assert follower.log_end_offset == 5


def test_an_idle_fetch_says_that_nothing_is_missing() -> None:
    follower = FollowerProgress(2)
    follower.fetched(10, 0, 10, 1, now=100.0)
    follower.was_caught_up(150.0)
    assert follower.caught_up_at == 150.0
    follower.was_caught_up(140.0)
    assert follower.caught_up_at == 150.0


def test_the_clock_of_one_in_sync_starts_anew_with_an_epoch() -> None:
    follower = FollowerProgress(2)
    follower.fetched(10, 0, 12, 1, now=100.0)
    follower.begin_epoch(12, 200.0, in_sync=True)
    assert follower.is_caught_up(12, 229.0, 30.0)
    follower.begin_epoch(12, 300.0, in_sync=False)
    assert not follower.is_caught_up(12, 300.0, 30.0)
