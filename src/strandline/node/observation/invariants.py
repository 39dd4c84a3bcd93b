"""Where state objects plug in their own checks.

A state object (a log, a partition, an ISR, Raft, a group) that has a method `check_invariants` is checked by every view
that shows it. The simulator has that done after each turn in which the object changed, and for all objects now and
then.
"""

from __future__ import annotations

from collections.abc import Callable


def check_invariants(kept: object) -> None:
    """Have a state object check itself, if it can: AssertionError says what does not hold. Nothing is changed."""
    check: Callable[[], None] | None = getattr(kept, "check_invariants", None)
    if check is not None:
        check()
