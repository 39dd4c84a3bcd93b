"""A broker's life on a simulated network, with controllers that follow a script."""

# mypy: allow-incomplete-defs, allow-untyped-defs, disable-error-code="arg-type"

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from strandline.config.dynamic import DynamicConfig
from strandline.errors import ErrorCode
from strandline.ids import Uuid
from strandline.log.checkpoints import CLEAN_SHUTDOWN_FILE
from strandline.metadata.image import Endpoint
from strandline.node.broker_lifecycle import BrokerFacts, BrokerLifecycle, LifecycleFailed, previous_broker_epoch
from strandline.node.broker_state import BrokerState
from strandline.node.controller_channel import ControllerChannel
from strandline.node.log_dirs import LogDir, mark_clean
from strandline.node.peers import Peers
from strandline.raft.messages import Address
from strandline.sim.faults import Fault
from strandline.sim.network import NetworkLink
from strandline.sim.world import World
from strandline.wire import messages

from .scripted import SILENCE, Controller, config_of, quiet_logger

REGISTRATION, HEARTBEAT = 62, 63
Registered, Beaten = messages.response(REGISTRATION), messages.response(HEARTBEAT)
INCARNATION, DIR = Uuid(bytes([1]) * 16), Uuid(bytes([2]) * 16)


class Stage:
    """A broker b1, and controllers c1 and c2 that share what they know, as committed metadata."""

    def __init__(self, world: World, settings: dict[str, str]) -> None:
        world.network.default_link = NetworkLink(spike_probability=0.0)
        self.world = world
        self.config = config_of(**settings)
        self.registered_epoch = -1
        self.next_epoch = 10
        self.may_stop = False
        scripts = {REGISTRATION: self.register, HEARTBEAT: self.beat}
        self.controllers = {number: Controller(dict(scripts)) for number in (1, 2)}
        self.leader: tuple[int, int, Address | None] = (1, 1, Address("c1", 9093))
        self.failures: list[str] = []
        self.lifecycle: BrokerLifecycle

    def register(self, request: Any) -> Any:
        self.registered_epoch = self.next_epoch
        return Registered(broker_epoch=self.registered_epoch)

    def beat(self, request: Any) -> Any:
        if request.broker_epoch != self.registered_epoch:
            return Beaten(error_code=ErrorCode.STALE_BROKER_EPOCH)
        caught_up = request.current_metadata_offset >= self.registered_epoch
        return Beaten(
            is_caught_up=caught_up,
            is_fenced=request.want_fence or not caught_up,
            should_shut_down=request.want_shut_down and self.may_stop,
        )

    def make(self) -> Peers:
        node = self.world.node("b1")
        peers = Peers(DynamicConfig(self.config), node.clock, node.randomness, quiet_logger(), self._closed)
        self.channel = ControllerChannel(peers, lambda: self.leader, self.config, node.randomness, quiet_logger())
        facts = BrokerFacts(
            "cluster",
            INCARNATION,
            lambda: [Endpoint("PLAINTEXT", "b1", 9092, 0)],
            {"metadata.version": range(7, 31)},
            [DIR],
            3,
        )
        self.lifecycle = BrokerLifecycle(self.config, self.channel, facts, quiet_logger(), self.failures.append)
        return peers

    def _closed(self, node_id: int, purpose: str) -> None:
        if node_id == self.leader[1]:
            self.lifecycle.controller_changed()

    def elect(self, number: int) -> None:
        self.leader = (self.leader[0] + 1, number, Address(f"c{number}", 9093))
        self.channel.leader_changed()
        self.lifecycle.controller_changed()

    async def start(self) -> None:
        await self.lifecycle.register()
        self.lifecycle.metadata_applied(self.registered_epoch)
        await self.lifecycle.unfence()

    def beats(self, number: int = 1) -> list[Any]:
        return self.controllers[number].requests(HEARTBEAT)


def play(story: Callable[[Stage], Coroutine[Any, Any, None]], **settings: str) -> Stage:
    with World(1) as world:
        stage = Stage(world, settings)

        async def body() -> None:
            peers = stage.make()
            await story(stage)
            await stage.lifecycle.close()
            await peers.close()

        async def main() -> None:
            for number, controller in stage.controllers.items():
                await world.node(f"c{number}").spawn(controller.serve())
            await world.node("b1").spawn(body())

        world.run(main())
        return stage


def now() -> float:
    return asyncio.get_running_loop().time()


def test_it_registers_catches_up_and_is_unfenced_within_a_moment():
    async def story(stage: Stage) -> None:
        begun = now()
        await stage.start()
        assert now() - begun < 0.05
        assert stage.lifecycle.state is BrokerState.RUNNING
        assert stage.lifecycle.broker_epoch == 10

    stage = play(story, broker_rack="r1")
    [request] = stage.controllers[1].requests(REGISTRATION)
    assert (request.broker_id, request.cluster_id, request.incarnation_id) == (1, "cluster", INCARNATION)
    assert (request.rack, request.previous_broker_epoch, request.log_dirs) == ("r1", 3, [DIR])
    [listener] = request.listeners
    assert (listener.name, listener.host, listener.port, listener.security_protocol) == ("PLAINTEXT", "b1", 9092, 0)
    [feature] = request.features
    assert (feature.name, feature.min_supported_version, feature.max_supported_version) == ("metadata.version", 7, 30)


def test_it_is_not_unfenced_before_it_has_applied_its_registration():
    async def story(stage: Stage) -> None:
        await stage.lifecycle.register()
        unfencing = asyncio.ensure_future(stage.lifecycle.unfence())
        await asyncio.sleep(3.0)
        assert not unfencing.done()
        begun = now()
        stage.lifecycle.metadata_applied(10)
        await unfencing
        assert now() - begun < 0.05

    play(story)


def test_heartbeats_come_at_their_interval():
    async def story(stage: Stage) -> None:
        await stage.start()
        before = len(stage.beats())
        await asyncio.sleep(10.0)
        assert len(stage.beats()) - before == pytest.approx(20, abs=1)
        assert stage.controllers[1].accepted == 1

    play(story, broker_heartbeat_interval_ms="500")


def test_a_new_controller_hears_from_it_at_once():
    async def story(stage: Stage) -> None:
        await stage.start()
        await asyncio.sleep(0.1)
        stage.elect(2)
        await asyncio.sleep(0.02)
        assert len(stage.beats(2)) == 1

    play(story)


def test_a_connection_that_closes_is_made_again_at_once():
    async def story(stage: Stage) -> None:
        await stage.start()
        await asyncio.sleep(0.1)
        before = len(stage.beats())
        stage.controllers[1].hang_up()
        await asyncio.sleep(0.05)
        assert len(stage.beats()) == before + 1
        assert stage.controllers[1].accepted == 2

    play(story)


def test_a_frozen_controller_costs_nothing_once_there_is_another():
    async def story(stage: Stage) -> None:
        await stage.start()
        stage.world.node("c1").pause()
        await asyncio.sleep(0.7)  # a heartbeat is in flight to it
        stage.elect(2)
        await asyncio.sleep(0.05)
        assert len(stage.beats(2)) >= 1
        stage.world.node("c1").resume()

    play(story)


def test_a_registration_that_was_lost_is_made_again():
    async def story(stage: Stage) -> None:
        await stage.start()
        stage.registered_epoch, stage.next_epoch = -1, 77
        await asyncio.sleep(2.0)
        assert stage.lifecycle.broker_epoch == 77
        stage.lifecycle.metadata_applied(77)
        await asyncio.sleep(0.1)
        assert stage.lifecycle.state is BrokerState.RUNNING
        assert stage.controllers[1].requests(REGISTRATION)[-1].previous_broker_epoch == -1

    play(story)


def test_a_controlled_shutdown_waits_for_leave():
    async def story(stage: Stage) -> None:
        await stage.start()
        stopping = asyncio.ensure_future(stage.lifecycle.shut_down())
        await asyncio.sleep(0.1)
        assert not stopping.done()
        assert stage.lifecycle.state is BrokerState.PENDING_CONTROLLED_SHUTDOWN
        stage.may_stop = True
        await stopping
        told = len(stage.beats())
        assert stage.beats()[-1].want_shut_down
        await asyncio.sleep(5.0)
        assert len(stage.beats()) == told, "it is silent"

    play(story)


def test_a_shutdown_without_control_asks_nobody():
    async def story(stage: Stage) -> None:
        await stage.start()
        begun = now()
        await stage.lifecycle.shut_down()
        assert now() - begun < 0.001
        assert not any(request.want_shut_down for request in stage.beats())

    play(story, controlled_shutdown_enable="false")


def test_a_shutdown_without_a_controller_takes_a_second():
    async def story(stage: Stage) -> None:
        await stage.start()
        for controller in stage.controllers.values():
            controller.stop()
        begun = now()
        await stage.lifecycle.shut_down()
        assert now() - begun == pytest.approx(1.0, abs=0.1)

    play(story)


def test_a_shutdown_while_it_still_tries_to_register():
    async def story(stage: Stage) -> None:
        for controller in stage.controllers.values():
            controller.scripts[REGISTRATION] = lambda request: SILENCE
        starting = asyncio.ensure_future(stage.lifecycle.start())
        await asyncio.sleep(1.0)
        await stage.lifecycle.shut_down()
        with pytest.raises(LifecycleFailed, match="shutting down"):
            await starting

    assert play(story).failures == []


def test_it_gives_up_when_it_can_not_be_registered():
    async def story(stage: Stage) -> None:
        stage.controllers[1].scripts[REGISTRATION] = lambda request: Registered(
            error_code=ErrorCode.DUPLICATE_BROKER_REGISTRATION
        )
        begun = now()
        with pytest.raises(LifecycleFailed, match="within 4 s: the controller says DUPLICATE_BROKER_REGISTRATION"):
            await stage.lifecycle.start()
        assert now() - begun == pytest.approx(4.0, abs=0.01)

    assert len(play(story, initial_broker_registration_timeout_ms="4000").failures) == 1


def test_a_failed_log_dir_is_told_at_once():
    async def story(stage: Stage) -> None:
        await stage.start()
        stage.lifecycle.dir_failed(LogDir("/data", DIR, clean=True))
        await asyncio.sleep(0.05)
        assert stage.beats()[-1].offline_log_dirs == [DIR]

    play(story)


def test_a_broker_that_registers_again_does_not_name_a_log_dir_that_failed():
    async def story(stage: Stage) -> None:
        await stage.start()
        stage.lifecycle.dir_failed(LogDir("/data", DIR, clean=True))
        await asyncio.sleep(0.05)
        stage.registered_epoch = -1  # the controller forgot it
        await asyncio.sleep(5)
        first, again = stage.controllers[1].requests(REGISTRATION)
        assert (first.log_dirs, again.log_dirs) == ([DIR], [])
        assert stage.beats()[-1].offline_log_dirs == [DIR]

    play(story)


def test_a_log_dir_that_cannot_be_read_has_no_say_in_how_this_broker_stopped():
    with World(1) as world:
        disk = world.node("b1").disk
        for path in ("/a", "/b"):
            disk.mkdir(path)
            mark_clean(disk, LogDir(path, DIR, True), 7)
        disk.faults.set("/b", Fault.READ_ERROR)
        assert previous_broker_epoch(disk, ["/a", "/b"]) == 7
        assert previous_broker_epoch(disk, ["/b"]) == -1


def test_the_epoch_of_a_clean_shutdown_counts_if_all_dirs_agree():
    with World(1) as world:
        disk = world.node("b1").disk
        dirs = [LogDir(path, DIR, True) for path in ("/a", "/b")]
        for log_dir in dirs:
            disk.mkdir(log_dir.path)
        assert previous_broker_epoch(disk, ["/a", "/b"]) == -1
        mark_clean(disk, dirs[0], 7)
        assert previous_broker_epoch(disk, ["/a"]) == 7
        assert previous_broker_epoch(disk, ["/a", "/b"]) == -1
        mark_clean(disk, dirs[1], 7)
        assert previous_broker_epoch(disk, ["/a", "/b"]) == 7
        mark_clean(disk, dirs[1], 8)
        assert previous_broker_epoch(disk, ["/a", "/b"]) == -1
        for unreadable in (b"", b"[]", b"\xff", b'{"brokerEpoch": 1e999}'):
            disk.write_file(f"/b/{CLEAN_SHUTDOWN_FILE}", unreadable)
            assert previous_broker_epoch(disk, ["/b"]) == -1
