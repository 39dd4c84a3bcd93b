"""Listeners: how many connections, from whom, and for how long. Over the simulated network, by real transports."""

from __future__ import annotations

import asyncio

from strandline.wire.headers import request_header

from .conftest import HOST, PORT, api_versions, produce


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
        assert stage.node.connection_counts.refused == {"max.connections": 2}

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
