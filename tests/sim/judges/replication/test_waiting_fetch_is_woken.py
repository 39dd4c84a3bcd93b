from __future__ import annotations

from strandline.histories.judges.replication.waiting_fetch_is_woken import WaitingFetchIsWoken

from .stage import Stage, broken, stage


def waited(*, visible_at: float, disturbed_at: float = 0.0, unstable: int | None = None) -> Stage:
    """A consumer has asked at the 10th second for what becomes visible then; it is the 14th second."""
    story = stage(WaitingFetchIsWoken)
    story.partition(1).unstable = unstable
    story.append(1, "a")
    story.now = visible_at
    story.commit(1, 1)
    story.observed._observed.disturbed_at = disturbed_at
    story.now = 14.0
    return story


def test_what_becomes_visible_wakes_who_waits_for_it() -> None:
    waited(visible_at=13.5).fetch(-1, 0, at=10.0)
    with broken(WaitingFetchIsWoken):
        waited(visible_at=11.0).fetch(-1, 0, at=10.0)


def test_who_has_it_all_waits_until_its_time_is_up() -> None:
    waited(visible_at=11.0).fetch(-1, 1, at=10.0)


def test_where_something_was_harmed_nobody_knows_when_it_arrived() -> None:
    waited(visible_at=11.0, disturbed_at=9.0).fetch(-1, 0, at=10.0)


def test_who_reads_committed_waits_for_what_becomes_stable() -> None:
    waited(visible_at=11.0, unstable=0).fetch(-1, 0, at=10.0, reads_committed=True)
    with broken(WaitingFetchIsWoken):
        waited(visible_at=11.0).fetch(-1, 0, at=10.0, reads_committed=True)
