"""The connection on which a follower fetches: frames in any pieces, replies in order, and an end that is told once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from strandline.client.errors import ConnectionLost
from strandline.node.fetching.connection import FetchConnection
from strandline.raft.messages import Address
from strandline.sim.world import World
from strandline.wire import messages

from ..scripted import HANG_UP, SILENCE, Controller

LIST_OFFSETS = 2
ADDRESS = Address("leader", 9093)
Offsets = messages.response(LIST_OFFSETS)


def numbered(request: Any) -> Any:
    return Offsets(throttle_time_ms=request.replica_id)


class Stage:
    def __init__(self, seed: int = 1) -> None:
        self.world = World(seed)
        self.server = Controller({LIST_OFFSETS: numbered})
        self.ended: list[str] = []
        self.got: list[int] = []
        self.connection: FetchConnection

    def play(self, story: Callable[[Stage], Any]) -> None:
        async def body() -> None:
            self.connection = FetchConnection("test", 1000, self.ended.append)
            await story(self)

        async def main() -> None:
            await self.world.node("leader").spawn(self.server.serve())
            await self.world.node("follower").spawn(body())

        with self.world as world:
            world.run(main())

    async def open(self) -> None:
        await self.connection.open(ADDRESS, None, 5.0)

    def ask(self, number: int, timeout_s: float = 30.0) -> None:
        request = messages.request(LIST_OFFSETS)(replica_id=number)
        self.connection.ask(LIST_OFFSETS, 4, request, timeout_s, lambda reply: self.got.append(reply.throttle_time_ms))


@pytest.mark.parametrize("seed", range(5))
def test_replies_come_in_the_order_of_the_requests(seed: int) -> None:
    stage = Stage(seed)

    async def story(stage: Stage) -> None:
        await stage.open()
        assert stage.connection.versions is not None
        assert stage.connection.versions.pick(LIST_OFFSETS) == 4
        for number in range(100):
            stage.ask(number)
        assert stage.connection.in_flight_count == 100
        await asyncio.sleep(1)
        assert not stage.connection.in_flight_count
        assert stage.got == list(range(100))
        stage.connection.close()
        stage.ask(7)
        await asyncio.sleep(1)

    stage.play(story)
    assert stage.ended == []
    assert len(stage.got) == 100


def test_a_reply_larger_than_the_buffer_arrives_and_its_room_is_given_back() -> None:
    stage = Stage()
    name = "n" * 30_000

    def large(request: Any) -> Any:
        topic = Offsets.ListOffsetsTopicResponse(name=name, partitions=[])
        return Offsets(throttle_time_ms=request.replica_id, topics=[topic] * 20)

    stage.server.scripts[LIST_OFFSETS] = large

    async def story(stage: Stage) -> None:
        await stage.open()
        for number in range(5):
            stage.ask(number)
        await asyncio.sleep(1)
        assert not stage.connection.in_flight_count
        assert stage.got == [0, 1, 2, 3, 4]
        assert stage.connection._incoming.grown_bytes == 0
        stage.connection.close()

    stage.play(story)


def test_an_end_from_the_other_side_is_told_once() -> None:
    stage = Stage()
    stage.server.scripts[LIST_OFFSETS] = lambda request: HANG_UP

    async def story(stage: Stage) -> None:
        await stage.open()
        stage.ask(1)
        await asyncio.sleep(1)
        assert len(stage.ended) == 1
        assert stage.connection.is_closed
        stage.connection.close()
        await asyncio.sleep(1)

    stage.play(story)
    assert len(stage.ended) == 1
    assert stage.got == []


def test_an_overdue_reply_ends_the_connection_though_an_earlier_request_has_more_time() -> None:
    stage = Stage()
    stage.server.scripts[LIST_OFFSETS] = lambda request: SILENCE

    async def story(stage: Stage) -> None:
        await stage.open()
        stage.ask(1, timeout_s=30)
        stage.ask(2, timeout_s=2)
        await asyncio.sleep(1.9)
        assert stage.ended == []
        await asyncio.sleep(0.2)
        assert stage.ended == ["a reply is overdue"]

    stage.play(story)


def test_a_server_that_says_nothing_is_not_waited_for_without_end() -> None:
    stage = Stage()
    stage.server.is_mute = True

    async def story(stage: Stage) -> None:
        with pytest.raises(ConnectionLost, match="leader:9093 within 5 s"):
            await stage.open()
        assert stage.connection.is_closed

    stage.play(story)
    assert stage.ended == []  # it never was open


def test_a_port_where_nobody_listens_is_no_connection() -> None:
    stage = Stage()

    async def story(stage: Stage) -> None:
        with pytest.raises(ConnectionLost, match="leader:1"):
            await stage.connection.open(Address("leader", 1), None, 5.0)
        for nonsense in (Address("", -1), Address("leader", 1 << 20)):
            with pytest.raises(ConnectionLost):
                await FetchConnection("test", 1000, stage.ended.append).open(nonsense, None, 1.0)

    stage.play(story)


class Transport:
    """Takes what is written and nothing else."""

    def __init__(self) -> None:
        self.is_aborted = False

    def write(self, data: bytes) -> None: ...

    def abort(self) -> None:
        self.is_aborted = True


@pytest.mark.parametrize(
    ("frame", "reason"),
    [
        (b"\0\0\0\x03abc", "claims 3 bytes"),
        (b"\x7f\xff\xff\xff", "claims 2147483647 bytes"),
        (b"\xff\xff\xff\xff", "claims -1 bytes"),
        (b"\0\0\0\x08\0\0\0\x09\0\0\0\0", "a reply to request 9 where 1 is next"),
        (b"\0\0\0\x0c\0\0\0\x01" + bytes(8) + b"\0\0\0\x04\0\0\0\x02", "nothing that was asked"),
        (b"\0\0\0\x05\0\0\0\x01\0", "bytes"),
    ],
)
async def test_what_is_no_reply_ends_the_connection(frame: bytes, reason: str) -> None:
    ended: list[str] = []
    connection, transport = FetchConnection("test", 1000, ended.append), Transport()
    connection.connection_made(transport)  # type: ignore[arg-type]
    connection.ask(LIST_OFFSETS, 2, messages.request(LIST_OFFSETS)(), 1.0, lambda reply: None)
    connection.get_buffer(-1)[: len(frame)] = frame
    connection.buffer_updated(len(frame))
    assert reason in ended[0]
    assert len(ended) == 1
    assert transport.is_aborted
    connection.connection_lost(None)
    assert len(ended) == 1
