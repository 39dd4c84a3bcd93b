"""Who is fetched from whom: fetchers come and go with their partitions."""

from __future__ import annotations

import asyncio

import pytest

from .leading import LEADER_ID, Stage

OTHER_ID = 8


def test_a_partition_has_one_fetcher_and_a_fetcher_a_partition() -> None:
    stage = Stage()

    async def story(stage: Stage) -> None:
        fetchers = stage.fetchers
        first, second = stage.broker.partition("t", 0), stage.broker.partition("t", 1)
        stage.follow(first, second)
        await stage.until(lambda: stage.opened == [LEADER_ID])
        fetchers.follow(second, OTHER_ID)
        assert [(f.leader_id, list(f.session.members)) for f in fetchers.fetchers] == [
            (LEADER_ID, [first]),
            (OTHER_ID, [second]),
        ]
        assert (fetchers.leader_of(first), fetchers.leader_of(second)) == (LEADER_ID, OTHER_ID)
        fetchers.unfollow(first)
        fetchers.unfollow(first)
        await asyncio.sleep(0.1)
        assert [f.leader_id for f in fetchers.fetchers] == [OTHER_ID]
        assert fetchers.leader_of(first) is None
        fetchers.follow(second, -1)
        await asyncio.sleep(0.1)
        assert list(fetchers.fetchers) == []
        assert stage.leader.connections == []

    stage.play(story)
    assert stage.closed == []  # whoever ends a connection by choice tells nobody


def test_a_leader_that_loses_and_gets_partitions_at_once_keeps_its_connection() -> None:
    stage = Stage()

    async def story(stage: Stage) -> None:
        first, second = stage.broker.partition("t", 0), stage.broker.partition("t", 1)
        stage.follow(first)
        await stage.until(lambda: stage.opened)
        stage.leader.log("t", 1)
        stage.fetchers.apply([(second, LEADER_ID)], [first])
        stage.leader.produce(b"a", index=1)
        await stage.until(lambda: second.log.log_end_offset == 1)
        assert stage.leader.accepted == 1

    stage.play(story)


def test_a_partition_that_is_led_here_is_never_fetched() -> None:
    stage = Stage()

    async def story(stage: Stage) -> None:
        with pytest.raises(AssertionError, match="led here"):
            stage.fetchers.follow(stage.broker.partition(), 1)

    stage.play(story)


def test_after_close_nothing_is_fetched() -> None:
    stage = Stage()

    async def story(stage: Stage) -> None:
        partition = stage.broker.partition()
        stage.follow(partition)
        await stage.until(lambda: stage.opened)
        await stage.fetchers.close()
        stage.fetchers.follow(partition, LEADER_ID)
        stage.leader.produce(b"a")
        await asyncio.sleep(1)
        assert partition.log.log_end_offset == 0
        assert list(stage.fetchers.fetchers) == []

    stage.play(story)
    assert stage.closed == []
