"""HTTP for those who look: bounded, and indifferent to what a peer does."""

# mypy: allow-incomplete-defs, allow-untyped-calls, allow-untyped-defs, disable-error-code="attr-defined"

from __future__ import annotations

import asyncio
import contextlib

import pytest

from strandline.node.monitoring import http
from strandline.node.monitoring.http import BadQuery, HttpAnswer, HttpServer
from strandline.sim.world import World

from .conftest import HOST, PORT, get, parse, send


class Log:
    def __init__(self) -> None:
        self.errors: list[str] = []

    def error(self, event: str, **values: object) -> None:
        self.errors.append(event)


class Served:
    def __init__(self) -> None:
        self.log = Log()
        self.cancelled = 0
        routes = {
            "/echo": self._echo,
            "/slow": self._slow,
            "/bad": self._bad,
            "/broken": self._broken,
            http.HEALTH_PATH: self._echo,
        }
        self.server = HttpServer(routes, self.log, ["Monitor.example"])

    async def _echo(self, query):
        return HttpAnswer(repr(sorted(query.items())).encode(), "text/plain")

    async def _slow(self, query):
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise

    async def _bad(self, query):
        raise BadQuery("what is that")

    async def _broken(self, query):
        raise RuntimeError("the secret of the house")


def serve(story):
    """Run a story against a server in a simulated world."""
    world = World(1)
    host = world.node(HOST)

    async def body():
        served = Served()
        await served.server.start(HOST, PORT)
        try:
            await story(served)
        finally:
            await served.server.stop()

    async def main():
        await host.spawn(body())

    try:
        world.run(main())
    finally:
        world.close()


def test_a_request_gets_its_answer_and_the_connection_ends():
    async def story(served):
        reply = await get("/echo?a=1&b=%2F")
        assert reply.status == 200
        assert reply.body == b"[('a', '1'), ('b', '/')]"
        assert reply.headers["content-length"] == str(len(reply.body))
        assert reply.headers["connection"] == "close"
        await asyncio.sleep(1)
        assert not served.server.exchanges

    serve(story)


def test_head_has_everything_but_the_body():
    async def story(served):
        reply = await get("/echo?a=1", "HEAD")
        assert (reply.status, reply.body, reply.headers["content-length"]) == (200, b"", str(len("[('a', '1')]")))

    serve(story)


def test_a_request_may_come_byte_by_byte():
    async def story(served):
        reader, writer = await asyncio.open_connection(HOST, PORT)
        for byte in b"GET /echo HTTP/1.1\r\nHost: n1\r\n\r\n":
            writer.write(bytes([byte]))
            await asyncio.sleep(0.01)
        assert parse(await reader.read()).body == b"[]"

    serve(story)


def test_what_is_not_served_is_refused():
    async def story(served):
        assert (await get("/")).status == 404
        assert (await get("/echo", "POST")).status == 405
        assert (await get("/echo", "DELETE")).headers["allow"] == "GET, HEAD"
        assert (await get("/bad")).body == b"what is that\n"
        assert (await get("/echo?" + "&".join(f"a{i}=1" for i in range(100)))).status == 400
        assert (await get("http://[")).status == 400

    serve(story)


def test_a_failure_is_logged_and_not_told():
    async def story(served):
        reply = await get("/broken")
        assert (reply.status, b"secret" in reply.body) == (500, False)
        assert served.log.errors == ["could not answer over HTTP"]

    serve(story)


def test_garbage_large_headers_and_bodies_end_with_their_connection():
    async def story(served):
        assert parse(await send(b"\x00\x01\x02 what\r\n\r\n")).status == 400
        huge = b"GET /echo HTTP/1.1\r\nHost: n1\r\nA: " + b"a" * (2 * http.HTTP_REQUEST_BYTES_MAX)
        assert parse(await send(huge)).status == 431
        with_body = b"GET /echo HTTP/1.1\r\nHost: n1\r\nContent-Length: 5\r\n\r\nhello"
        assert parse(await send(with_body)).status == 413
        assert (await get("/echo")).status == 200

    serve(story)


def test_a_second_request_on_the_connection_is_not_answered():
    async def story(served):
        one = b"GET /echo HTTP/1.1\r\nHost: n1\r\n\r\n"
        assert (await send(one + one)).count(b"HTTP/1.1 200") == 1

    serve(story)


def test_a_peer_that_says_nothing_is_let_go():
    async def story(served):
        loop = asyncio.get_running_loop()
        reader, _ = await asyncio.open_connection(HOST, PORT)
        began = loop.time()
        try:
            assert await reader.read() == b""
        except ConnectionError:
            pass
        assert loop.time() - began < http.READ_TIMEOUT_S + 1

    serve(story)


def test_no_more_connections_than_the_bound_and_the_oldest_that_asks_nothing_makes_room():
    async def story(served):
        idle = [await asyncio.open_connection(HOST, PORT) for _ in range(http.CONNECTIONS_MAX)]
        for _, writer in idle:
            writer.write(b"GET /echo HTTP/1.1\r\nHost: n1\r\n")
        await asyncio.sleep(1)
        assert len(served.server.exchanges) == http.CONNECTIONS_MAX
        assert (await get("/echo")).status == 200
        assert (await get("/health")).status == 200
        await asyncio.sleep(1)
        assert len(served.server.exchanges) <= http.CONNECTIONS_MAX
        assert served.server.refused == 2
        for reader, writer in idle[:2]:
            with contextlib.suppress(ConnectionError):
                assert await reader.read() == b""
            writer.close()
        idle[2][1].write(b"\r\n")
        assert parse(await idle[2][0].read()).status == 200, "the others are still there"
        for _, writer in idle[2:]:
            writer.close()
        await asyncio.sleep(1)
        assert not served.server.exchanges

    serve(story)


def test_health_is_answered_while_all_other_places_are_taken():
    async def story(served):
        places = http.CONNECTIONS_MAX - http.HEALTH_CONNECTIONS
        waiting = [await asyncio.open_connection(HOST, PORT) for _ in range(places)]
        for _, writer in waiting:
            writer.write(b"GET /slow HTTP/1.1\r\nHost: n1\r\n\r\n")
        await asyncio.sleep(1)
        assert (await get("/echo")).status == 503
        assert (await get("/health")).status == 200
        for _, writer in waiting:
            writer.transport.abort()
        await asyncio.sleep(1)
        assert (await get("/echo")).status == 200
        assert served.cancelled == places

    serve(story)


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("n1", 200),
        ("N1:9404", 200),
        ("localhost", 200),
        ("localhost.:9404", 200),
        ("127.0.0.1", 200),
        ("127.8.8.8:80", 200),
        ("[::1]:9404", 200),
        ("monitor.example", 200),
        ("evil.example", 421),
        ("evil.example:9404", 421),
        ("n1.evil.example", 421),
        ("127.0.0.1.evil.example", 421),
        ("localhost.evil.example", 421),
        ("10.0.0.7", 421),
        ("", 421),
    ],
)
def test_only_who_names_the_server_by_its_own_name_is_answered(host, status):
    async def story(served):
        data = await send(f"GET /echo HTTP/1.1\r\nHost: {host}\r\nOrigin: http://{host}\r\n\r\n".encode())
        assert parse(data).status == status
        assert b"access-control" not in data.lower(), "no other origin may read an answer"

    serve(story)


def test_an_absolute_target_names_the_server_too():
    async def story(served):
        assert (await get("http://n1:9404/echo")).status == 200
        assert (await get("http://evil.example/echo")).status == 421

    serve(story)


def test_an_answer_that_nobody_waits_for_is_given_up():
    async def story(served):
        _, writer = await asyncio.open_connection(HOST, PORT)
        writer.write(b"GET /slow HTTP/1.1\r\nHost: n1\r\n\r\n")
        await asyncio.sleep(1)
        writer.transport.abort()
        await asyncio.sleep(1)
        assert served.cancelled == 1

    serve(story)


def test_stopping_ends_what_waits():
    async def story(served):
        waiting = asyncio.create_task(get("/slow"))
        await asyncio.sleep(1)
        await served.server.stop()
        await asyncio.wait([waiting], timeout=5)
        assert waiting.done()
        assert waiting.exception() is not None
        assert served.cancelled == 1

    serve(story)
