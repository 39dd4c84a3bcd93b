"""Replicas' positions, as they and their leaders see them."""

# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

from dataclasses import replace
from typing import Any

from strandline.node.monitoring.positions import described, lag_of
from strandline.replica.followers import FollowerProgress

from .conftest import Looked


def test_a_follower_that_has_not_fetched_has_no_lag_that_is_known():
    follower = FollowerProgress(2)
    assert lag_of(follower, 10) is None
    follower.fetched(4, 0, 10, 7, 100.0)
    assert lag_of(follower, 10) == 6
    assert lag_of(follower, 3) == 0


def test_a_leader_tells_of_its_followers(play):
    async def story(stage):
        partition = await stage.create()
        looked = Looked(stage)
        now = looked.clock.monotonic()
        assert partition.leadership is not None
        for replica_id in (3, 2):
            partition.leadership.followers[replica_id] = FollowerProgress(replica_id)
        partition.leadership.followers[2].fetched(0, 0, 0, 7, now - 1.5)
        replica = looked.observed.replica("t", 0)
        assert replica is not None
        shown = described(replica, 1, now)
        assert shown["followers"] == [
            {
                "replica": 2,
                "log_start_offset": 0,
                "log_end_offset": 0,
                "lag": 0,
                "caught_up_ms_ago": 1500,
                "fetched_ms_ago": 1500,
                "broker_epoch": 7,
            },
            {
                "replica": 3,
                "log_start_offset": -1,
                "log_end_offset": -1,
                "lag": None,
                "caught_up_ms_ago": None,
                "fetched_ms_ago": None,
                "broker_epoch": -1,
            },
        ]

    play(story)


def test_a_follower_shows_what_it_lacks_and_the_isr_of_the_metadata(play):
    async def story(stage):
        partition = await stage.create()
        replica = Looked(stage).observed.replica("t", 0)
        assert replica is not None
        epochs = {"leader_epoch": 1, "partition_epoch": partition.state.partition_epoch + 1}
        partition.apply(replace(partition.state, replicas=(2, 1), isr=(2,), leader=2, **epochs))
        shown = described(replica, 1, 0.0)
        assert (shown["role"], shown["leader"], shown["isr"], shown["lag"]) == ("follower", 2, [2], None)
        assert "followers" not in shown
        role: Any = partition.role
        role.leader_high_watermark = 7
        assert described(replica, 1, 0.0)["lag"] == 7

    play(story)
