"""Requests find the active controller, whoever that is and becomes."""

# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from strandline.client.errors import ConnectionLost, UnsupportedApi
from strandline.config.dynamic import DynamicConfig
from strandline.errors import ErrorCode, KafkaError
from strandline.node.controller_channel import ControllerChannel
from strandline.node.peers import Peers
from strandline.raft.messages import Address
from strandline.sim.network import NetworkLink
from strandline.sim.world import World
from strandline.wire import messages

from .scripted import HANG_UP, SILENCE, Controller, Script, config_of, quiet_logger

HEARTBEAT, ENVELOPE = 63, 58
Beat, Beaten, Wrapped = messages.request(HEARTBEAT), messages.response(HEARTBEAT), messages.response(ENVELOPE)


def fine(request: Any) -> Any:
    return Beaten(is_caught_up=True)


def elsewhere(request: Any) -> Any:
    return Beaten(error_code=ErrorCode.NOT_CONTROLLER)


class Stage:
    def __init__(self, world: World) -> None:
        self.world = world
        world.network.default_link = NetworkLink(spike_probability=0.0)
        self.controllers = {number: Controller({HEARTBEAT: fine}) for number in (1, 2)}
        self.leader: tuple[int, int, Address | None] = (1, 1, Address("c1", 9093))
        self.channel: ControllerChannel

    def make(self) -> Peers:
        node = self.world.node("b1")
        config = config_of()
        peers = Peers(DynamicConfig(config), node.clock, node.randomness, quiet_logger(), lambda node_id, purpose: None)
        self.channel = ControllerChannel(peers, lambda: self.leader, config, node.randomness, quiet_logger())
        return peers

    def script(self, number: int, script: Script, api_key: int = HEARTBEAT) -> None:
        self.controllers[number].scripts[api_key] = script

    def elect(self, number: int) -> None:
        self.leader = (self.leader[0] + 1, number, Address(f"c{number}", 9093) if number > 0 else None)
        self.channel.leader_changed()

    async def beat(self, timeout_s: float = 5.0, *, retry: bool = True) -> Any:
        return await self.channel.ask(HEARTBEAT, Beat(broker_id=1), timeout_s, retry=retry)

    def asked(self, number: int) -> int:
        return len(self.controllers[number].asked)


def play(story: Callable[[Stage], Coroutine[Any, Any, None]], seed: int = 1) -> None:
    with World(seed) as world:
        stage = Stage(world)

        async def body() -> None:
            peers = stage.make()
            await story(stage)
            await peers.close()

        async def main() -> None:
            for number, controller in stage.controllers.items():
                await world.node(f"c{number}").spawn(controller.serve())
            await world.node("b1").spawn(body())

        world.run(main())


def test_it_asks_the_leader():
    async def story(stage: Stage) -> None:
        assert (await stage.beat()).is_caught_up
        assert (stage.asked(1), stage.asked(2)) == (1, 0)
        stage.elect(2)
        assert (await stage.beat()).is_caught_up
        assert (stage.asked(1), stage.asked(2)) == (1, 1)

    play(story)


def test_it_waits_until_a_leader_is_known():
    async def story(stage: Stage) -> None:
        stage.leader = (3, -1, None)
        asking = asyncio.ensure_future(stage.beat())
        await asyncio.sleep(2.0)
        stage.elect(2)
        await asking
        assert stage.asked(2) == 1

    play(story)


@pytest.mark.parametrize("leader", [(3, -1, None), (1, 1, Address("c1", 9093))], ids=["none", "silent"])
def test_who_gives_up_is_not_remembered(leader):
    async def story(stage: Stage) -> None:
        stage.leader = leader
        stage.script(1, lambda request: SILENCE)
        asking = asyncio.ensure_future(stage.beat())
        await asyncio.sleep(1.0)
        assert stage.channel._waiters
        asking.cancel()
        await asyncio.wait([asking])
        assert not stage.channel._waiters

    play(story)


def test_without_a_leader_the_time_runs_out():
    async def story(stage: Stage) -> None:
        stage.leader = (3, -1, None)
        begun = asyncio.get_running_loop().time()
        with pytest.raises(KafkaError, match="no leader of the quorum is known") as refused:
            await stage.beat(2.0)
        assert refused.value.code is ErrorCode.REQUEST_TIMED_OUT
        assert asyncio.get_running_loop().time() - begun == pytest.approx(2.0, abs=0.01)

    play(story)


def test_not_controller_is_asked_again_with_pauses_until_it_is():
    async def story(stage: Stage) -> None:
        stage.script(1, elsewhere)
        asyncio.get_running_loop().call_later(1.0, stage.script, 1, fine)
        begun = asyncio.get_running_loop().time()
        await stage.beat(retry=False)
        assert asyncio.get_running_loop().time() - begun == pytest.approx(1.05, abs=0.06)
        assert 10 < stage.asked(1) < 50

    play(story)


def test_not_controller_for_ever_is_a_timeout_that_says_so():
    async def story(stage: Stage) -> None:
        stage.script(1, elsewhere)
        with pytest.raises(KafkaError, match="node 1 is not the controller") as refused:
            await stage.beat(1.0)
        assert refused.value.code is ErrorCode.REQUEST_TIMED_OUT

    play(story)


def test_a_pause_ends_when_there_is_another_leader():
    async def story(stage: Stage) -> None:
        stage.script(1, elsewhere)
        asking = asyncio.ensure_future(stage.beat())
        await asyncio.sleep(0.5)
        stage.elect(2)
        begun = asyncio.get_running_loop().time()
        await asking
        assert asyncio.get_running_loop().time() - begun < 0.01

    play(story)


def test_a_request_that_may_have_been_done_is_sent_again_only_if_that_is_safe():
    async def story(stage: Stage) -> None:
        replies = iter([HANG_UP, Beaten(), HANG_UP])
        stage.script(1, lambda request: next(replies))
        await stage.beat()
        assert stage.asked(1) == 2
        with pytest.raises(ConnectionLost):
            await stage.beat(retry=False)
        assert stage.asked(1) == 3

    play(story)


def test_a_request_that_never_left_is_sent_again_whatever_it_is():
    async def story(stage: Stage) -> None:
        stage.controllers[1].stop()
        await asyncio.sleep(0.1)

        async def back() -> None:
            await asyncio.sleep(1.0)
            await stage.controllers[1].serve()

        stage.world.node("c1").spawn(back())
        await stage.beat(retry=False)
        assert stage.asked(1) == 1

    play(story)


def test_a_leader_that_is_silent_is_left_for_the_next_one_at_once():
    async def story(stage: Stage) -> None:
        stage.script(1, lambda request: SILENCE)
        asking = asyncio.ensure_future(stage.beat(30.0))
        await asyncio.sleep(1.0)
        assert stage.asked(1) == 1
        stage.elect(-1)
        await asyncio.sleep(0.5)
        assert not asking.done()
        stage.elect(2)
        begun = asyncio.get_running_loop().time()
        await asking
        assert asyncio.get_running_loop().time() - begun < 0.01
        assert stage.asked(2) == 1

    play(story)


def test_an_api_that_the_controller_does_not_serve_is_told():
    async def story(stage: Stage) -> None:
        with pytest.raises(UnsupportedApi):
            await stage.channel.ask(67, messages.request(67)(), 5.0)

    play(story)


def test_an_envelope_goes_its_own_way_and_comes_back_with_what_was_in_it():
    async def story(stage: Stage) -> None:
        stage.script(1, lambda request: Wrapped(response_data=request.request_data[::-1]), ENVELOPE)
        await stage.beat()
        assert await stage.channel.forward(b"frame", b"principal", bytes(4), 5.0) == b"emarf"
        [envelope] = stage.controllers[1].requests(ENVELOPE)
        assert (envelope.request_principal, envelope.client_host_address) == (b"principal", bytes(4))
        assert stage.controllers[1].accepted == 2

    play(story)


def test_a_slow_forwarded_request_does_not_delay_a_heartbeat():
    async def story(stage: Stage) -> None:
        stage.script(1, lambda request: SILENCE, ENVELOPE)
        forwarding = asyncio.ensure_future(stage.channel.forward(b"", b"", bytes(4), 30.0))
        await asyncio.sleep(0.1)
        begun = asyncio.get_running_loop().time()
        await stage.beat()
        assert asyncio.get_running_loop().time() - begun < 0.05
        forwarding.cancel()

    play(story)


@pytest.mark.parametrize("code", [ErrorCode.UNSUPPORTED_VERSION, ErrorCode.INVALID_REQUEST])
def test_an_error_of_the_envelope_is_raised(code):
    async def story(stage: Stage) -> None:
        stage.script(1, lambda request: Wrapped(error_code=code), ENVELOPE)
        with pytest.raises(KafkaError) as refused:
            await stage.channel.forward(b"", b"", bytes(4), 5.0)
        assert refused.value.code is code

    play(story)


def test_an_envelope_to_the_wrong_controller_or_lost_on_the_way_is_sent_again():
    async def story(stage: Stage) -> None:
        replies = iter([Wrapped(error_code=ErrorCode.NOT_CONTROLLER), HANG_UP, Wrapped(response_data=b"done")])
        stage.script(1, lambda request: next(replies), ENVELOPE)
        assert await stage.channel.forward(b"", b"", bytes(4), 5.0) == b"done"

    play(story)


def test_a_controller_that_knows_no_envelope_is_no_matter_of_the_clients_version():
    async def story(stage: Stage) -> None:
        with pytest.raises(KafkaError) as refused:
            await stage.channel.forward(b"", b"", bytes(4), 5.0)
        assert refused.value.code is ErrorCode.UNKNOWN_SERVER_ERROR

    play(story)


@pytest.mark.parametrize("seed", range(5))
def test_each_request_is_answered_though_leaders_change_and_connections_break(seed):
    async def story(stage: Stage) -> None:
        chance = stage.world.faults

        async def trouble() -> None:
            while True:
                await asyncio.sleep(chance.random() * 0.1)
                target = chance.choice([1, 2])
                stage.script(target, chance.choice([fine, fine, elsewhere]))
                stage.world.network.reset_connections("b1", f"c{target}")
                stage.elect(chance.choice([-1, 1, 2]))

        troubling = asyncio.ensure_future(trouble())
        for _ in range(200):
            assert (await stage.beat(60.0)).is_caught_up
        troubling.cancel()

    play(story, seed)
