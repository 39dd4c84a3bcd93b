"""Whom a request is for, and what the node tells its coordinator (C10)."""

# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

import asyncio
from typing import Any

from strandline.api import find_coordinator, list_groups
from strandline.api.groups.placement import partition_of
from strandline.errors import ErrorCode
from tests.unit.api.conftest import registration

from .stage import TOPIC, Coordination, committed, fetched, in_simulation


def test_a_group_of_a_partition_that_is_led_elsewhere_is_not_ours():
    async def story(broker: Any, disk: Any) -> None:
        broker.commit([registration(2)])
        broker.create("t", (1,))
        broker.create(TOPIC, (1,), (2, 1))
        await asyncio.sleep(0.1)
        stage = Coordination.__new__(Coordination)
        stage.broker = broker
        ours, theirs = "b", "a"
        assert (partition_of(ours, 2), partition_of(theirs, 2)) == (0, 1)
        assert committed(await stage.commit(1, ours)) == 0
        assert committed(await stage.commit(1, theirs)) == ErrorCode.NOT_COORDINATOR
        assert fetched(await stage.fetch(theirs)) == (ErrorCode.NOT_COORDINATOR, -2)
        broker.change(TOPIC, index=1, leader=1, isr=(1,))
        await asyncio.sleep(0.1)
        assert committed(await stage.commit(1, theirs)) == 0

    in_simulation(story)


def test_all_groups_of_a_node_are_listed_once_all_are_loaded():
    async def story(broker: Any, disk: Any) -> None:
        broker.create("t", (1,))
        broker.create(TOPIC, *[(1,)] * 5)
        reply = await broker.call(list_groups, 5)
        assert reply.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        await asyncio.sleep(0.1)
        stage = Coordination.__new__(Coordination)
        stage.broker = broker
        for i in range(20):
            await stage.commit(i, f"g{i}")
        reply = await broker.call(list_groups, 5)
        assert {group.group_id for group in reply.groups} == {f"g{i}" for i in range(20)}
        assert {(group.group_state, group.group_type) for group in reply.groups} == {("Empty", "classic")}
        assert not (await broker.call(list_groups, 5, states_filter=["stable"])).groups
        assert len((await broker.call(list_groups, 5, types_filter=["Classic"])).groups) == 20

    in_simulation(story)


def test_the_offsets_topic_is_created_when_it_is_first_asked_for():
    async def story(broker: Any, disk: Any) -> None:
        first, second = [await broker.call(find_coordinator, 4, key_type=0, coordinator_keys=["g"]) for _ in range(2)]
        assert {reply.coordinators[0].error_code for reply in (first, second)} == {ErrorCode.COORDINATOR_NOT_AVAILABLE}
        await asyncio.sleep(0.1)
        reply = await broker.call(find_coordinator, 4, key_type=0, coordinator_keys=["g", "h"])
        assert [(c.key, c.error_code, c.node_id, c.host, c.port) for c in reply.coordinators] == [
            ("g", 0, 1, "host1", 9091),
            ("h", 0, 1, "host1", 9091),
        ]
        assert len(broker.image.topics[TOPIC].partitions) == 7
        assert broker.image.config(2, TOPIC) == {
            "cleanup.policy": "compact",
            "compression.type": "producer",
            "segment.bytes": "104857600",
        }

    in_simulation(story, offsets_topic_replication_factor="1", offsets_topic_num_partitions="7")


def test_too_few_brokers_for_the_offsets_topic_are_told_of_once():
    async def story(broker: Any, disk: Any) -> None:
        for _ in range(3):
            reply = await broker.call(find_coordinator, 4, key_type=0, coordinator_keys=["g"])
            assert reply.coordinators[0].error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
            await asyncio.sleep(0.1)
        [line] = [line for line in broker.lines if "could not create __consumer_offsets" in line]
        assert "INVALID_REPLICATION_FACTOR" in line
        broker.commit([registration(2), registration(3)])
        await broker.call(find_coordinator, 4, key_type=0, coordinator_keys=["g"])
        await asyncio.sleep(0.1)
        assert TOPIC in broker.image.topics

    in_simulation(story)


def test_whoever_waits_when_the_node_stops_is_told_so():
    async def story(broker: Any, disk: Any) -> None:
        stage = await Coordination(broker, disk, 1, 2, 3).loaded()
        join, commit = stage.join(), stage.commit(5, "h")
        await asyncio.sleep(0.01)
        assert not join.done()
        broker.groups.close()
        assert (await join).error_code == ErrorCode.NOT_COORDINATOR
        assert committed(await commit) == ErrorCode.NOT_COORDINATOR
        broker.change(TOPIC, leader=1)
        assert committed(await stage.commit(5)) == ErrorCode.NOT_COORDINATOR

    in_simulation(story)
