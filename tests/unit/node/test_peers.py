"""Connections to other nodes: opened when needed, shared, and news when they end."""

# mypy: allow-incomplete-defs, allow-untyped-defs, disable-error-code="arg-type"

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from strandline.client.errors import ConnectionLost, UnsupportedApi
from strandline.config.dynamic import DynamicConfig
from strandline.node.peers import NotSent, Peers
from strandline.raft.messages import Address
from strandline.runtime.clock import SystemClock
from strandline.sim.network import NetworkLink
from strandline.sim.world import World
from strandline.wire import messages

from .scripted import HANG_UP, SILENCE, Controller, config_of, quiet_logger

HEARTBEAT, ALLOCATE = 63, 67
Beat, Beaten = messages.request(HEARTBEAT), messages.response(HEARTBEAT)
ADDRESS = Address("c1", 9093)


class Stage:
    def __init__(self, world: World, settings: dict[str, str]) -> None:
        self.world = world
        self.controller = Controller({HEARTBEAT: lambda request: Beaten(is_fenced=bool(request.broker_epoch % 2))})
        self.closed: list[tuple[int, str]] = []
        self.settings = settings
        self.peers: Peers

    def make(self) -> None:
        node = self.world.node("b1")
        self.peers = Peers(
            DynamicConfig(config_of(**self.settings)),
            node.clock,
            node.randomness,
            quiet_logger(),
            lambda node_id, purpose: self.closed.append((node_id, purpose)),
        )

    async def beat(self, epoch: int = 0, timeout_s: float = 5.0, purpose: str = "control") -> Any:
        peer = self.peers.connection(1, ADDRESS, purpose)
        return await peer.ask(HEARTBEAT, Beat(broker_id=1, broker_epoch=epoch), timeout_s)


def play(story: Callable[[Stage], Coroutine[Any, Any, None]], *, serving: bool = True, **settings: str) -> Stage:
    with World(1) as world:
        stage = Stage(world, settings)
        controller, broker = world.node("c1"), world.node("b1")

        async def body() -> None:
            stage.make()
            await story(stage)
            await stage.peers.close()

        async def main() -> None:
            if serving:
                await controller.spawn(stage.controller.serve())
            await broker.spawn(body())

        world.run(main())
        return stage


def test_a_connection_is_opened_on_first_use_and_kept():
    async def story(stage: Stage) -> None:
        assert stage.controller.accepted == 0
        assert (await stage.beat(1)).is_fenced
        assert not (await stage.beat(2)).is_fenced

    stage = play(story)
    assert stage.controller.accepted == 1
    assert stage.closed == [], "we closed it ourselves"


def test_requests_that_wait_for_a_connection_share_one_attempt_and_keep_their_order():
    async def story(stage: Stage) -> None:
        replies = await asyncio.gather(*(stage.beat(epoch) for epoch in range(10)))
        assert [reply.is_fenced for reply in replies] == [bool(epoch % 2) for epoch in range(10)]

    stage = play(story)
    assert stage.controller.accepted == 1
    assert [request.broker_epoch for request in stage.controller.requests(HEARTBEAT)] == list(range(10))


def test_each_purpose_has_a_connection_of_its_own():
    async def story(stage: Stage) -> None:
        stage.controller.scripts[ALLOCATE] = lambda request: SILENCE
        slow = stage.peers.connection(1, ADDRESS, "forward")
        asking = asyncio.ensure_future(slow.ask(ALLOCATE, messages.request(ALLOCATE)(), 5.0))
        await stage.beat()
        asking.cancel()

    assert play(story).controller.accepted == 2


def test_a_connection_that_ends_is_news_once_and_is_opened_again():
    async def story(stage: Stage) -> None:
        await stage.beat()
        stage.controller.hang_up()
        await asyncio.sleep(0.5)
        assert stage.closed == [(1, "control")]
        await stage.beat()

    stage = play(story)
    assert stage.closed == [(1, "control")]
    assert stage.controller.accepted == 2


def test_a_request_on_a_connection_that_ends_may_have_been_done():
    async def story(stage: Stage) -> None:
        stage.controller.scripts[HEARTBEAT] = lambda request: HANG_UP
        with pytest.raises(ConnectionLost) as lost:
            await stage.beat()
        assert not isinstance(lost.value, NotSent)
        assert stage.closed == [(1, "control")]

    play(story)


def test_where_nobody_listens_nothing_was_sent_and_nothing_is_news():
    async def story(stage: Stage) -> None:
        with pytest.raises(NotSent, match="c1:9093"):
            await stage.beat()
        assert stage.closed == []

    play(story, serving=False)


def test_attempts_do_not_spin():
    async def story(stage: Stage) -> None:
        begun = asyncio.get_running_loop().time()
        for _ in range(20):
            with pytest.raises(NotSent):
                await stage.beat()
        assert asyncio.get_running_loop().time() - begun > 0.19

    play(story, serving=False)


def test_an_attempt_takes_no_longer_than_the_setup_timeout():
    async def story(stage: Stage) -> None:
        stage.world.network.cut("b1", "c1")
        loop = asyncio.get_running_loop()
        begun = loop.time()
        with pytest.raises(NotSent, match="in time"):
            await stage.beat(timeout_s=0.5)
        assert loop.time() - begun == pytest.approx(0.5, abs=0.01)
        with pytest.raises(NotSent, match="cannot connect"):
            await stage.beat(timeout_s=60.0)  # the same attempt goes on
        assert loop.time() - begun == pytest.approx(2.0, abs=0.1)

    play(story, socket_connection_setup_timeout_ms="2000")


def test_a_reply_that_does_not_come_ends_the_connection_in_time_though_an_earlier_request_has_longer():
    async def story(stage: Stage) -> None:
        stage.controller.scripts[HEARTBEAT] = lambda request: SILENCE
        loop = asyncio.get_running_loop()
        patient = asyncio.ensure_future(stage.beat(timeout_s=60.0))
        await asyncio.sleep(0.1)
        begun = loop.time()
        with pytest.raises(ConnectionLost, match="did not answer in time"):
            await stage.beat(timeout_s=1.0)
        assert loop.time() - begun == pytest.approx(1.0, abs=0.01)
        with pytest.raises(ConnectionLost):
            await patient
        assert stage.closed == [(1, "control")]

    play(story)


def test_an_idle_connection_is_closed_and_that_is_no_news():
    async def story(stage: Stage) -> None:
        await stage.beat()
        await asyncio.sleep(5.0)
        await stage.beat()
        await asyncio.sleep(8.9)
        assert len(stage.controller.connections) == 1
        await asyncio.sleep(0.3)
        assert stage.controller.connections == []
        await stage.beat()

    stage = play(story, connections_max_idle_ms="10000")
    assert stage.closed == []
    assert stage.controller.accepted == 2


def test_a_request_in_flight_keeps_its_connection_from_being_idle():
    async def story(stage: Stage) -> None:
        stage.controller.scripts[HEARTBEAT] = lambda request: SILENCE
        asking = asyncio.ensure_future(stage.beat(timeout_s=100.0))
        await asyncio.sleep(50.0)
        assert len(stage.controller.connections) == 1
        asking.cancel()

    play(story, connections_max_idle_ms="10000")


def test_another_address_closes_the_connection_to_the_old_one():
    async def story(stage: Stage) -> None:
        await stage.beat()
        other = Controller({HEARTBEAT: lambda request: Beaten()})
        await stage.world.node("c2").spawn(other.serve())
        peer = stage.peers.connection(1, Address("c2", 9093), "control")
        await peer.ask(HEARTBEAT, Beat(), 5.0)
        assert other.accepted == 1
        await asyncio.sleep(0.5)
        assert stage.controller.connections == []
        assert stage.closed == []

    play(story)


def test_an_api_that_the_other_does_not_serve():
    async def story(stage: Stage) -> None:
        with pytest.raises(UnsupportedApi):
            await stage.peers.connection(1, ADDRESS, "control").ask(ALLOCATE, messages.request(ALLOCATE)(), 5.0)
        await stage.beat()

    assert play(story).controller.accepted == 1


def test_a_request_in_flight_and_an_attempt_end_when_the_node_stops():
    async def story(stage: Stage) -> None:
        stage.controller.scripts[HEARTBEAT] = lambda request: SILENCE
        stage.world.network.set_link("b1", "c2", NetworkLink(latency_s=30.0))
        stage.world.node("c2")
        in_flight = asyncio.ensure_future(stage.beat(timeout_s=1e6))
        opening = asyncio.ensure_future(stage.peers.connection(2, Address("c2", 1), "raft").ask(HEARTBEAT, Beat(), 1e6))
        await asyncio.sleep(0.5)
        await stage.peers.close()
        with pytest.raises(ConnectionLost):
            await in_flight
        with pytest.raises(NotSent):
            await opening
        with pytest.raises(NotSent, match="stopping"):
            await stage.beat()
        await asyncio.sleep(0.5)
        assert stage.controller.connections == []
        assert stage.closed == []

    play(story)


def test_a_connection_that_is_only_half_open_ends_too_when_the_node_stops():
    async def story(stage: Stage) -> None:
        stage.controller.is_mute = True
        opening = asyncio.ensure_future(stage.beat())
        await asyncio.sleep(0.5)
        assert len(stage.controller.connections) == 1
        await stage.peers.close()
        with pytest.raises(NotSent):
            await opening
        await asyncio.sleep(0.5)
        assert stage.controller.connections == []

    play(story)


def test_a_node_that_takes_connections_and_says_nothing_is_given_up():
    async def story(stage: Stage) -> None:
        stage.controller.is_mute = True
        begun = asyncio.get_running_loop().time()
        with pytest.raises(NotSent, match="did not answer in time"):
            await stage.beat(timeout_s=30.0)
        assert asyncio.get_running_loop().time() - begun == pytest.approx(2.0, abs=0.1)
        assert stage.closed == []

    play(story, socket_connection_setup_timeout_ms="2000")


@pytest.mark.parametrize("seed", range(5))
def test_every_request_ends_though_connections_break_at_any_byte(seed):
    controller = Controller({HEARTBEAT: lambda request: Beaten()})
    closed: list[int] = []
    with World(seed) as world:
        broker = world.node("b1")

        async def body() -> None:
            peers = Peers(
                DynamicConfig(config_of()),
                broker.clock,
                broker.randomness,
                quiet_logger(),
                lambda node, purpose: closed.append(node),
            )
            answered = 0
            for number in range(300):
                try:
                    await peers.connection(1, ADDRESS, "control").ask(HEARTBEAT, Beat(), 2.0)
                    answered += 1
                except ConnectionLost:
                    pass
                if number % 7 == 0:
                    world.loop.call_later(world.faults.random() * 0.01, world.network.reset_connections, "b1", "c1")
            assert answered > 200
            await peers.close()

        async def main() -> None:
            await world.node("c1").spawn(controller.serve())
            await broker.spawn(body())

        world.run(main())
    assert 10 < len(closed) <= controller.accepted


@pytest.mark.parametrize("address", [Address("a\0b", 9093), Address("x" * 300, 9093), Address("127.0.0.1", 70_000)])
async def test_an_address_that_is_none_is_only_out_of_reach(address: Address) -> None:
    peers = Peers(
        DynamicConfig(config_of()), SystemClock(), random.Random(1), quiet_logger(), lambda node_id, purpose: None
    )
    with pytest.raises(NotSent):
        await peers.connection(2, address, "raft").ask(HEARTBEAT, Beat(), 5.0)
    await peers.close()
