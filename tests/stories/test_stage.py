"""The stage itself: its verbs do what they say, and a frame shows what is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from strandline.sim.world import World
from strandline.stories.frames import AnomalyKind, ShownRole
from strandline.stories.stage import PointMissed, Stage, StoryTimeout


def _play(story: Callable[[Stage], Awaitable[None]]) -> Stage:
    async def run(stage: Stage) -> None:
        await stage.open(brokers=("X", "Y"))
        await story(stage)
        await stage.close()

    with World("test of the stage") as world:
        stage = Stage(world)
        world.run(run(stage), until=60)
        return stage


def test_until_stops_between_a_request_and_its_answer() -> None:
    async def story(stage: Stage) -> None:
        x, y = stage["X"], stage["Y"]
        message = await stage.send_soon("M1")
        await stage.until(lambda: x.end == 1)
        assert (y.end, x.high_watermark, message.is_over) == (0, 0, False)
        await stage.until(lambda: y.end == 1)
        assert x.high_watermark == 0
        await message.answered()
        assert message.offset == 0
        assert x.high_watermark == 1

    _play(story)


def test_what_is_held_arrives_when_it_is_released() -> None:
    async def story(stage: Stage) -> None:
        stage.hold("X", "Y")
        message = await stage.send_soon("M1")
        await stage.wait(2.0)
        frame = stage.narrate("", "")
        assert frame.held == ("X→Y",)
        assert [word.is_waiting for word in frame.clients] == [True]
        assert stage["Y"].names == []
        before = stage.requests("Y", "X")
        stage.release("X", "Y")
        await message.answered()
        assert stage["Y"].names == ["M1"]
        assert stage.requests("Y", "X") > before

    _play(story)


def test_a_frame_shows_brokers_that_are_down_by_what_their_disk_has() -> None:
    async def story(stage: Stage) -> None:
        await stage.send("M1")
        await stage.settle()
        stage.kill("Y")
        await stage.until(lambda: stage.isr == ["X"])
        await stage.send("M2")
        lanes = {lane.broker: lane.rows[0] for lane in stage.narrate("", "").lanes}
        assert lanes["X"].role is ShownRole.LEADER
        assert [(message.name, message.epoch) for message in lanes["X"].messages] == [("M1", 0), ("M2", 0)]
        assert (lanes["Y"].role, lanes["Y"].is_out_of_sync, lanes["Y"].epoch) == (ShownRole.DOWN, True, None)
        assert [message.name for message in lanes["Y"].messages] == ["M1"]
        assert (lanes["Y"].log_end, lanes["Y"].high_watermark) == (1, 1)
        stage.restart("Y")
        await stage.settle()
        assert await stage.read() == stage["Y"].names == ["M1", "M2"]

    _play(story)


def test_what_is_lost_leaves_a_ghost_where_it_was() -> None:
    async def story(stage: Stage) -> None:
        stage.hold("X", "Y")
        await stage.send("M1", acks=1)
        stage.narrate("", "")
        stage.lost("M1")
        stage.doubled("M1")
        there, ghost = (lane.rows[0].messages for lane in stage.narrate("", "").lanes)
        assert [(m.name, m.mark, m.is_ghost) for m in there] == [("M1", AnomalyKind.LOST, False)]
        assert [(m.name, m.mark, m.is_ghost) for m in ghost] == [("M1", AnomalyKind.LOST, True)]

    with pytest.raises(AssertionError, match="makes no point"):
        _play(story).finish("none", None, (), None)  # type: ignore[arg-type]


def test_a_story_that_does_not_come_out_says_how_things_stand() -> None:
    async def waits(stage: Stage) -> None:
        await stage.until(lambda: stage["X"].end == 5, "five messages", within_s=1.0)

    async def claims(stage: Stage) -> None:
        stage.point(stage.leader == "Y", "Y leads", "Y가 리더다")

    with pytest.raises(StoryTimeout, match=r"five messages: not within 1.0 s; X leads e0 \[\] end=0 hw=0"):
        _play(waits)
    with pytest.raises(PointMissed, match="Y leads - but: X leads"):
        _play(claims)
