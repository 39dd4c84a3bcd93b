"""Many groups that heart-beat, and one client that commits, on Strandline and on Apache Kafka in turn.

    python -m bench.groups                    # 200 groups of 5 members, 30 s each; then commits for 10 s
    python -m bench.groups --only ours --json numbers.json

The members are frames on connections of their own, one connection for each member, so that what is measured is the brokers and not
a client. Always true: every member is in its group, with an assignment, before the clock runs; every heartbeat and commit that is
counted was answered without an error.
"""

from __future__ import annotations

import asyncio
import json
import struct
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import click
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from rich.console import Console
from rich.table import Table
from tests.judges.java import JudgeMissing

from bench.clusters import START, TITLES, CannotStart, Cluster, Name, wanted
from bench.processes import cpu_s, settle
from strandline.wire import messages

NODES, GROUPS, MEMBERS = 3, 200, 5
SECONDS, COMMIT_SECONDS = 30.0, 10.0
IN_FLIGHT = 50
"""Commits that one client has under way."""
TOPIC, PARTITIONS = "grouped", 6
STEP_S_MAX = 120.0
CLASSIC_INTERVAL_S, CONSUMER_INTERVAL_S = 3.0, 5.0
"""How often members of either protocol send heartbeats, by default."""
TARGET_PERCENT, TARGET_COMMITS = 10.0, 5_000
OFFSET_COMMIT, FIND_COORDINATOR, JOIN, HEARTBEAT, SYNC, CONSUMER_HEARTBEAT = 8, 10, 11, 12, 14, 68
VERSIONS = {OFFSET_COMMIT: 8, FIND_COORDINATOR: 4, JOIN: 9, HEARTBEAT: 4, SYNC: 5, CONSUMER_HEARTBEAT: 1}
MEMBER_ID_REQUIRED, UNKNOWN_MEMBER, UNKNOWN_TOPIC, RETRIABLE = 79, 25, 3, (14, 15, 16, 27)
MARK = 0x0123_4567_89AB_CDEF
"""An offset that is found again in a frame."""


@dataclass(frozen=True, slots=True)
class Measured:
    """Percent of one core, in the order of node ids."""

    classic_percent: tuple[float, ...]
    classic_heartbeats_per_s: float
    consumer_percent: tuple[float, ...]
    consumer_heartbeats_per_s: float
    commits_per_s: float
    commit_cpu_us: float
    """Of all nodes together, for one commit."""


class NotServed(Exception):
    """A broker answered with an error, or not in time."""


@dataclass(slots=True)
class Line:
    """One connection: requests out, answers in their order."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    waiting: asyncio.Lock = field(default_factory=asyncio.Lock)

    @classmethod
    async def to(cls, address: tuple[str, int]) -> Line:
        return cls(*await asyncio.open_connection(*address))

    async def ask(self, api_key: int, message: Any) -> Any:
        async with self.waiting:
            self.writer.write(frame(api_key, message))
            return await self.answer(api_key)

    async def answer(self, api_key: int) -> Any:
        size = struct.unpack(">i", await self.reader.readexactly(4))[0]
        return messages.decode_response(api_key, VERSIONS[api_key], await self.reader.readexactly(size), 5)

    def close(self) -> None:
        self.writer.close()


def frame(api_key: int, message: Any) -> bytes:
    """All of these versions are flexible, so their headers are alike."""
    version = VERSIONS[api_key]
    header = struct.pack(">hhih", api_key, version, 0, 5) + b"bench" + b"\0"
    body = header + messages.encode_request(api_key, version, message)
    return struct.pack(">i", len(body)) + body


async def coordinators(address: tuple[str, int], groups: list[str]) -> dict[str, tuple[str, int]]:
    line = await Line.to(address)
    found: dict[str, tuple[str, int]] = {}
    deadline = time.monotonic() + STEP_S_MAX
    while missing := [group for group in groups if group not in found]:
        if time.monotonic() > deadline:
            raise NotServed(f"no coordinator for {len(missing)} groups")
        answer = await line.ask(
            FIND_COORDINATOR, messages.request(FIND_COORDINATOR)(key_type=0, coordinator_keys=missing)
        )
        found |= {each.key: (each.host, each.port) for each in answer.coordinators if not each.error_code}
        await asyncio.sleep(0.1)
    line.close()
    return found


class ClassicMember:
    """A member that says it is there every three seconds."""

    interval_s = CLASSIC_INTERVAL_S

    def __init__(self, group: str, line: Line) -> None:
        self.group, self.line = group, line
        self.beats = 0
        self._beat = b""

    async def join(self) -> None:
        Join, Sync = messages.request(JOIN), messages.request(SYNC)
        member_id = ""
        while True:
            joined = await self.line.ask(
                JOIN,
                Join(
                    group_id=self.group,
                    session_timeout_ms=45_000,
                    rebalance_timeout_ms=300_000,
                    member_id=member_id,
                    group_instance_id=None,
                    protocol_type="consumer",
                    protocols=[Join.JoinGroupRequestProtocol(name="range", metadata=SUBSCRIPTION)],
                    reason=None,
                ),
            )
            member_id = joined.member_id
            if joined.error_code in (MEMBER_ID_REQUIRED, *RETRIABLE):
                await asyncio.sleep(0 if joined.error_code == MEMBER_ID_REQUIRED else 0.1)
                continue
            check(joined.error_code, "JoinGroup")
            leads = joined.leader == member_id
            synced = await self.line.ask(
                SYNC,
                Sync(
                    group_id=self.group,
                    generation_id=joined.generation_id,
                    member_id=member_id,
                    group_instance_id=None,
                    protocol_type="consumer",
                    protocol_name="range",
                    assignments=[
                        Sync.SyncGroupRequestAssignment(member_id=each.member_id, assignment=b"\0\0\0\0\0\0\0\0\0\0")
                        for each in joined.members
                    ]
                    if leads
                    else [],
                ),
            )
            if synced.error_code in RETRIABLE:
                continue
            check(synced.error_code, "SyncGroup")
            self._beat = frame(
                HEARTBEAT,
                messages.request(HEARTBEAT)(
                    group_id=self.group,
                    generation_id=joined.generation_id,
                    member_id=member_id,
                    group_instance_id=None,
                ),
            )
            return

    async def beat(self) -> None:
        self.line.writer.write(self._beat)
        answer = await self.line.answer(HEARTBEAT)
        if answer.error_code in (*RETRIABLE, UNKNOWN_MEMBER):  # others joined meanwhile, or it was taken for dead
            await self.join()
        else:
            check(answer.error_code, "Heartbeat")
            self.beats += 1


class ConsumerMember:
    """A member of KIP-848's protocol; the coordinator assigns, and it obeys."""

    interval_s = CONSUMER_INTERVAL_S

    def __init__(self, group: str, line: Line) -> None:
        self.group, self.line = group, line
        self.beats = 0
        self._epoch = 0
        self._member_id = ""
        self._owned: Any = []

    async def join(self) -> None:
        await self._ask(full=True)

    async def beat(self) -> None:
        await self._ask(full=False)
        self.beats += 1

    async def _ask(self, *, full: bool) -> None:
        Beat = messages.request(CONSUMER_HEARTBEAT)
        answer = await self.line.ask(
            CONSUMER_HEARTBEAT,
            Beat(
                group_id=self.group,
                member_id=self._member_id or f"{self.group}-{id(self)}",
                member_epoch=self._epoch,
                instance_id=None,
                rack_id=None,
                rebalance_timeout_ms=300_000 if full else -1,
                subscribed_topic_names=[TOPIC] if full else None,
                subscribed_topic_regex=None,
                server_assignor=None,
                topic_partitions=self._owned if full or self._owned is not None else None,
            ),
        )
        if answer.error_code in RETRIABLE:
            await asyncio.sleep(0.1)
            await self._ask(full=full)
            return
        check(answer.error_code, f"ConsumerGroupHeartbeat: {answer.error_message}")
        self._member_id, self._epoch = answer.member_id, answer.member_epoch
        self._owned = None
        if answer.assignment is not None:
            self._owned = [
                Beat.TopicPartitions(topic_id=each.topic_id, partitions=each.partitions)
                for each in answer.assignment.topic_partitions
            ]


SUBSCRIPTION = struct.pack(">hih", 0, 1, len(TOPIC)) + TOPIC.encode() + struct.pack(">i", -1)


def check(code: int, what: str) -> None:
    if code:
        raise NotServed(f"{what} was answered with error {code}")


async def heartbeats(
    cluster: Cluster, kind: Any, groups: int, members: int, seconds: float
) -> tuple[list[float], float]:
    """Percent of a core that each node needs, and heartbeats in a second."""
    host, port = cluster.addresses[0].split(":")
    names = [f"{kind.__name__}-{number:03}" for number in range(groups)]
    found = await coordinators((host, int(port)), names)
    joined = [kind(name, await Line.to(found[name])) for name in names for _ in range(members)]
    async with asyncio.timeout(STEP_S_MAX):
        await asyncio.gather(*(member.join() for member in joined))
    is_over = False

    async def live(member: Any, first_s: float) -> None:
        await asyncio.sleep(first_s)
        while not is_over:
            await member.beat()
            await asyncio.sleep(member.interval_s)

    living = [
        asyncio.create_task(live(member, kind.interval_s * number / len(joined)))
        for number, member in enumerate(joined)
    ]
    await asyncio.sleep(4 * kind.interval_s)  # the last of a group to join has the others join again
    before, beats, began = [cpu_s([pid]) for pid in cluster.pids], sum(m.beats for m in joined), time.monotonic()
    await asyncio.sleep(seconds)
    used = [cpu_s([pid]) - earlier for pid, earlier in zip(cluster.pids, before, strict=True)]
    watched_s = time.monotonic() - began
    beats = sum(member.beats for member in joined) - beats
    is_over = True
    for task in living:
        if task.done() and task.exception() is not None:
            raise NotServed(str(task.exception()))
        task.cancel()
    for member in joined:
        member.line.close()
    return [100 * each / watched_s for each in used], beats / watched_s


class Commits:
    """Frames of one commit for each partition, in which only the offset is written anew, and the answers they get."""

    def __init__(self) -> None:
        Commit = messages.request(OFFSET_COMMIT)
        self._frames = []
        for index in range(PARTITIONS):
            partition = Commit.OffsetCommitRequestPartition(
                partition_index=index, committed_offset=MARK, committed_leader_epoch=0, committed_metadata=""
            )
            topic = Commit.OffsetCommitRequestTopic(name=TOPIC, partitions=[partition])
            message = Commit(
                group_id="committing",
                generation_id_or_member_epoch=-1,
                member_id="",
                group_instance_id=None,
                topics=[topic],
            )
            self._frames.append(bytearray(frame(OFFSET_COMMIT, message)))
        self._offset_at = self._frames[0].index(struct.pack(">q", MARK))
        self._good: set[bytes] = set()
        """Answers that were read and had no error."""

    def frame(self, offset: int) -> bytes:
        found = self._frames[offset % PARTITIONS]
        struct.pack_into(">q", found, self._offset_at, offset)
        return bytes(found)

    def code(self, answer: bytes) -> int:
        if answer in self._good:
            return 0
        read = messages.decode_response(OFFSET_COMMIT, VERSIONS[OFFSET_COMMIT], answer, 5)
        code = int(read.topics[0].partitions[0].error_code)
        if not code:
            self._good.add(answer)
        return code


async def commits(cluster: Cluster, seconds: float) -> tuple[float, float]:
    """Commits in a second from one client, and what one costs all nodes together in us."""
    host, port = cluster.addresses[0].split(":")
    line = await Line.to((await coordinators((host, int(port)), ["committing"]))["committing"])
    made = Commits()
    sent = done = counted = 0
    warm_until, cpu_before, began = time.monotonic() + 2, 0.0, 0.0
    while True:
        while sent < done + IN_FLIGHT:
            sent += 1
            line.writer.write(made.frame(sent))
        size = struct.unpack(">i", await line.reader.readexactly(4))[0]
        code = made.code(await line.reader.readexactly(size))
        if code not in (*RETRIABLE, UNKNOWN_TOPIC) or began:
            check(code, "OffsetCommit")
        done += 1
        now = time.monotonic()
        if not began and now >= warm_until:
            cpu_before, began, counted = cpu_s(cluster.pids), now, done
        if began and now - began >= seconds:
            used = cpu_s(cluster.pids) - cpu_before
            line.close()
            return (done - counted) / (now - began), used / (done - counted) * 1e6


@click.command()
@click.option("--only", type=click.Choice(["ours", "kafka"]), help="Measure only one of the two.")
@click.option("--groups", type=click.IntRange(1), default=GROUPS, show_default=True)
@click.option("--members", type=click.IntRange(1), default=MEMBERS, show_default=True, help="Of each group.")
@click.option("--seconds", type=click.FloatRange(1), default=SECONDS, show_default=True, help="How long to watch.")
@click.option("--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), help="Write all numbers here.")
def main(only: Name | None, groups: int, members: int, seconds: float, json_file: Path | None) -> None:
    """Measure what groups cost each node of Strandline and of Apache Kafka."""
    console = Console()
    measured: dict[Name, Measured] = {}
    try:
        for name in wanted(only, console):
            with console.status(f"{TITLES[name]}: {groups} groups of {members}"), START[name](NODES) as cluster:
                measured[name] = _measure(cluster, groups, members, seconds)
    except (CannotStart, JudgeMissing, KafkaException, NotServed, OSError, EOFError, TimeoutError) as error:
        console.print(f"could not measure: {error!r}", markup=False, style="red")
        sys.exit(1)
    console.print(_table(measured, f"{groups} groups of {members} members on {NODES} nodes, {seconds:g} s"))
    if json_file is not None:
        conditions = {"nodes": NODES, "groups": groups, "members": members, "seconds": seconds}
        numbers = {name: asdict(each) for name, each in measured.items()}
        json_file.write_text(json.dumps({"conditions": conditions, "clusters": numbers}, indent=2) + "\n")


def _measure(cluster: Cluster, groups: int, members: int, seconds: float) -> Measured:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
    admin.create_topics([NewTopic(TOPIC, PARTITIONS, NODES)])[TOPIC].result(STEP_S_MAX)
    settle(cluster.pids)
    classic, classic_rate = asyncio.run(heartbeats(cluster, ClassicMember, groups, members, seconds))
    settle(cluster.pids)
    consumer, consumer_rate = asyncio.run(heartbeats(cluster, ConsumerMember, groups, members, seconds))
    settle(cluster.pids)
    rate, cpu_us = asyncio.run(commits(cluster, COMMIT_SECONDS))
    return Measured(tuple(classic), classic_rate, tuple(consumer), consumer_rate, rate, cpu_us)


def _table(measured: Mapping[Name, Measured], title: str) -> Table:
    result = Table(title=title)
    for heading in ("", *(TITLES[name] for name in measured), "target"):
        result.add_column(heading, justify="right" if heading else "left")
    busiest = f"<= {TARGET_PERCENT:g}"
    rows: tuple[tuple[str, str, Callable[[Measured], str]], ...] = (
        ("classic, % of a core of each node", busiest, lambda m: _percents(m.classic_percent)),
        ("classic, heartbeats/s", "", lambda m: f"{m.classic_heartbeats_per_s:,.0f}"),
        ("consumer protocol, % of a core of each node", busiest, lambda m: _percents(m.consumer_percent)),
        ("consumer protocol, heartbeats/s", "", lambda m: f"{m.consumer_heartbeats_per_s:,.0f}"),
        ("commits/s of one client", f">= {TARGET_COMMITS:,}", lambda m: f"{m.commits_per_s:,.0f}"),
        ("server cpu of a commit, us", "", lambda m: f"{m.commit_cpu_us:,.0f}"),
    )
    for label, target, show in rows:
        result.add_row(label, *(show(each) for each in measured.values()), target)
    return result


def _percents(values: tuple[float, ...]) -> str:
    return " ".join(f"{value:.1f}" for value in values)


if __name__ == "__main__":
    main()
