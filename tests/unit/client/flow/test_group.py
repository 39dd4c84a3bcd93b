"""A consumer in its group, in a simulated world: where it begins, what it commits and when, and who it asks."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from strandline.client.aio import AsyncClient, Consumer, ConsumerConfig
from strandline.client.flow.group_descriptions import OffsetAndMetadata
from strandline.errors import ErrorCode, KafkaError
from strandline.sim.world import World

from .group_broker import GroupCluster, serve_node

JOIN_GROUP, HEARTBEAT, LEAVE_GROUP, OFFSET_COMMIT, CONSUMER_HEARTBEAT = 11, 12, 13, 8, 68
KEY = ("t", 0)


class Stage:
    """What a story has at hand."""

    def __init__(self, world: World, cluster: GroupCluster, client: AsyncClient) -> None:
        self.world = world
        self.cluster = cluster
        self.client = client
        self.told: list[str] = []

    def consumer(self, **config: Any) -> Consumer:
        settings = {"auto_offset_reset": "earliest", "group_id": "g"} | config
        return Consumer(self.client, ConsumerConfig(**settings))

    def member(self, name: str = "a", **config: Any) -> Consumer:
        consumer = self.consumer(**config)

        def note(what: str) -> Callable[[list[tuple[str, int]]], None]:
            return lambda partitions: self.told.append(f"{name} {what} {len(partitions)}")

        consumer.subscribe(["t"], on_assigned=note("assigned"), on_revoked=note("revoked"), on_lost=note("lost"))
        return consumer

    @property
    def now(self) -> float:
        return self.world.loop.time()


async def take(consumer: Consumer, count: int) -> list[bytes | None]:
    values: list[bytes | None] = []
    while len(values) < count:
        values += [record.value for record in await consumer.poll(1.0, count - len(values))]
    return values


def play(story: Callable[[Stage], Awaitable[None]], records: int = 10) -> GroupCluster:
    cluster = GroupCluster(records)
    with World(1) as world:
        nodes = {node: world.node(f"broker{node}") for node in (1, 2)}
        room = world.node("client")

        async def act() -> None:
            async with AsyncClient("broker1:9092", clock=room.clock, randomness=room.randomness) as client:
                await story(Stage(world, cluster, client))

        async def main() -> None:
            for number, node in nodes.items():
                await node.spawn(serve_node(cluster, number))
            await room.spawn(act())

        world.run(main(), until=600)
    return cluster


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_the_next_one_goes_on_where_the_last_one_closed(protocol: str) -> None:
    async def story(stage: Stage) -> None:
        first = stage.member(group_protocol=protocol)
        assert await take(first, 4) == [b"0", b"1", b"2", b"3"]
        assert first.group_metadata().generation_id > 0
        assert first.subscription() == ["t"]
        await first.close()
        assert stage.cluster.committed == {0: 4}
        second = stage.member("b", group_protocol=protocol)
        assert await take(second, 2) == [b"4", b"5"]
        assert await second.position(*KEY) == 6
        assert stage.told == ["a assigned 1", "a revoked 1", "b assigned 1"]
        await second.close()

    cluster = play(story)
    if protocol == "classic":
        assert LEAVE_GROUP in cluster.apis()
    else:
        assert cluster.asked[-1][2].member_epoch == -1


def test_without_automatic_commits_only_what_is_committed_counts() -> None:
    async def story(stage: Stage) -> None:
        consumer = stage.member(enable_auto_commit=False)
        await take(consumer, 4)
        await consumer.commit({KEY: OffsetAndMetadata(2, -1, "note")})
        assert await consumer.committed([KEY]) == {KEY: OffsetAndMetadata(2)}
        await consumer.close()
        assert stage.cluster.committed == {0: 2}

    play(story)


def test_an_automatic_commit_holds_what_was_given_before_the_application_came_back() -> None:
    async def story(stage: Stage) -> None:
        consumer = stage.member()
        await take(consumer, 3)
        await asyncio.sleep(6.0)
        assert stage.cluster.committed == {}, "nobody knows yet whether the three are done with"
        await consumer.poll(0.0, 2)
        await asyncio.sleep(1.0)
        assert stage.cluster.committed == {0: 3}, "the two that this poll gave are not among them"
        await consumer.close()
        assert stage.cluster.committed == {0: 5}

    play(story)


def test_what_an_iteration_has_not_given_is_not_committed_but_comes_again() -> None:
    async def story(stage: Stage) -> None:
        consumer = stage.member()
        async for record in consumer:
            if record.offset == 2:
                break
        assert await consumer.position(*KEY) == 3
        await consumer.commit()
        assert stage.cluster.committed == {0: 3}
        assert [record.offset for record in await consumer.poll(1.0, 2)] == [3, 4]
        await consumer.close()
        assert stage.cluster.committed == {0: 5}

    play(story)


def test_what_is_to_be_given_up_is_committed_before_the_group_is_rejoined() -> None:
    async def story(stage: Stage) -> None:
        first = stage.member()
        await take(first, 3)
        stage.cluster.asked.clear()
        second = stage.member("b")
        polling = asyncio.ensure_future(second.poll(20.0))
        await asyncio.sleep(4.0)
        assert stage.told == ["a assigned 1"]
        await first.poll(1.0, 1)
        await polling
        await first.poll(0.0)
        assert stage.told[1] == "a revoked 1"
        keys = [key for key in stage.cluster.apis() if key in (JOIN_GROUP, OFFSET_COMMIT)]
        # The other asks for its member id, then joins; this one commits, then rejoins.
        assert keys[:4] == [JOIN_GROUP, JOIN_GROUP, OFFSET_COMMIT, JOIN_GROUP]
        assert stage.cluster.offsets_committed()[0] == 3
        await first.close()
        await second.close()

    play(story)


def test_heartbeats_go_on_in_the_background_until_the_application_is_too_late() -> None:
    async def story(stage: Stage) -> None:
        consumer = stage.member(max_poll_interval_ms=10_000)
        await take(consumer, 1)
        stage.cluster.asked.clear()
        await asyncio.sleep(9.5)
        assert stage.cluster.apis() == [HEARTBEAT] * 3
        await asyncio.sleep(10.0)
        assert stage.cluster.apis() == [HEARTBEAT] * 3 + [LEAVE_GROUP]
        with pytest.raises(KafkaError, match="UNKNOWN_MEMBER_ID"):
            await consumer.commit()
        assert await take(consumer, 1) == [b"0"], "nothing was committed, so it begins again"
        assert stage.told == ["a assigned 1", "a lost 1", "a assigned 1"]
        await consumer.close()

    play(story)


def test_a_coordinator_that_closes_the_connection_is_looked_for_at_once() -> None:
    async def story(stage: Stage) -> None:
        consumer = stage.member()
        await take(consumer, 1)
        stage.cluster.asked.clear()
        stage.cluster.coordinator = 1
        stage.world.network.reset_connections("client", "broker2")
        await asyncio.sleep(0.5)
        assert (1, HEARTBEAT) in [(node, key) for node, key, _ in stage.cluster.asked]
        await consumer.commit()
        assert stage.cluster.committed == {0: 1}
        assert stage.told == ["a assigned 1"]
        await consumer.close()

    play(story)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_coordinator_that_moved_is_found_and_nothing_is_lost(protocol: str) -> None:
    async def story(stage: Stage) -> None:
        consumer = stage.member(group_protocol=protocol)
        await take(consumer, 1)
        stage.cluster.coordinator = 1
        await consumer.commit()
        assert stage.cluster.committed == {0: 1}
        await asyncio.sleep(6.0)
        assert await take(consumer, 1) == [b"1"]
        assert stage.told == ["a assigned 1"]
        await consumer.close()

    play(story)


def test_a_commit_that_is_tried_again_does_not_undo_a_later_one() -> None:
    async def story(stage: Stage) -> None:
        consumer = stage.member()
        await take(consumer, 1)
        stage.cluster.refuse_commits = [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS] * 2
        stage.cluster.lose_commits = 1
        await asyncio.gather(consumer.commit({KEY: 1}), consumer.commit({KEY: 2}), consumer.commit({KEY: 3}))
        assert stage.cluster.offsets_committed() == [1, 1, 1, 2, 3]
        assert stage.cluster.committed == {0: 3}
        await consumer.close()

    play(story)


def test_a_stale_epoch_is_learnt_with_a_heartbeat_and_the_commit_tried_again() -> None:
    async def story(stage: Stage) -> None:
        consumer = stage.member(group_protocol="consumer")
        await take(consumer, 1)
        await asyncio.sleep(0.5)
        stage.cluster.asked.clear()
        stage.cluster.refuse_commits = [ErrorCode.STALE_MEMBER_EPOCH]
        stage.cluster.consumer.epoch += 1
        began = stage.now
        await consumer.commit()
        assert stage.now - began < 0.2
        assert stage.cluster.apis() == [OFFSET_COMMIT, CONSUMER_HEARTBEAT, OFFSET_COMMIT]
        first, second = (request for _, key, request in stage.cluster.asked if key == OFFSET_COMMIT)
        assert second.generation_id_or_member_epoch == first.generation_id_or_member_epoch + 1
        await consumer.close()

    play(story)


@pytest.mark.parametrize("code", [ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID])
def test_a_commit_that_finds_the_member_fenced_fails_and_it_joins_again(code: ErrorCode) -> None:
    async def story(stage: Stage) -> None:
        consumer = stage.member()
        await take(consumer, 2)
        stage.cluster.refuse_commits = [code]
        if code is ErrorCode.UNKNOWN_MEMBER_ID:
            stage.cluster.classic.members.clear()
        with pytest.raises(KafkaError, match=code.name):
            await consumer.commit()
        assert await take(consumer, 1) == [b"0"]
        assert stage.told == ["a assigned 1", "a lost 1", "a assigned 1"]
        await consumer.commit()
        assert stage.cluster.committed == {0: 1}
        await consumer.close()

    play(story)


def test_what_was_to_be_committed_before_the_member_was_fenced_is_not_committed_after_it() -> None:
    async def story(stage: Stage) -> None:
        consumer = stage.member(enable_auto_commit=False)
        await take(consumer, 5)
        consumer.pause([KEY])
        stage.cluster.refuse_commits = [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS] * 1000
        committing = asyncio.ensure_future(consumer.commit())
        stage.cluster.classic.refuse_next[HEARTBEAT] = ErrorCode.UNKNOWN_MEMBER_ID
        # Told and joined again before the commit is tried the next time.
        assert [record.offset for record in await consumer.poll(10.0, 1)] == [0]
        assert not committing.done()
        assert stage.told == ["a assigned 1", "a lost 1", "a assigned 1"]
        # Others had the partition meanwhile, and may have committed more.
        stage.cluster.refuse_commits.clear()
        with pytest.raises(KafkaError, match="others of group 'g' may have the partitions"):
            await committing
        assert stage.cluster.committed == {}
        await consumer.close()

    play(story)


def test_what_a_commit_meant_for_another_topic_of_that_name_is_not_committed() -> None:
    async def story(stage: Stage) -> None:
        consumer = stage.member(enable_auto_commit=False)
        await take(consumer, 1)
        stage.cluster.refuse_commits = [ErrorCode.UNKNOWN_TOPIC_ID] * 5
        with pytest.raises(KafkaError, match="UNKNOWN_TOPIC_ID"):
            await consumer.commit()
        assert stage.cluster.committed == {}
        await consumer.close()

    play(story)


def test_partitions_assigned_by_hand_commit_as_nobody_and_begin_where_the_group_was() -> None:
    async def story(stage: Stage) -> None:
        stage.cluster.committed = {0: 7}
        consumer = stage.consumer()
        consumer.assign([KEY])
        assert await take(consumer, 2) == [b"7", b"8"]
        with pytest.raises(ValueError, match="by hand"):
            consumer.subscribe(["t"])
        await consumer.commit()
        (_, _, request) = stage.cluster.asked[-1]
        assert (request.member_id, request.generation_id_or_member_epoch) == ("", -1)
        assert stage.cluster.committed == {0: 9}
        await consumer.close()
        assert JOIN_GROUP not in stage.cluster.apis()

    play(story)


def test_who_unsubscribes_leaves_and_may_subscribe_again() -> None:
    async def story(stage: Stage) -> None:
        consumer = stage.member()
        await take(consumer, 2)
        with pytest.raises(ValueError, match="the group assigns"):
            consumer.assign([KEY])
        await consumer.unsubscribe()
        assert (consumer.assignment(), consumer.subscription()) == ([], [])
        assert stage.cluster.apis()[-1] == LEAVE_GROUP
        consumer.subscribe(["t"])
        assert await take(consumer, 1) == [b"2"]
        await consumer.close()

    play(story)


def test_who_waits_long_for_an_answer_does_not_make_others_wait_as_long() -> None:
    async def story(stage: Stage) -> None:
        patient, hasty = stage.consumer(), stage.consumer(group_id="h")
        hasty.assign([KEY])
        await take(hasty, 1)
        await asyncio.sleep(60)
        stage.cluster.hears_commits = False
        waiting = asyncio.ensure_future(patient.commit({KEY: 1}, timeout_ms=20_000))
        await asyncio.sleep(0.1)
        began = stage.now
        with pytest.raises(KafkaError):
            await hasty.commit({KEY: 1}, timeout_ms=1_000)
        assert stage.now - began < 3
        stage.cluster.hears_commits = True
        await waiting

    play(story)


def test_who_closes_waits_no_longer_than_it_wants_to() -> None:
    async def story(stage: Stage) -> None:
        consumer = stage.member(auto_commit_interval_ms=1000)
        await take(consumer, 4)
        stage.cluster.hears_commits = False
        await asyncio.sleep(2)
        await take(consumer, 2)  # a commit is under way, and does not answer
        began = stage.now
        await consumer.close(timeout_s=1.0)
        assert stage.now - began == pytest.approx(1.0, abs=0.1)
        assert stage.told[-1] == "a revoked 1"
        await asyncio.sleep(0.1)

    assert play(story).apis()[-1] == LEAVE_GROUP


def test_a_callback_may_seek_commit_and_be_a_coroutine() -> None:
    async def story(stage: Stage) -> None:
        consumer = stage.consumer(enable_auto_commit=False)

        async def on_assigned(partitions: list[tuple[str, int]]) -> None:
            await asyncio.sleep(0.1)
            for topic, partition in partitions:
                consumer.seek(topic, partition, 6)

        async def on_revoked(_: list[tuple[str, int]]) -> None:
            await consumer.commit()

        consumer.subscribe(["t"], on_assigned=on_assigned, on_revoked=on_revoked)
        assert await take(consumer, 2) == [b"6", b"7"]
        await consumer.close()
        assert stage.cluster.committed == {0: 8}

    play(story)


def test_what_a_callback_raises_is_raised_by_the_poll_and_the_change_holds() -> None:
    async def story(stage: Stage) -> None:
        consumer = stage.consumer()

        def on_assigned(_: list[tuple[str, int]]) -> None:
            raise RuntimeError("not today")

        consumer.subscribe(["t"], on_assigned=on_assigned)
        with pytest.raises(RuntimeError, match="not today"):
            await consumer.poll(5.0)
        assert consumer.assignment() == [KEY]
        assert await take(consumer, 1) == [b"0"]
        await consumer.close()

    play(story)


def test_an_instance_id_that_another_has_is_an_error_of_the_poll() -> None:
    async def story(stage: Stage) -> None:
        consumer = stage.member(group_instance_id="i")
        await take(consumer, 1)
        stage.cluster.classic.refuse_next[HEARTBEAT] = ErrorCode.FENCED_INSTANCE_ID
        await asyncio.sleep(4.0)
        with pytest.raises(KafkaError, match="FENCED_INSTANCE_ID"):
            await consumer.poll(1.0)
        assert stage.told == ["a assigned 1", "a lost 1"]
        await consumer.close()

    cluster = play(story)
    assert LEAVE_GROUP not in cluster.apis()


def test_a_consumer_without_a_group_says_so() -> None:
    async def story(stage: Stage) -> None:
        consumer = stage.consumer(group_id=None)
        with pytest.raises(KafkaError, match="no group_id"):
            consumer.subscribe(["t"])
        with pytest.raises(KafkaError, match="no group_id"):
            await consumer.commit()
        with pytest.raises(ValueError, match="one of the two"):
            consumer.subscribe()

    play(story)
