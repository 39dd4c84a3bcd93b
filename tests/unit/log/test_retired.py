"""Files that left a log: closed at once, or when the last work that may use them is done."""

from __future__ import annotations

import pytest

from strandline.log.retired import RetiredFiles


class Closing:
    def __init__(self) -> None:
        self.closed = 0

    def close(self) -> None:
        self.closed += 1


def test_what_nobody_uses_is_closed_at_once_and_once() -> None:
    retired, first, second = RetiredFiles(), Closing(), Closing()
    retired.add([first])
    retired.add([second])
    assert (first.closed, second.closed) == (1, 1)


def test_what_is_held_is_closed_with_the_last_hold() -> None:
    retired, file = RetiredFiles(), Closing()
    with retired.held():
        with retired.held():
            retired.add([file])
        assert file.closed == 0, "the outer work may still be using it"
    assert file.closed == 1


def test_a_work_that_fails_holds_nothing_any_longer() -> None:
    retired, file = RetiredFiles(), Closing()

    def fails() -> None:
        with retired.held():
            retired.add([file])
            raise OSError("the disk is full")

    with pytest.raises(OSError, match="full"):
        fails()
    assert file.closed == 1
