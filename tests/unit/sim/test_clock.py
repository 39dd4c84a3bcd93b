"""Clocks that drift and jump."""

from __future__ import annotations

import asyncio

import pytest

from strandline.sim.world import World

HOUR_MS = 3_600_000


def test_clocks_drift_and_jump_but_monotonic_never_moves_back(world: World) -> None:
    n1, n2 = world.node("n1"), world.node("n2")

    async def story() -> None:
        first, wall_ms = n1.clock.monotonic(), n1.clock.wall_ms()
        n1.clock.jump(-HOUR_MS)
        assert n1.clock.monotonic() == first
        assert n1.clock.wall_ms() == pytest.approx(wall_ms - HOUR_MS, abs=1)
        n1.clock.jump(2 * HOUR_MS)
        assert n1.clock.wall_ms() == pytest.approx(wall_ms + HOUR_MS, abs=1)
        await asyncio.sleep(10)
        n1.clock.set_drift(0.5)
        before = n1.clock.monotonic()
        assert before == pytest.approx(first + 10, rel=1e-3)
        await asyncio.sleep(10)
        assert n1.clock.monotonic() == pytest.approx(before + 15)
        n1.clock.set_drift(-0.9)
        await asyncio.sleep(10)
        assert n1.clock.monotonic() == pytest.approx(before + 16)
        assert n1.clock.monotonic() != n2.clock.monotonic()

    world.run(story())


def test_no_clock_stands_still(world: World) -> None:
    with pytest.raises(AssertionError):
        world.node("n1").clock.set_drift(-1.0)
