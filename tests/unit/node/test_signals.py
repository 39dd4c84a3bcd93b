"""Signals: who is called, in which order, and what happens to an error."""

from __future__ import annotations

import pytest

from strandline.node.signals import AsyncSignal, Signal


def test_subscribers_are_called_in_their_order() -> None:
    called: list[tuple[str, int]] = []
    signal: Signal[int] = Signal()
    signal.subscribe(lambda number: called.append(("first", number)), lambda number: called.append(("second", number)))
    signal.subscribe(lambda number: called.append(("third", number)))
    signal(7)
    assert called == [("first", 7), ("second", 7), ("third", 7)]


def test_an_error_reaches_the_caller() -> None:
    def fails(number: int) -> None:
        raise ValueError(number)

    signal: Signal[int] = Signal()
    signal.subscribe(fails)
    with pytest.raises(ValueError, match="7"):
        signal(7)


async def test_an_asynchronous_signal_is_over_when_its_subscribers_are() -> None:
    done: list[int] = []

    async def acts(number: int) -> None:
        done.append(number)

    signal: AsyncSignal[int] = AsyncSignal()
    signal.subscribe(acts, acts)
    await signal(7)
    assert done == [7, 7]
