"""Attacks with connections against a real node: each is bounded or refused, others are served, all is given back.

Times are a second through the configuration, memory is small, so that each limit is reached.
"""

# mypy: disable-error-code="arg-type"

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import socket
import ssl
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from bench.kafka_cluster import free_ports
from bench.processes import resident_mb
from bench.raw_peer import (
    API_VERSIONS,
    FETCH,
    METADATA,
    SIZE,
    RawPeer,
    all_topics,
    batch,
    closing,
    create_topic,
    fetch,
    produced,
)

from strandline.wire import messages
from tests.system.server import Server, eventually, format_data, running

MIB = 1 << 20
BITE = "stood still"
INCREMENTAL_ALTER_CONFIGS = 44


class Attacked:
    """A node with an honest client, and what can be seen of it."""

    def __init__(self, server: Server, http_port: int, tls_port: int) -> None:
        self.server = server
        self.port, self.http_port, self.tls_port = server.port, http_port, tls_port
        self.honest = RawPeer(server.port)
        self.pid = server.process.pid
        eventually(lambda: create_topic(self.honest, "honest") in (0, 36), "a topic", 20.0)

    def serves(self) -> None:
        """An honest client, on its connection and on a new one, is served."""
        assert produced(self.honest, "honest", batch(b"v")) == 0
        another = RawPeer(self.port)
        assert produced(another, "honest", batch(b"v")) == 0
        another.close()

    def get(self, path: str, **headers: str) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.http_port, timeout=10)
        connection.request("GET", path, headers=headers)
        reply = connection.getresponse()
        body = reply.read()
        connection.close()
        return reply.status, body

    def metric(self, name: str) -> float:
        """The sum over all labels."""
        lines = self.get("/metrics")[1].decode().splitlines()
        values = [float(line.rpartition(" ")[2]) for line in lines if line.startswith((f"{name} ", f"{name}{{"))]
        assert values, name
        return sum(values)

    def descriptors(self) -> int:
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def resident_mib(self) -> float:
        return resident_mb([self.pid])

    def unharmed(self) -> None:
        """It never stopped, no connection was closed by the watchdog, and it stops in order."""
        self.serves()
        assert self.server.process.poll() is None
        log = self.server.log.read_text()
        assert BITE not in log
        assert "log dir failed" not in log
        self.honest.close()
        self.server.stop()


@contextlib.contextmanager
def attacked(directory: Path, ca: tuple[Path, Path], *, tls: bool = True, **properties: str) -> Iterator[Attacked]:
    """With TLS there are two listeners for clients, and max.connections does not count for the plain one, which brokers use."""
    format_data(directory / "data")
    http_port, tls_port = free_ports(2)
    given = {
        "listeners": f"SSL://127.0.0.1:{tls_port}",
        "ssl.keystore.location": str(ca[1]),
        "metrics.listener": f"127.0.0.1:{http_port}",
        **{name.replace("_", "."): value for name, value in properties.items()},
    }
    if not tls:
        del given["listeners"]
    with running(directory, directory / "data", given) as server:
        yield Attacked(server, http_port, tls_port)


def test_idle_connections_cost_little_whether_or_not_they_began_a_request(
    tmp_path: Path, ca: tuple[Path, Path]
) -> None:
    with attacked(tmp_path, ca) as node:
        node.serves()
        what = "the child that compiles the walk over records, and counts as the node's memory, is done"
        eventually(lambda: node.metric("strandline_record_walk_compiled") == 1, what, 90)
        before_mib, before = node.resident_mib(), node.descriptors()
        with closing([RawPeer(node.port) for _ in range(1000)]) as peers:
            eventually(lambda: node.metric("strandline_connections") >= 1001, "all are accepted")
            for peer in peers:
                peer.send(b"\0")
            node.serves()
            assert (node.resident_mib() - before_mib) * 1024 / len(peers) < 16, "KiB each"
        eventually(lambda: node.descriptors() <= before + 2, "all descriptors are given back")
        node.unharmed()


def test_requests_that_do_not_arrive_lose_their_room(tmp_path: Path, ca: tuple[Path, Path]) -> None:
    limits = {
        "queued_max_request_bytes": str(16 * MIB),
        "socket_request_max_bytes": str(16 * MIB),
        "socket_receive_stalled_timeout_ms": "1000",
    }
    with attacked(tmp_path, ca, **limits) as node:
        large = batch(bytes(900_000))
        with closing([]) as peers:
            for _ in range(40):
                peers.append(RawPeer(node.port, timeout_s=0.2))
                with contextlib.suppress(OSError):  # not all of it is read
                    peers[-1].send(SIZE.pack(15 * MIB) + bytes(1_200_000))
            assert node.resident_mib() < 400
            # Room is given back as they are cut off: a large request gets through though nobody of them goes away.
            another = RawPeer(node.port)
            assert produced(another, "honest", large) == 0
            another.close()
            eventually(lambda: node.metric("strandline_connections_stalled_total") >= 16, "they are cut off")
            eventually(lambda: sum(peer.is_closed() for peer in peers) >= 16, "and notice")
        eventually(lambda: node.metric("strandline_request_bytes_held") == 0, "all room is given back")
        assert "a request does not go on arriving" in node.server.log.read_text()
        node.unharmed()


def test_replies_that_nobody_reads_are_bounded_and_their_peers_cut_off(tmp_path: Path, ca: tuple[Path, Path]) -> None:
    limits = {
        "queued_max_response_bytes": str(16 * MIB),
        "queued_max_response_bytes_per_connection": str(4 * MIB),
        "socket_send_stalled_timeout_ms": "1000",
        "socket_send_buffer_bytes": str(64 * 1024),
    }
    with attacked(tmp_path, ca, **limits) as node:
        assert create_topic(node.honest, "large") == 0
        for _ in range(20):
            assert produced(node.honest, "large", batch(bytes(900_000))) == 0
        before_mib = node.resident_mib()
        with closing([]) as peers:
            for _ in range(60):
                peers.append(RawPeer(node.port, receive_bytes=4096))
                peers[-1].send(peers[-1].request(FETCH, 12, fetch("large")) * 20)
            node.serves()
            assert node.resident_mib() - before_mib < 150, "60 of 18 MB each were asked for"
            eventually(lambda: node.metric("strandline_connections_stalled_total") >= 50, "they are cut off")
            assert "a peer does not read its replies" in node.server.log.read_text()
        eventually(lambda: node.metric("strandline_reply_bytes_held") == 0, "all is given back")
        # Who reads gets everything, in the end.
        total = 0
        offset = 0
        while offset < 20:
            reply = node.honest.call(FETCH, 12, fetch("large", offset)).responses[0].partitions[0]
            assert reply.error_code == 0
            assert reply.records
            total += len(reply.records)
            offset += max(1, len(reply.records) // 900_000)
        assert total > 20 * 900_000
        node.unharmed()


@pytest.mark.parametrize("api", ["Metadata", "ApiVersions"])
def test_pipelined_requests_take_turns_with_everybody_else(tmp_path: Path, ca: tuple[Path, Path], api: str) -> None:
    with attacked(tmp_path, ca, watchdog_timeout_ms="1000") as node:
        for number in range(30):
            assert create_topic(node.honest, f"t{number}", 4) == 0
        count = 0
        with closing([RawPeer(node.port) for _ in range(4)]) as peers:
            for peer in peers:
                one = peer.request(METADATA, 9, all_topics()) if api == "Metadata" else peer.frame(API_VERSIONS, 0, b"")
                count = 64 * 1024 // len(one)
                peer.send(one * count)
            node.serves()
            for peer in peers:
                for _ in range(count):
                    assert peer.receive()
            node.serves()
        assert node.metric("strandline_turns_ended_early_total") > 0
        node.unharmed()


def test_a_node_that_is_busy_for_longer_than_the_watchdogs_time_keeps_its_connections(
    tmp_path: Path, ca: tuple[Path, Path]
) -> None:
    with attacked(tmp_path, ca, watchdog_timeout_ms="500") as node:
        # Stopped for a moment, it is frozen, and bitten; that the watchdog works at all shows in the log.
        os.kill(node.pid, signal.SIGSTOP)
        try:
            eventually(lambda: BITE in node.server.log.read_text(), "the watchdog bites")
        finally:
            os.kill(node.pid, signal.SIGCONT)
        another = eventually(lambda: _connected(node.port), "it serves again")
        bites = node.server.log.read_text().count(BITE)
        one = another.request(METADATA, 9, all_topics())
        another.send(one * 3000)
        for _ in range(3000):
            assert another.receive()
        assert node.server.log.read_text().count(BITE) == bites
        another.close()


def _connected(port: int) -> RawPeer | None:
    try:
        peer = RawPeer(port, timeout_s=2.0)
        peer.call(METADATA, 9, all_topics())
    except (OSError, EOFError):
        return None
    return peer


def is_let_in(port: int) -> bool:
    peer = _connected(port)
    if peer is not None:
        peer.close()
    return peer is not None


@pytest.mark.parametrize("limit", [400, 1024])
def test_connections_stop_before_descriptors_do(tmp_path: Path, ca: tuple[Path, Path], limit: int) -> None:
    format_data(tmp_path / "data")
    # The whole process gets the limit, as from an init system.
    launcher = tmp_path / "launcher.py"
    launcher.write_text(
        "import os, resource, sys\n"
        f"resource.setrlimit(resource.RLIMIT_NOFILE, ({limit}, {limit}))\n"
        "os.execv(sys.executable, [sys.executable, '-m', 'strandline', *sys.argv[1:]])\n"
    )
    port, controller_port, http_port = free_ports(3)
    values = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@127.0.0.1:{controller_port}",
        "controller.listener.names": "CONTROLLER",
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}",
        "log.dirs": str(tmp_path / "data"),
        "offsets.topic.replication.factor": "1",
        "metrics.listener": f"127.0.0.1:{http_port}",
    }
    file, log = tmp_path / "server.properties", tmp_path / "server.log"
    file.write_text("".join(f"{name}={value}\n" for name, value in values.items()))
    with log.open("ab") as output:
        process = subprocess.Popen([sys.executable, str(launcher), "server", str(file)], stdout=output, stderr=output)
    server = Server(process, port, tmp_path / "data", log)
    try:
        eventually(lambda: is_let_in(port), "it starts", 20.0)
        node = Attacked(server, http_port, 0)
        assert create_topic(node.honest, "many", 100) == 0
        assert create_topic(node.honest, "roll", 1, internal_segment_bytes="10000") == 0
        with closing([]) as peers:
            for _ in range(limit + 100):
                peers.append(RawPeer(port, timeout_s=5.0))
            eventually(
                lambda: sum(not peer.is_closed() for peer in peers) < limit // 2, "those beyond the limit are refused"
            )
            assert sum(not peer.is_closed() for peer in peers) > 100
            # What a log needs is there: segments, checkpoints, partitions.
            for _ in range(50):
                assert produced(node.honest, "roll", batch(bytes(9000))) == 0
            assert create_topic(node.honest, "more", 50) == 0
            assert node.metric("strandline_connections_refused_total") >= 100
            assert "fewer connections than max.connections" in log.read_text()
        eventually(lambda: node.metric("strandline_connections") < 20, "all are given back")
        node.unharmed()
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def test_handshakes_that_do_not_end_are_counted_and_cut_off(tmp_path: Path, ca: tuple[Path, Path]) -> None:
    with attacked(tmp_path, ca, max_connections="50", ssl_handshake_timeout_ms="1000") as node:
        before = node.descriptors()
        with closing([RawPeer(node.tls_port) for _ in range(100)]) as peers:
            eventually(
                lambda: sum(peer.is_closed() for peer in peers) >= 50, "those beyond max.connections are refused"
            )
            assert node.metric("strandline_connections_refused_total") >= 50
            eventually(lambda: all(peer.is_closed() for peer in peers), "the others have a second", 10.0)
        eventually(lambda: node.descriptors() <= before + 2, "all descriptors are given back")
        assert "a TLS handshake failed" in node.server.log.read_text()
        # The listener goes on, also for one whose first request comes with the end of its handshake.
        context = ssl.create_default_context(cafile=str(ca[0]))
        for _ in range(20):
            plain = socket.create_connection(("127.0.0.1", node.tls_port), 10)
            with context.wrap_socket(plain, server_hostname="127.0.0.1") as secured:
                payload = struct.pack(">hhih", API_VERSIONS, 0, 7, -1)
                secured.sendall(SIZE.pack(len(payload)) + payload)
                size = SIZE.unpack(_exactly(secured, 4))[0]
                assert _exactly(secured, size)[:4] == struct.pack(">i", 7)
        node.unharmed()


def _exactly(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        part = connection.recv(size - len(data))
        assert part, "closed"
        data += part
    return data


def test_http_is_for_who_names_the_node_and_health_is_always_there(tmp_path: Path, ca: tuple[Path, Path]) -> None:
    with attacked(tmp_path, ca) as node:
        assert node.get("/health")[0] == 200
        assert node.get("/health", Host="localhost")[0] == 200
        assert node.get("/health", Host="evil.example")[0] == 421
        assert node.get("/health", Host=f"evil.example:{node.http_port}", Origin="http://evil.example")[0] == 421
        slow = [socket.create_connection(("127.0.0.1", node.http_port), 5) for _ in range(64)]
        for one in slow:
            one.sendall(b"GET /he")
        assert node.get("/health")[0] == 200
        for one in slow:
            one.close()
        last = json.loads(node.get("/events")[1])["last"]
        waiting = [socket.create_connection(("127.0.0.1", node.http_port), 5) for _ in range(64)]
        for one in waiting:
            with contextlib.suppress(OSError):
                one.sendall(
                    f"GET /events?since={last + 1000}&wait_ms=30000 HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
                )
        assert node.get("/health")[0] == 200
        for one in waiting:
            one.close()
        node.unharmed()


def test_no_value_of_max_connections_locks_anybody_out_for_good(tmp_path: Path, ca: tuple[Path, Path]) -> None:
    with attacked(tmp_path, ca, tls=False) as node:

        def set_max(value: str) -> int:
            request = messages.request(INCREMENTAL_ALTER_CONFIGS)
            config = request.AlterableConfig
            resource = request.AlterConfigsResource(
                resource_type=4,
                resource_name="",
                configs=[config(name="max.connections", config_operation=0, value=value)],
            )
            reply = node.honest.call(INCREMENTAL_ALTER_CONFIGS, 1, request(resources=[resource], validate_only=False))
            code: int = reply.responses[0].error_code
            return code

        assert set_max("0") == 42, "INVALID_REQUEST"
        node.serves()
        assert set_max("1") == 0

        eventually(lambda: not is_let_in(node.port), "the new value counts")
        # The controller's listener does not: broker and controller keep in touch, and what was set can be set again.
        assert node.get("/health")[0] == 200
        assert set_max("100") == 0
        eventually(lambda: is_let_in(node.port), "clients are let in again")
        node.unharmed()


def test_brokers_are_let_in_while_clients_fill_every_place(tmp_path: Path, ca: tuple[Path, Path]) -> None:
    with attacked(tmp_path, ca, max_connections="20") as node:
        with closing([RawPeer(node.tls_port) for _ in range(40)]) as peers:
            eventually(lambda: sum(peer.is_closed() for peer in peers) == 20, "clients are refused")
            with closing([RawPeer(node.port) for _ in range(40)]) as brokers:
                for broker in brokers:
                    broker.call(METADATA, 9, all_topics())
        node.unharmed()
