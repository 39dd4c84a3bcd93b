"""A node as it is observed: live, and nothing is kept of what is gone."""

# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

from strandline.node.broker_state import BrokerState
from strandline.node.observation.node import NodeObservation
from tests.unit.node.conftest import DELETE_TOPICS, Delete, Stage, produce
from tests.unit.node.coordinator.test_node_coordinates import SETTINGS, commit, found


def test_a_view_is_live(play):
    async def story(stage: Stage):
        observed = stage.node.observe()
        await stage.create()
        replica = observed.replica("t", 0)
        assert replica is not None
        assert replica is observed.replica("t", 0)
        assert (replica.high_watermark, replica.leads, replica.leader_high_watermark) == (0, True, None)
        stage.connect().feed(produce(b"x"))
        await asyncio.sleep(1)
        assert (replica.high_watermark, replica.log.log_end_offset) == (1, 1)
        assert observed.topics.total().messages_in == 1
        assert observed.connections.by_listener["PLAINTEXT"] == 1
        assert observed.events.counts["topic created"] == 1

    play(story)


def test_a_follower_knows_the_leaders_high_watermark_once_it_has_fetched(play):
    async def story(stage: Stage):
        partition = await stage.create()
        replica = stage.node.observe().replica("t", 0)
        assert replica is not None
        state = partition.state
        partition.apply(
            replace(
                state,
                replicas=(1, 2),
                isr=(2,),
                leader=2,
                leader_epoch=state.leader_epoch + 1,
                partition_epoch=state.partition_epoch + 1,
            )
        )
        assert (replica.leads, replica.isr, replica.leader_high_watermark) == (False, (), None)
        role: Any = partition.role
        role.leader_high_watermark = 7
        assert replica.leader_high_watermark == 7

    play(story)


def test_a_replica_that_is_dropped_is_not_kept(play):
    async def story(stage: Stage):
        observed = stage.node.observe()
        for name in ("a", "b", "c"):
            await stage.create(name)
            assert observed.replica(name, 0) is not None
            assert [replica.topic for replica in observed._replicas.values()] == [name], "those before are forgotten"
            await stage.call(DELETE_TOPICS, 5, Delete(topic_names=[name], timeout_ms=1000))
        assert list(observed.replicas) == []
        assert not observed._replicas

    play(story)


def test_a_shard_that_is_led_elsewhere_is_not_kept(play):
    async def story(stage: Stage):
        observed = stage.node.observe()
        assert not observed.has_shards
        await stage.create()
        await found(stage)
        assert await commit(stage, 5) == 0
        await asyncio.sleep(0.1)
        shards = list(observed.shards)
        assert all(shard.is_loaded for shard in shards)
        assert sum(shard.offset_count for shard in shards) == 1
        assert [state for shard in shards for state in shard.group_states()] == [("classic", "Empty")]
        stage.node.parts.groups.close()
        assert list(observed.shards) == []
        assert not observed._shards

    play(story, **SETTINGS)


def test_before_its_log_dirs_are_open_there_is_nothing_to_be_seen():
    observed = NodeObservation(lambda: None)
    assert observed.quorum is None
    assert (list(observed.replicas), list(observed.log_dirs), list(observed.shards)) == ([], [], [])
    assert (observed.broker_state, observed.broker_epoch) == (BrokerState.NOT_RUNNING, -1)
    assert (observed.cleaner_stats, list(observed.uncleanable), observed.failed_isr_updates) == (None, [], 0)
