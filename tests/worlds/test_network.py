"""What connections do, in both worlds: transports, protocols, and asyncio's own streams and timeouts on top of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import cast

import pytest

from .conftest import Stage


class Recorder(asyncio.Protocol):
    """Keeps what happened, and lets a story wait for it."""

    def __init__(self, keep_open_at_eof: bool = False) -> None:
        self.received = bytearray()
        self.events: list[str] = []
        self.lost: asyncio.Future[Exception | None] = asyncio.get_running_loop().create_future()
        self.transport: asyncio.Transport
        self._keep_open_at_eof = keep_open_at_eof
        self._news = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's is none by type
        self._note("made")

    def data_received(self, data: bytes) -> None:
        assert type(data) is bytes
        self.received += data
        self._news.set()

    def eof_received(self) -> bool:
        self._note("eof")
        return self._keep_open_at_eof

    def pause_writing(self) -> None:
        self._note("pause")

    def resume_writing(self) -> None:
        self._note("resume")

    def connection_lost(self, exc: Exception | None) -> None:
        self._note("lost")
        self.lost.set_result(exc)

    def _note(self, event: str) -> None:
        self.events.append(event)
        self._news.set()

    async def until(self, condition: Callable[[Recorder], bool]) -> None:
        async with asyncio.timeout(20):
            while not condition(self):
                self._news.clear()
                await self._news.wait()


class Buffered(asyncio.BufferedProtocol):
    """Reads frames of one length byte and a body into its own buffer, which grows for a body that does not fit."""

    def __init__(self) -> None:
        self.frames: list[bytes] = []
        self.buffer = bytearray(8)
        self.end = 0
        self.lost: asyncio.Future[Exception | None] = asyncio.get_running_loop().create_future()

    def get_buffer(self, sizehint: int) -> memoryview:
        if self.end and len(self.buffer) < 1 + self.buffer[0]:
            grown = bytearray(1 + self.buffer[0])
            grown[: self.end] = memoryview(self.buffer)[: self.end]
            self.buffer = grown
        return memoryview(self.buffer)[self.end :]

    def buffer_updated(self, nbytes: int) -> None:
        self.end += nbytes
        start = 0
        view = memoryview(self.buffer)
        while start < self.end and start + 1 + view[start] <= self.end:
            self.frames.append(bytes(view[start + 1 : start + 1 + view[start]]))
            start += 1 + view[start]
        rest = bytes(view[start : self.end])
        self.end = len(rest)
        view[: self.end] = rest

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost.set_result(exc)


async def connect(**options: bool) -> tuple[Recorder, Recorder, asyncio.AbstractServer]:
    """A client, the server's end of its connection, and the server."""
    loop = asyncio.get_running_loop()
    accepted: asyncio.Queue[Recorder] = asyncio.Queue()

    def accept() -> Recorder:
        recorder = Recorder(**options)
        accepted.put_nowait(recorder)
        return recorder

    server = await loop.create_server(accept, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    _, client = await loop.create_connection(lambda: Recorder(**options), "127.0.0.1", port)
    there = await accepted.get()
    await there.until(lambda r: "made" in r.events)
    return client, there, server


async def end(*recorders: Recorder) -> None:
    for recorder in recorders:
        recorder.transport.abort()
        await recorder.lost


def test_nobody_listens(stage: Stage) -> None:
    async def story() -> None:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(Recorder, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        assert port > 0
        assert server.is_serving()
        server.close()
        await server.wait_closed()
        with pytest.raises(ConnectionRefusedError):
            await loop.create_connection(Recorder, "127.0.0.1", port)

    stage.run(story())


def test_a_port_is_taken_once(stage: Stage) -> None:
    async def story() -> None:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(Recorder, "127.0.0.1", 0)
        with pytest.raises(OSError):
            await loop.create_server(Recorder, "127.0.0.1", server.sockets[0].getsockname()[1])
        server.close()

    stage.run(story())


def test_an_unknown_host(stage: Stage) -> None:
    async def story() -> None:
        with pytest.raises(OSError):
            await asyncio.get_running_loop().create_connection(Recorder, "no-such-host.invalid", 9092)

    if stage.simulated:  # the real answer takes as long as the resolver of the machine likes
        stage.run(story())


def test_both_ends_know_their_names(stage: Stage) -> None:
    async def story() -> None:
        client, there, server = await connect()
        assert client.transport.get_extra_info("peername")[1] == there.transport.get_extra_info("sockname")[1]
        assert client.transport.get_extra_info("sockname") == there.transport.get_extra_info("peername")
        assert client.transport.get_extra_info("ssl_object") is None
        assert client.transport.get_extra_info("nothing", 7) == 7
        assert client.transport.get_protocol() is client
        assert not client.transport.is_closing()
        await end(client, there)
        server.close()

    stage.run(story())


def test_bytes_arrive_in_order_however_they_are_cut(stage: Stage) -> None:
    async def story() -> None:
        client, there, server = await connect()
        sent = bytes(range(256)) * 2000
        for start in range(0, len(sent), 7001):
            client.transport.write(sent[start : start + 7001])
        client.transport.writelines([b"", b"the ", bytearray(b"very "), memoryview(b"end")])
        sent += b"the very end"
        await there.until(lambda r: len(r.received) == len(sent))
        assert there.received == sent
        there.transport.write(b"thanks")
        await client.until(lambda r: r.received == b"thanks")
        await end(client, there)
        server.close()

    stage.run(story())


def test_close_sends_what_was_written_first(stage: Stage) -> None:
    async def story() -> None:
        client, there, server = await connect()
        client.transport.write(b"x" * 500_000)
        client.transport.close()
        assert client.transport.is_closing()
        client.transport.close()
        assert await there.lost is None
        assert len(there.received) == 500_000
        assert there.events == ["made", "eof", "lost"]
        assert await client.lost is None
        assert client.events[-1] == "lost"
        with pytest.raises(RuntimeError):
            client.transport.write(b"too late")
        server.close()

    stage.run(story())


def test_abort_drops_what_was_not_sent(stage: Stage) -> None:
    async def story() -> None:
        client, there, server = await connect()
        there.transport.pause_reading()
        client.transport.write(b"x" * 30_000_000)
        await client.until(lambda r: "pause" in r.events)
        client.transport.abort()
        client.transport.abort()
        assert await client.lost is None
        there.transport.resume_reading()
        await there.lost
        assert len(there.received) < 30_000_000
        assert there.events.count("lost") == 1
        server.close()

    stage.run(story())


def test_closing_with_unread_bytes_resets_the_peer(stage: Stage) -> None:
    async def story() -> None:
        client, there, server = await connect()
        there.transport.pause_reading()
        client.transport.write(b"never read")
        if stage.simulated:
            await asyncio.sleep(1)
        else:
            await asyncio.sleep(0.05)  # until the kernel has it; there is nothing to wait for
        there.transport.close()
        assert isinstance(await client.lost, ConnectionResetError)
        server.close()

    stage.run(story())


def test_half_a_connection_stays_open_after_eof(stage: Stage) -> None:
    async def story() -> None:
        client, there, server = await connect(keep_open_at_eof=True)
        assert client.transport.can_write_eof()
        client.transport.write(b"question")
        client.transport.write_eof()
        with pytest.raises(RuntimeError):
            client.transport.write(b"more")
        await there.until(lambda r: "eof" in r.events)
        assert there.received == b"question"
        there.transport.write(b"answer")
        there.transport.close()
        await client.until(lambda r: "eof" in r.events)
        assert client.received == b"answer"
        client.transport.close()
        assert await client.lost is None
        server.close()

    stage.run(story())


def test_no_data_while_reading_is_paused(stage: Stage) -> None:
    async def story() -> None:
        client, there, server = await connect()
        there.transport.pause_reading()
        assert not there.transport.is_reading()
        client.transport.write(b"hello")
        await asyncio.sleep(0.02)
        assert not there.received
        there.transport.resume_reading()
        await there.until(lambda r: r.received == b"hello")
        await end(client, there)
        server.close()

    stage.run(story())


def test_back_pressure_reaches_the_writer(stage: Stage) -> None:
    async def story() -> None:
        client, there, server = await connect()
        client.transport.set_write_buffer_limits(high=100_000, low=10_000)
        assert client.transport.get_write_buffer_limits() == (10_000, 100_000)
        there.transport.pause_reading()
        sent = 0
        while client.transport.get_write_buffer_size() <= 100_000:  # until neither end's kernel takes any more
            client.transport.write(b"x" * 90_000)
            sent += 90_000
            assert sent < 100_000_000
            await asyncio.sleep(0.005)
        assert client.events[-1] == "pause"
        there.transport.resume_reading()
        await client.until(lambda r: r.events[-1] == "resume")
        await there.until(lambda r: len(r.received) == sent)
        await end(client, there)
        server.close()

    stage.run(story())


def test_a_buffered_protocol_reads_into_its_own_buffer(stage: Stage) -> None:
    async def story() -> None:
        loop = asyncio.get_running_loop()
        accepted: asyncio.Queue[Buffered] = asyncio.Queue()

        def accept() -> Buffered:
            protocol = Buffered()
            accepted.put_nowait(protocol)
            return protocol

        server = await loop.create_server(accept, "127.0.0.1", 0)
        _, writer = await asyncio.open_connection("127.0.0.1", server.sockets[0].getsockname()[1])
        frames = [bytes([number]) * (number * 7 % 256) for number in range(200)]
        for frame in frames:
            writer.write(bytes([len(frame)]) + frame)
        writer.close()
        await writer.wait_closed()
        protocol = await accepted.get()
        assert await protocol.lost is None
        assert protocol.frames == frames
        server.close()

    stage.run(story())


def test_a_protocol_that_fails_loses_its_connection(stage: Stage) -> None:
    class Failing(Recorder):
        def data_received(self, data: bytes) -> None:
            raise ValueError("bad frame")

    async def story() -> None:
        loop = asyncio.get_running_loop()
        failures: list[BaseException | None] = []
        loop.set_exception_handler(lambda _, context: failures.append(context.get("exception")))
        server = await loop.create_server(Failing, "127.0.0.1", 0)
        _, client = await loop.create_connection(Recorder, "127.0.0.1", server.sockets[0].getsockname()[1])
        client.transport.write(b"anything")
        await client.lost
        assert [type(failure) for failure in failures] == [ValueError]
        server.close()

    stage.run(story())


def test_streams_timeouts_and_task_groups(stage: Stage) -> None:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            if line == b"silence\n":
                continue
            writer.write(line.upper())
            await writer.drain()
        writer.close()

    async def client(port: int, number: int) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        answer = b""
        for round_ in range(20):
            writer.write(b"a%d-%d\n" % (number, round_))
            answer = await reader.readline()
        writer.write(b"silence\n")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await reader.readline()
        writer.close()
        await writer.wait_closed()
        return answer

    async def story() -> None:
        server = await asyncio.start_server(echo, "127.0.0.1", 0)
        async with server:
            port = server.sockets[0].getsockname()[1]
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(client(port, number)) for number in range(5)]
            assert [task.result() for task in tasks] == [b"A%d-19\n" % number for number in range(5)]

    stage.run(story())


def test_a_cancelled_wait_runs_its_finally(stage: Stage) -> None:
    async def story() -> None:
        seen: list[str] = []

        async def wait() -> None:
            try:
                await asyncio.Event().wait()
            finally:
                seen.append("finally")

        task = asyncio.create_task(wait())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert seen == ["finally"]

    stage.run(story())
