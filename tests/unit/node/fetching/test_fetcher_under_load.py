"""A follower's rounds while a reply is always on its way: no answer that fits no more costs anybody a long poll."""

from __future__ import annotations

import asyncio

import pytest

from .leading import EPOCH, LEADER_ID, Stage, state

LATE_S = 0.3
"""Less than a long poll takes: whoever needs longer waited for one."""


def test_the_next_epoch_of_the_same_leader_holds_nothing_up() -> None:
    stage = Stage()

    async def story(stage: Stage) -> None:
        partition = stage.broker.partition()
        stage.follow(partition)
        stage.leader.produce(b"0")
        await stage.until(lambda: partition.high_watermark == 1)
        longest_s = 0.0
        for number in range(30):
            # A reply is on its way when the follower hears of the new epoch.
            stage.leader.produce(b"%d" % number)
            await asyncio.sleep(stage.host.randomness.random() * 0.002)
            partition.apply(state(epoch=EPOCH + 1 + number))
            stage.fetchers.follow(partition, LEADER_ID)
            end_offset = number + 2
            longest_s = max(longest_s, await stage.until(lambda: partition.log.log_end_offset == end_offset))  # noqa: B023
        assert longest_s < LATE_S, "a record waited for the time of a long poll"

    stage.play(story)


@pytest.mark.parametrize("seed", range(3))
def test_a_partition_that_is_flushed_each_time_does_not_hold_up_a_busy_one(seed: int) -> None:
    stage = Stage(seed)

    def is_acknowledged(end_offset: int) -> bool:
        """By the next Fetch that names the busy partition."""
        return any(
            position.partition == 0 and position.fetch_offset == end_offset
            for request in stage.leader.asked[-6:]
            for _, positions in request.topics
            for position in positions
        )

    async def story(stage: Stage) -> None:
        busy, flushed = stage.broker.partition("t", 0), stage.broker.partition("t", 1, flush_messages=1)
        stage.follow(busy, flushed)
        late = []
        for number in range(400):
            stage.leader.produce(b"f", index=1)
            await asyncio.sleep(stage.host.randomness.random() * 0.03)
            stage.leader.produce(b"b", index=0)
            end_offset = number + 1
            took_s = await stage.until(lambda: busy.log.log_end_offset == end_offset)  # noqa: B023
            took_s += await stage.until(lambda: is_acknowledged(end_offset))  # noqa: B023
            if took_s > LATE_S:
                late.append((number, round(took_s, 3)))
        assert not late, "records whose acknowledgement waited for the other partition"

    stage.play(story)
