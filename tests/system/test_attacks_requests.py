"""SEC-L2, SEC-L10, SEC-H1, SEC-H3 on real nodes: the heaviest requests, beside an honest client that must not notice."""

from __future__ import annotations

import contextlib
import os
import pty
import select
import stat
import subprocess
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from bench.kafka_cluster import free_ports

from strandline.errors import ErrorCode
from strandline.wire import messages
from tests.system.heavy_requests import ANSWERED, ATTACKS, TOPIC, Attack, topics_with_configs
from tests.system.local import COMMAND, up
from tests.system.raw_client import RawClient, honest_client
from tests.system.server import Server, eventually, format_data, running

METADATA, OFFSET_COMMIT, FIND_COORDINATOR, JOIN_GROUP, CREATE_TOPICS = 3, 8, 10, 11, 19
RSS_MAX_KIB = 1 << 20
EVIL = "\x1b]0;pwned\x07\x1b[31mX\x1b[0m\r\nforged line\u202e"
"""It would set a title, a colour, a line of its own, and turn what follows around."""


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, int]]:
    directory = tmp_path_factory.mktemp("attacked")
    format_data(directory / "data")
    (metrics_port,) = free_ports(1)
    properties = {
        "metrics.listener": f"127.0.0.1:{metrics_port}",
        "offsets.topic.num.partitions": "2",
        "transaction.state.log.num.partitions": "2",
        "group.initial.rebalance.delay.ms": "0",
        "group.coordinator.max.groups.per.partition": "20",
    }
    with running(directory, directory / "data", properties) as server:
        client = RawClient(server.port)
        client.create_topic(TOPIC, 4)
        client.create_topic("honest")
        eventually(
            lambda: client.ask(FIND_COORDINATOR, 0, key="g").error_code == 0, "the coordinator of groups is there", 30
        )
        eventually(
            lambda: client.ask(FIND_COORDINATOR, 1, key="t", key_type=1).error_code == 0, "that of transactions too", 30
        )
        client.close()
        yield server, metrics_port


def check_unharmed(server: Server) -> None:
    assert server.process.poll() is None, server.log_tail()
    assert "stood still" not in server.log.read_text(), "the watchdog closed everybody's connections"
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    assert int(status.split("VmHWM:")[1].split()[0]) < RSS_MAX_KIB


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_the_heaviest_request_of_each_api(node: tuple[Server, int], attack: Attack) -> None:
    server, _ = node
    with honest_client(server.port, "honest"):
        client = RawClient(server.port, None)
        reply = client.ask_bytes(attack.api_key, attack.version, attack.body())
        client.close()
    assert (reply is not None) == (attack.outcome == ANSWERED)
    check_unharmed(server)


def test_all_of_them_at_once(node: tuple[Server, int]) -> None:
    """Large requests wait for each other, not everybody for them; what they took is given back."""
    server, metrics_port = node

    def send(attack: Attack) -> None:
        client = RawClient(server.port, None)
        client.ask_bytes(attack.api_key, attack.version, attack.body())
        client.close()

    with honest_client(server.port, "honest"), ThreadPoolExecutor(len(ATTACKS)) as threads:
        list(threads.map(send, ATTACKS))
    check_unharmed(server)

    eventually(lambda: nothing_waits(metrics_port), "what large requests took is given back")


def nothing_waits(metrics_port: int) -> bool:
    with urllib.request.urlopen(f"http://127.0.0.1:{metrics_port}/metrics", timeout=30) as page:
        lines = page.read().decode().splitlines()
    return {f"strandline_large_requests_waiting_{what} 0.0" for what in ("bytes", "objects")} <= set(lines)


def test_many_that_wait_for_the_controller(node: tuple[Server, int]) -> None:
    """SEC-L4: what they became counts until they are answered. All of them together would be a gibibyte."""
    server, metrics_port = node
    body = topics_with_configs()
    with honest_client(server.port, "honest"):
        clients = [RawClient(server.port, None) for _ in range(40)]
        for client in clients:
            client.send(CREATE_TOPICS, 5, body)
        for client in clients[:4]:
            client.read_some()
        for client in clients:
            client.close()
    check_unharmed(server)
    eventually(lambda: nothing_waits(metrics_port), "what large requests took is given back")


def test_what_a_node_writes_is_for_its_owner_alone(node: tuple[Server, int]) -> None:
    server, _ = node
    found = {path: stat.S_IMODE(path.stat().st_mode) for path in server.data.rglob("*")}
    assert len(found) > 10
    assert {path: oct(mode) for path, mode in found.items() if mode & 0o077} == {}


def on_terminal(*arguments: str) -> bytes:
    """What a command writes to somebody's terminal."""
    leader, follower = pty.openpty()
    process = subprocess.Popen([*COMMAND, *arguments], stdin=follower, stdout=follower, stderr=follower)
    os.close(follower)
    written = b""
    with contextlib.suppress(OSError):
        while select.select([leader], [], [], 60)[0] and (part := os.read(leader, 1 << 16)):
            written += part
    os.close(leader)
    process.wait(60)
    return written


def test_a_terminal_obeys_nobody_but_us(node: tuple[Server, int]) -> None:
    server, _ = node
    member = RawClient(server.port, f"client{EVIL}")
    request = messages.request(JOIN_GROUP)
    protocol = request.JoinGroupRequestProtocol(name=f"range{EVIL}", metadata=b"\0\0\0\0\0\1\0\1t\0\0\0\0")
    fields = {"group_id": f"g{EVIL}", "session_timeout_ms": 60_000, "rebalance_timeout_ms": 60_000}
    fields |= {"protocol_type": "consumer", "protocols": [protocol]}
    given = member.ask(JOIN_GROUP, 4, member_id="", **fields)
    assert member.ask(JOIN_GROUP, 4, member_id=given.member_id, **fields).error_code == 0
    to = f"127.0.0.1:{server.port}"
    for command in (
        ("groups", "list", "-b", to),
        ("groups", "describe", "-b", to),
        ("groups", "describe", "--members", "-b", to),
        ("groups", "list", "--json", "-b", to),
        ("kafka-consumer-groups", "--bootstrap-server", to, "--list"),
        ("kafka-consumer-groups", "--bootstrap-server", to, "--describe", "--all-groups", "--members"),
        ("topics", "describe", f"nope{EVIL}", "-b", to),
    ):
        written = on_terminal(*command)
        assert written, command
        for raw in (b"\x1b]0;", b"\x1b[31m", b"\nforged line", "\u202e".encode(), b"\x07"):
            assert raw not in written, (command, raw)
    member.close()


def test_groups_are_finite(node: tuple[Server, int]) -> None:
    """The last test of this node: it takes all the room for groups."""
    server, _ = node
    request = messages.request(OFFSET_COMMIT)
    partition = request.OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    topics = [request.OffsetCommitRequestTopic(name=TOPIC, partitions=[partition])]
    client = RawClient(server.port)
    replies = [client.ask(OFFSET_COMMIT, 2, group_id=f"stranger-{i}", topics=topics) for i in range(60)]
    client.close()
    codes = {reply.topics[0].partitions[0].error_code for reply in replies}
    assert codes == {ErrorCode.NONE, ErrorCode.POLICY_VIOLATION}
    check_unharmed(server)


def test_one_create_topics_does_not_depose_the_active_controller(tmp_path: Path) -> None:
    """Part 3 of the hardening: some thousand topics in one request, also only validated, led to another election."""
    with up(tmp_path / "cluster", 3) as cluster:
        active = cluster.active()
        client = RawClient(cluster.port + active - 1)
        client.create_topic("honest")
        topics = [
            messages.request(CREATE_TOPICS).CreatableTopic(
                name=f"n.{i}", num_partitions=1, replication_factor=3, assignments=[], configs=[]
            )
            for i in range(5_000)
        ]

        def create(count: int, *, validate_only: bool) -> set[int]:
            reply = client.ask(CREATE_TOPICS, 7, topics=topics[:count], timeout_ms=60_000, validate_only=validate_only)
            assert len(reply.topics) == count
            return {topic.error_code for topic in reply.topics}

        leader = client.ask(METADATA, 4, topics=[messages.request(METADATA).MetadataRequestTopic(name="honest")])
        (partition,) = [p for p in leader.topics[0].partitions if p.partition_index == 0]
        with honest_client(cluster.port + partition.leader_id - 1, "honest"):
            assert create(5_000, validate_only=True) == {ErrorCode.NONE}
            assert create(5_000, validate_only=True) == {ErrorCode.NONE}
            assert create(200, validate_only=False) == {ErrorCode.NONE}
        assert cluster.active() == active
        log = (tmp_path / "cluster" / f"node-{active}" / "log").read_text()
        assert "stood still" not in log
        assert log.count('"no longer the active controller"') == 0
        client.close()
