# mypy: allow-incomplete-defs, allow-untyped-defs, disable-error-code="unreachable"

from __future__ import annotations

from strandline.coordinator.result import Moment
from strandline.coordinator.timers import GARBAGE_MIN, CoordinatorTimers


def fired(timers: CoordinatorTimers, now: float) -> list[str]:
    names: list[str] = []
    while (callback := timers.take(now)) is not None:
        result = callback(Moment(now, 0))
        assert result is None
        names.append(timers.last)  # type: ignore[attr-defined]
    return names


class Named(CoordinatorTimers):
    last = ""

    def set(self, name: str, at_s: float) -> None:
        def callback(at: Moment) -> None:
            self.last = name

        self.schedule((name,), at_s, callback)


def test_they_fire_when_they_are_due_in_the_order_of_their_times():
    timers = Named()
    timers.set("late", 3.0)
    timers.set("early", 1.0)
    timers.set("also early", 1.0)
    assert timers.next_s == 1.0
    assert fired(timers, 0.9) == []
    assert fired(timers, 1.0) == ["early", "also early"]
    assert timers.next_s == 3.0
    assert fired(timers, 5.0) == ["late"]
    assert timers.next_s is None
    assert len(timers) == 0


def test_a_key_has_one_timer():
    timers = Named()
    timers.set("a", 1.0)
    timers.set("a", 2.0)
    assert len(timers) == 1
    assert ("a",) in timers
    assert fired(timers, 1.0) == []
    timers.set("a", 1.5)
    assert fired(timers, 3.0) == ["a"]
    assert ("a",) not in timers


def test_a_cancelled_one_never_fires():
    timers = Named()
    timers.set("a", 1.0)
    timers.set("b", 2.0)
    timers.cancel(("a",))
    timers.cancel(("never there",))
    assert timers.next_s == 2.0
    assert fired(timers, 9.0) == ["b"]
    timers.set("a", 1.0)
    timers.clear()
    assert fired(timers, 9.0) == []


def test_what_is_set_again_and_again_takes_no_more_room():
    timers = Named()
    for number in range(10_000):
        timers.set("a", float(number))
    assert len(timers._heap) <= 2 + GARBAGE_MIN
    assert fired(timers, 9_998.0) == []
    assert fired(timers, 9_999.0) == ["a"]
