"""Listeners: how many connections, from whom, and for how long. Over the simulated network, by real transports."""

# mypy: allow-incomplete-defs, allow-untyped-calls, allow-untyped-defs

from __future__ import annotations

import asyncio
import socket

import pytest

from strandline.api.context import WAIT_MS_MAX
from strandline.node.listener import KEEPALIVE
from strandline.wire.headers import request_header

from .conftest import HOST, PORT, api_versions, fetch, produce


async def connect():
    return await asyncio.open_connection(HOST, PORT)


async def serves(reader, writer):
    """Whether a request on this connection is answered."""
    try:
        writer.write(api_versions(1))
        size = int.from_bytes(await reader.readexactly(4), "big")
        await reader.readexactly(size)
    except (ConnectionError, asyncio.IncompleteReadError):
        return False
    return True


def test_connections_are_limited_in_all(play):
    async def story(stage):
        pairs = [await connect() for _ in range(5)]
        assert [await serves(*pair) for pair in pairs] == [True, True, True, False, False]
        assert len(stage.listener) == 3
        pairs[0][1].close()
        await asyncio.sleep(1)
        assert await serves(*await connect())
        assert stage.logged("too many connections") == 1, "the second within the same ten seconds is left out"
        assert stage.node.parts.connection_counts.refused == {"max.connections": 2}

    play(story, max_connections="3")


def test_connections_are_limited_per_peer(play):
    async def story(stage):
        pairs = [await connect() for _ in range(4)]
        assert [await serves(*pair) for pair in pairs] == [True, True, False, False]
        for _, writer in pairs:
            writer.close()
        await asyncio.sleep(1)
        assert len(stage.listener) == 0
        assert await serves(*await connect())

    play(story, max_connections_per_ip="2")


def test_idle_connections_are_closed(play):
    async def story(stage):
        idle, busy, half = [await connect() for _ in range(3)]
        assert await serves(*idle)
        half[1].write(api_versions(1)[:7])
        for _ in range(13):
            await asyncio.sleep(50)
            assert await serves(*busy)
        assert len(stage.listener) == 1
        assert not await serves(*idle)
        assert await half[0].read() == b""

    play(story)


def test_an_idle_peer_that_never_reads_is_cut_off(play):
    async def story(stage):
        await stage.create()
        reader, writer = await connect()
        # The reader's buffer fills, then the network's, then ours: nobody takes anything any more.
        reader._transport.pause_reading()
        writer.write(api_versions(1) * 20_000)
        await asyncio.sleep(700)
        assert len(stage.listener) == 0

    play(story)


def test_a_connection_that_waits_is_not_idle(play):
    async def story(stage):
        await stage.create(flush_messages="1")
        stage.flushes_take(700.0)
        reader, writer = await connect()
        writer.write(produce(b"v", 9, timeout_ms=900_000))
        size = int.from_bytes(await reader.readexactly(4), "big")
        reply = await reader.readexactly(size)
        assert int.from_bytes(reply[:4], "big") == 9

    play(story)


async def answered(reader):
    size = int.from_bytes(await reader.readexactly(4), "big")
    return await reader.readexactly(size)


@pytest.mark.parametrize("asked_ms", [2**31 - 1, WAIT_MS_MAX + 60_000])
def test_a_fetch_waits_no_longer_than_the_cap(play, asked_ms):
    """SEC-L7."""

    async def story(stage):
        await stage.create()
        waiting, short = await connect(), await connect()
        loop = asyncio.get_running_loop()
        began = loop.time()
        waiting[1].write(fetch(0, 1, max_wait_ms=asked_ms))
        short[1].write(fetch(0, 1, max_wait_ms=WAIT_MS_MAX - 60_000))
        await answered(short[0])
        assert loop.time() - began == pytest.approx(WAIT_MS_MAX / 1000 - 60, abs=1)
        await answered(waiting[0])
        assert loop.time() - began == pytest.approx(WAIT_MS_MAX / 1000, abs=1)

    play(story)


def test_accepted_sockets_have_keepalive(play):
    """SEC-L7: they have it from the socket that listens, in the real world; a simulated one has no options."""

    async def story(stage):
        with socket.create_server(("127.0.0.1", 0)) as listening:
            stage.listener._set_options(listening)
            with socket.create_connection(listening.getsockname()), listening.accept()[0] as accepted:
                assert accepted.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
                times = [accepted.getsockopt(socket.IPPROTO_TCP, getattr(socket, name)) for name, _ in KEEPALIVE]
        idle_s, interval_s, probes = times
        assert idle_s + interval_s * probes <= 120, "gone within two minutes"

    play(story)


def test_a_connection_with_small_requests_after_a_large_one_is_kept(play):
    async def story(stage):
        await stage.create()
        reader, writer = await connect()
        writer.write(produce(bytes(600_000), 1, acks=1))
        await answered(reader)
        for number in range(60):
            await asyncio.sleep(0.5)
            assert await serves(reader, writer), number
        assert stage.node.parts.resources.stalled_requests == 0

    play(story)


def test_producers_of_large_requests_leave_room_for_another_one(play):
    async def story(stage):
        await stage.create()
        budget = stage.node.parts.resources.reads

        async def produce_on(reader, writer):
            for number in range(300):
                writer.write(produce(bytes(600_000), number, acks=1))
                await answered(reader)
                await asyncio.sleep(0.1)

        busy = [asyncio.create_task(produce_on(*await connect())) for _ in range(2)]
        await asyncio.sleep(1)
        reader, writer = await connect()
        writer.write(produce(bytes(600_000), 7, acks=1))
        async with asyncio.timeout(2):
            await answered(reader)
        for task in busy:
            task.cancel()
        await asyncio.sleep(3)
        assert budget.waiting == 0

    play(story, queued_max_request_bytes=str(1 << 20), socket_request_max_bytes=str(1 << 20))


def test_a_peer_that_breaks_the_protocol_is_logged_and_let_go(play):
    async def story(stage):
        reader, writer = await connect()
        payload = request_header(999, 0, 1, "x")
        writer.write(len(payload).to_bytes(4, "big") + payload)
        try:
            assert await reader.read() == b""
        except ConnectionResetError:
            pass
        assert stage.logged("unknown API key 999") == 1
        assert await serves(*await connect())

    play(story)


def test_stop_ends_every_connection(play):
    async def story(stage):
        pairs = [await connect() for _ in range(3)]
        assert [await serves(*pair) for pair in pairs] == [True] * 3
        await stage.listener.stop()
        assert [await pair[0].read() for pair in pairs] == [b""] * 3
        assert len(stage.listener) == 0

    play(story)
