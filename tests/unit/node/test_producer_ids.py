"""Producer ids come in blocks, each once."""

# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from strandline.config.dynamic import DynamicConfig
from strandline.errors import ErrorCode, KafkaError
from strandline.node.controller_channel import ControllerChannel
from strandline.node.peers import Peers
from strandline.node.producer_ids import ProducerIds
from strandline.raft.messages import Address
from strandline.sim.world import World
from strandline.wire import messages

from .scripted import HANG_UP, SILENCE, Controller, config_of, quiet_logger

ALLOCATE = 67
Block = messages.response(ALLOCATE)
SIZE = 10


class Blocks:
    """The controller's side."""

    def __init__(self) -> None:
        self.next_id = 0
        self.controller = Controller({ALLOCATE: self.allocate})

    def allocate(self, request: Any) -> Any:
        first, self.next_id = self.next_id, self.next_id + SIZE
        return Block(producer_id_start=first, producer_id_len=SIZE)

    @property
    def handed_out(self) -> int:
        return len(self.controller.asked)


def play(story: Callable[[Blocks, ProducerIds], Coroutine[Any, Any, None]]) -> Blocks:
    with World(1) as world:
        blocks = Blocks()
        node = world.node("b1")

        async def body() -> None:
            config = config_of()
            peers = Peers(
                DynamicConfig(config), node.clock, node.randomness, quiet_logger(), lambda node_id, purpose: None
            )
            leader = (1, 1, Address("c1", 9093))
            channel = ControllerChannel(peers, lambda: leader, config, node.randomness, quiet_logger())
            ids = ProducerIds(channel, 1, lambda: 42, quiet_logger())
            await story(blocks, ids)
            await ids.close()
            await peers.close()

        async def main() -> None:
            await world.node("c1").spawn(blocks.controller.serve())
            await node.spawn(body())

        world.run(main())
        return blocks


def test_ids_go_on_from_block_to_block():
    async def story(blocks: Blocks, ids: ProducerIds) -> None:
        assert [await ids.allocate() for _ in range(35)] == list(range(35))

    [request, *_] = play(story).controller.requests(ALLOCATE)
    assert (request.broker_id, request.broker_epoch) == (1, 42)


def test_the_next_block_is_there_before_this_one_is_used_up():
    async def story(blocks: Blocks, ids: ProducerIds) -> None:
        for _ in range(8):
            await ids.allocate()
        await asyncio.sleep(1.0)
        assert blocks.handed_out == 1
        await ids.allocate()
        await asyncio.sleep(1.0)
        assert blocks.handed_out == 2
        blocks.controller.stop()
        assert [await ids.allocate() for _ in range(11)] == list(range(9, 20))

    play(story)


def test_many_at_once_get_an_id_each():
    async def story(blocks: Blocks, ids: ProducerIds) -> None:
        got = await asyncio.gather(*(ids.allocate() for _ in range(95)))
        assert sorted(got) == list(range(95))
        assert blocks.handed_out == 10

    play(story)


def test_an_answer_that_is_lost_leaves_a_gap():
    async def story(blocks: Blocks, ids: ProducerIds) -> None:
        def lose(request: Any) -> Any:
            blocks.allocate(request)
            blocks.controller.scripts[ALLOCATE] = blocks.allocate
            return HANG_UP

        blocks.controller.scripts[ALLOCATE] = lose
        assert await ids.allocate() == SIZE

    play(story)


@pytest.mark.parametrize(
    "reply",
    [
        Block(error_code=ErrorCode.STALE_BROKER_EPOCH),
        Block(error_code=ErrorCode.BROKER_ID_NOT_REGISTERED),
        Block(producer_id_start=0, producer_id_len=0),
        Block(producer_id_start=-5, producer_id_len=10),
        Block(producer_id_start=2**63 - 5, producer_id_len=10),
        SILENCE,
    ],
)
def test_without_a_block_a_producer_tries_again_later(reply):
    async def story(blocks: Blocks, ids: ProducerIds) -> None:
        blocks.controller.scripts[ALLOCATE] = lambda request: reply
        with pytest.raises(KafkaError) as refused:
            await ids.allocate()
        assert refused.value.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        blocks.controller.scripts[ALLOCATE] = blocks.allocate
        assert await ids.allocate() == 0

    play(story)


def test_a_block_that_was_given_before_is_refused():
    async def story(blocks: Blocks, ids: ProducerIds) -> None:
        given = [await ids.allocate() for _ in range(8)]
        blocks.next_id = SIZE - 1
        given += [await ids.allocate() for _ in range(2)]
        with pytest.raises(KafkaError):
            await ids.allocate()
        given.append(await ids.allocate())
        assert len(set(given)) == len(given)

    play(story)


def test_a_producer_that_goes_away_takes_nothing_from_the_others():
    async def story(blocks: Blocks, ids: ProducerIds) -> None:
        first, second = (asyncio.ensure_future(ids.allocate()) for _ in range(2))
        await asyncio.sleep(0)
        first.cancel()
        assert await second == 0
        assert blocks.handed_out == 1

    play(story)


def test_who_waits_is_told_when_the_node_stops():
    async def story(blocks: Blocks, ids: ProducerIds) -> None:
        blocks.controller.scripts[ALLOCATE] = lambda request: SILENCE
        waiting = asyncio.ensure_future(ids.allocate())
        await asyncio.sleep(1.0)
        await ids.close()
        with pytest.raises(KafkaError, match="stopping"):
            await waiting

    play(story)
