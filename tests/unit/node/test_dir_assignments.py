"""The controller learns in which log dir each replica is, whatever comes between."""

# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from strandline.config.dynamic import DynamicConfig
from strandline.controller.placement import UNASSIGNED_DIRECTORY
from strandline.errors import ErrorCode
from strandline.ids import Uuid
from strandline.metadata.image import MetadataImage, PartitionImage, TopicImage
from strandline.node.controller_channel import ControllerChannel
from strandline.node.dir_assignments import ASSIGNED_AT_ONCE_MAX, GATHERING_S, DirAssignments
from strandline.node.peers import Peers
from strandline.raft.messages import Address
from strandline.sim.world import World
from strandline.wire import messages

from .scripted import HANG_UP, SILENCE, Controller, config_of, quiet_logger

ASSIGN = 73
Reply = messages.response(ASSIGN)
TOPIC, OTHER = Uuid(bytes(15) + b"\7"), Uuid(bytes(15) + b"\x08")
A, B = Uuid(bytes(15) + b"\xa0"), Uuid(bytes(15) + b"\xb0")


def state(directory: Uuid | None = UNASSIGNED_DIRECTORY, replicas: tuple[int, ...] = (2, 1)) -> PartitionImage:
    """A partition with this in place of broker 1's log dir."""
    directories = () if directory is None else tuple(directory if replica == 1 else B for replica in replicas)
    return PartitionImage(replicas, replicas, replicas[0], 0, 0, directories=directories)


def image(count: int = 1, level: int = 30, **fields: Any) -> MetadataImage:
    topics = {id: TopicImage(str(id), id, (state(**fields),) * count) for id in (TOPIC, OTHER)}
    return MetadataImage(topics_by_id=topics, features={"metadata.version": level})


class Stage:
    def __init__(self) -> None:
        self.controller = Controller({ASSIGN: take_all})
        self.image = image()
        self.dirs: DirAssignments

    def is_in(self, directory: Uuid, index: int = 0, topic: Uuid = TOPIC) -> None:
        self.dirs.is_in(directory, TopicImage("t", topic, (state(),) * (index + 1)), index)

    @property
    def told(self) -> list[dict[tuple[Uuid, int], Uuid]]:
        return [
            {
                (Uuid(topic.topic_id), partition.partition_index): Uuid(directory.id)
                for directory in request.directories
                for topic in directory.topics
                for partition in topic.partitions
            }
            for request in self.controller.requests(ASSIGN)
        ]


def take_all(request: Any, code: int = 0) -> Any:
    return Reply(
        directories=[
            Reply.DirectoryData(
                id=directory.id,
                topics=[
                    Reply.TopicData(
                        topic_id=topic.topic_id,
                        partitions=[
                            Reply.PartitionData(partition_index=partition.partition_index, error_code=code)
                            for partition in topic.partitions
                        ],
                    )
                    for topic in directory.topics
                ],
            )
            for directory in request.directories
        ]
    )


def play(story: Callable[[Stage], Coroutine[Any, Any, None]]) -> Stage:
    with World(1) as world:
        stage, node = Stage(), world.node("b1")

        async def body() -> None:
            config = config_of()
            peers = Peers(
                DynamicConfig(config), node.clock, node.randomness, quiet_logger(), lambda node_id, purpose: None
            )
            leader = (1, 1, Address("c1", 9093))
            channel = ControllerChannel(peers, lambda: leader, config, node.randomness, quiet_logger())
            stage.dirs = DirAssignments(
                channel, 1, lambda: 9, lambda: stage.image, node.randomness, quiet_logger(), lambda task: None
            )
            await story(stage)
            await stage.dirs.close()
            await peers.close()

        async def main() -> None:
            await world.node("c1").spawn(stage.controller.serve())
            await node.spawn(body())

        world.run(main())
        return stage


async def until(reached: Callable[[], bool]) -> None:
    """To the very turn of the loop."""
    for _ in range(10_000):
        if reached():
            return
        await asyncio.sleep(0)
    pytest.fail("never reached")


def test_replicas_are_told_of_together_by_log_dir_and_topic():
    async def story(stage: Stage) -> None:
        stage.image = image(count=3)
        for index in range(3):
            stage.is_in(A, index)
            stage.is_in(B, index, OTHER)
        assert stage.dirs.waiting_count == 6
        await asyncio.sleep(2)
        assert stage.dirs.waiting_count == 0

    stage = play(story)
    [request] = stage.controller.requests(ASSIGN)
    assert (request.broker_id, request.broker_epoch) == (1, 9)
    shape = [(Uuid(d.id), [(Uuid(t.topic_id), len(t.partitions)) for t in d.topics]) for d in request.directories]
    assert shape == [(A, [(TOPIC, 3)]), (B, [(OTHER, 3)])]


def test_what_the_metadata_says_already_is_not_told():
    async def story(stage: Stage) -> None:
        stage.dirs.is_in(A, TopicImage("t", TOPIC, (state(A),)), 0)
        await asyncio.sleep(1)

    assert play(story).told == []


def test_the_newer_of_two_log_dirs_counts_also_if_the_first_is_on_its_way():
    async def story(stage: Stage) -> None:
        stage.is_in(A)
        stage.is_in(B)
        await until(lambda: bool(stage.told))
        stage.is_in(A)
        await asyncio.sleep(2)

    assert play(story).told == [{(TOPIC, 0): B}, {(TOPIC, 0): A}]


def test_thousands_go_in_several_requests_and_at_once():
    count = ASSIGNED_AT_ONCE_MAX * 2 + 5

    async def story(stage: Stage) -> None:
        stage.image = image(count)
        for index in range(count):
            stage.is_in(A, index)
        await asyncio.sleep(GATHERING_S + 1)

    assert [len(told) for told in play(story).told] == [ASSIGNED_AT_ONCE_MAX, ASSIGNED_AT_ONCE_MAX, 5]


def test_a_replica_that_is_not_here_any_more_is_not_told_of():
    async def story(stage: Stage) -> None:
        stage.image = image(replicas=(2, 3))
        stage.is_in(A)
        stage.is_in(A, 5)
        stage.is_in(A, topic=A)
        await asyncio.sleep(2)
        assert stage.dirs.waiting_count == 0

    assert play(story).told == []


def test_an_older_cluster_keeps_no_log_dirs():
    async def story(stage: Stage) -> None:
        stage.image = image(level=16)
        stage.is_in(A)
        await asyncio.sleep(2)
        stage.image = image(level=17)
        stage.is_in(A)
        await asyncio.sleep(2)

    assert len(play(story).told) == 1


@pytest.mark.parametrize("reply", [Reply(error_code=ErrorCode.STALE_BROKER_EPOCH), Reply(), HANG_UP, SILENCE])
def test_what_came_to_nothing_is_told_again(reply):
    async def story(stage: Stage) -> None:
        replies = [reply]
        stage.controller.scripts[ASSIGN] = lambda request: replies.pop() if replies else take_all(request)
        stage.is_in(A)
        await asyncio.sleep(60)
        assert stage.dirs.waiting_count == 0

    assert play(story).told == [{(TOPIC, 0): A}] * 2


def test_a_controller_that_does_not_know_the_topic_yet_is_told_again_and_the_others_are_done():
    async def story(stage: Stage) -> None:
        def half(request: Any) -> Any:
            reply = take_all(request)
            reply.directories[0].topics[0].partitions[0].error_code = ErrorCode.UNKNOWN_TOPIC_ID
            stage.controller.scripts[ASSIGN] = take_all
            return reply

        stage.controller.scripts[ASSIGN] = half
        stage.is_in(A)
        stage.is_in(A, topic=OTHER)
        await asyncio.sleep(2)

    assert [len(told) for told in play(story).told] == [2, 1]


def test_a_deleted_topic_ends_the_attempts():
    async def story(stage: Stage) -> None:
        stage.controller.scripts[ASSIGN] = lambda request: take_all(request, ErrorCode.UNKNOWN_TOPIC_ID)
        stage.is_in(A)
        await asyncio.sleep(1)
        stage.image = MetadataImage(features=stage.image.features)
        await asyncio.sleep(30)
        assert stage.dirs.waiting_count == 0

    assert len(play(story).told) < 6


def test_one_that_comes_just_when_all_others_are_told():
    async def story(stage: Stage) -> None:
        stage.image = image(count=6)
        for index in range(6):
            stage.is_in(A, index)
            await until(lambda: not stage.dirs.waiting_count)
            for _ in range(index):
                await asyncio.sleep(0)

    assert len(play(story).told) == 6


def test_once_closed_nothing_is_told():
    async def story(stage: Stage) -> None:
        stage.is_in(A)
        await stage.dirs.close()
        stage.is_in(B)
        await asyncio.sleep(5)

    assert play(story).told == []
