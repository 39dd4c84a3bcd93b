"""Groups of real consumers, each in a process of its own, and what they may never do to each other.

Always true: every process is gone when `group` is left. `check` asks the members' own stories: no partition was owned by two of
them at once; a record that was seen twice was first in the hands of a member that was killed, or whose commit was refused.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from confluent_kafka import Producer

from strandline.client.blocking import Admin, Client
from strandline.client.flow.group_descriptions import GroupDescription
from strandline.errors import KafkaError
from tests.judges.java import judge
from tests.system.load import EAGER
from tests.system.local import COMMAND
from tests.system.server import eventually

SETTLE_TIMEOUT_S = 40
END_TIMEOUT_S = 30
SESSION_MS = 4000
HEARTBEAT_MS = 200
LATEST = -1
QUICK = (
    "group.initial.rebalance.delay.ms=0",
    "group.min.session.timeout.ms=1000",
    f"group.consumer.session.timeout.ms={SESSION_MS}",
    "group.consumer.min.session.timeout.ms=1000",
    f"group.consumer.heartbeat.interval.ms={HEARTBEAT_MS}",
    "group.consumer.min.heartbeat.interval.ms=100",
    "group.consumer.assignment.interval.ms=0",
    "offsets.topic.num.partitions=5",
)
"""Brokers whose groups notice soon; tests wait for what they cause, never for a default."""
GROUPS_SOON = tuple(word for each in QUICK for word in ("--config", each))

_SESSION = {"session.timeout.ms": SESSION_MS, "heartbeat.interval.ms": HEARTBEAT_MS}
_UNDERSCORED = {"session_timeout_ms": SESSION_MS, "heartbeat_interval_ms": HEARTBEAT_MS}


class Kind(NamedTuple):
    """A client library and how it is set up."""

    library: str
    config: dict[str, Any]
    instance_key: str = "group.instance.id"

    @property
    def is_java(self) -> bool:
        return self.library == CONSOLE

    @property
    def is_incremental(self) -> bool:
        """Its members give up only what another one is to have, and say so."""
        ways = " ".join(map(str, self.config.values()))
        return self.library in ("confluent", "strandline") and ("cooperative" in ways or "consumer" in ways)


CONSOLE = "org.apache.kafka.tools.consumer.ConsoleConsumer"
OUR_CLI = "strandline consume"
_SOON = {"metadata.max.age.ms": 500, "auto.commit.interval.ms": 100, "fetch.max.wait.ms": 50}
KINDS = {
    "confluent range": Kind("confluent", {**EAGER, **_SESSION, "partition.assignment.strategy": "range"}),
    "confluent cooperative-sticky": Kind(
        "confluent", {**EAGER, **_SESSION, "partition.assignment.strategy": "cooperative-sticky"}
    ),
    "confluent consumer": Kind("confluent", {**EAGER, "group.protocol": "consumer"}),
    "aiokafka": Kind("aiokafka", _UNDERSCORED, "group_instance_id"),
    "kafka-python": Kind("kafka_python", _UNDERSCORED, "group_instance_id"),
    "strandline range": Kind(
        "strandline", {**_UNDERSCORED, "partition_assignment_strategy": ["range"]}, "group_instance_id"
    ),
    "strandline cooperative-sticky": Kind(
        "strandline", {**_UNDERSCORED, "partition_assignment_strategy": ["cooperative-sticky"]}, "group_instance_id"
    ),
    "strandline consumer": Kind("strandline", {"group_protocol": "consumer"}, "group_instance_id"),
    "java": Kind(CONSOLE, {**_SOON, **_SESSION}),
    "java consumer": Kind(CONSOLE, {**_SOON, "group.protocol": "consumer"}),
    "consume --group": Kind(OUR_CLI, {**_SOON, **_SESSION}),
}


class Member:
    """A process, and its story so far."""

    def __init__(self, command: list[str], name: str) -> None:
        self.name = name
        self.events: list[dict[str, Any]] = []
        self.killed_at: float | None = None
        self.acknowledged: dict[tuple[str, int], int] = {}
        """The last offset of each partition that it was told is committed."""
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            event = self.parse(line)
            self.events.append(event)
            if event["event"] == "committed":
                self.acknowledged |= {(topic, partition): offset for topic, partition, offset in event["offsets"]}

    def parse(self, line: str) -> dict[str, Any]:
        event: dict[str, Any] = json.loads(line)
        return event

    def of(self, *kinds: str) -> list[dict[str, Any]]:
        return [event for event in list(self.events) if event["event"] in kinds]

    @property
    def owned(self) -> set[tuple[str, int]]:
        owned: set[tuple[str, int]] = set()
        for event in self.of("assigned", "revoked", "lost"):
            partitions = {(topic, partition) for topic, partition in event["partitions"]}
            owned = owned | partitions if event["event"] == "assigned" else owned - partitions
        return owned

    @property
    def given_up(self) -> list[tuple[str, int]]:
        return [(topic, partition) for event in self.of("revoked", "lost") for topic, partition in event["partitions"]]

    @property
    def is_alive(self) -> bool:
        return self.process.poll() is None

    def seen(self) -> list[tuple[str, int, int]]:
        return [
            (topic, partition, offset)
            for event in self.of("seen")
            for topic, partition, offsets in event["records"]
            for offset in offsets
        ]

    def intervals(self) -> list[tuple[tuple[str, int], float, float]]:
        """When which partition was its own. What was lost was so for an unknown time: until it last showed itself as owner."""
        since: dict[tuple[str, int], float] = {}
        found = []
        for event in self.of("assigned", "revoked", "lost", "left"):
            if event["event"] == "assigned":
                since.update(dict.fromkeys(map(tuple, event["partitions"]), event["at"]))
                continue
            gone = set(since) if event["event"] == "left" else {(t, p) for t, p in event["partitions"]} & set(since)
            for place in gone:
                until = event["at"] if event["event"] != "lost" else self._last_sign(place, since[place], event["at"])
                found.append((place, since.pop(place), until))
        end = self.killed_at or time.monotonic()
        return [*found, *((place, began, end) for place, began in since.items())]

    def _last_sign(self, place: tuple[str, int], since: float, until: float) -> float:
        signs = [
            event["at"]
            for event in self.of("committed")
            if since <= event["at"] <= until and any((t, p) == place for t, p, _ in event["offsets"])
        ]
        return max(signs, default=since)

    def close(self) -> None:
        """It leaves as its library does it."""
        self.ask_to_close()
        self.await_end()

    def ask_to_close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("close\n")
        self.process.stdin.flush()

    def await_end(self) -> None:
        code = self.process.wait(END_TIMEOUT_S)
        self._reader.join(END_TIMEOUT_S)
        assert code == 0, f"{self.name} ended with {code}"

    def kill(self) -> None:
        self.killed_at = time.monotonic()
        self.process.kill()
        self.process.wait(END_TIMEOUT_S)
        self._reader.join(END_TIMEOUT_S)

    def discard(self) -> None:
        if self.is_alive:
            self.process.kill()
        self.process.wait(END_TIMEOUT_S)
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            with contextlib.suppress(OSError):
                pipe.close()


class ToolMember(Member):
    """A tool that prints records and nothing else: what it owns, only the coordinator can tell."""

    def __init__(self, command: list[str], name: str, group: Group) -> None:
        self._group = group
        super().__init__(command, name)

    def parse(self, line: str) -> dict[str, Any]:
        record = json.loads(line) if line.startswith("{") else _of_console(line)
        place = [self._group.topic, record["partition"], [record["offset"]]]
        return {"event": "seen", "at": time.monotonic(), "records": [place]}

    @property
    def owned(self) -> set[tuple[str, int]]:
        description = self._group.described()
        if description is None:
            return set()
        return {place for member in description.members if member.client_id == self.name for place in member.assignment}

    def intervals(self) -> list[tuple[tuple[str, int], float, float]]:
        return []

    def ask_to_close(self) -> None:
        """By Ctrl-C."""
        self.process.send_signal(signal.SIGINT)

    def await_end(self) -> None:
        self.process.wait(END_TIMEOUT_S)
        self._reader.join(END_TIMEOUT_S)


def _of_console(line: str) -> dict[str, Any]:
    fields = dict(field.split(":", 1) for field in line.split("\t")[:2])
    return {"partition": int(fields["Partition"]), "offset": int(fields["Offset"])}


class Brokers(Protocol):
    """Ours, or Apache Kafka's."""

    @property
    def bootstrap(self) -> str: ...

    @property
    def directory(self) -> Path: ...


class Group:
    """One group on one topic whose partitions hold equally many records."""

    def __init__(self, cluster: Brokers, topic: str, partitions: int, name: str | None = None) -> None:
        self.cluster = cluster
        self.topic = topic
        self.partitions = partitions
        self.name = name or f"group-{uuid.uuid4().hex[:8]}"
        self.members: list[Member] = []
        self.began = self.written = 0
        """To each partition was written so much; members saw what came after the beginning."""
        self._client = Client(cluster.bootstrap)
        self.admin = Admin(self._client)
        self._producer = Producer({"bootstrap.servers": cluster.bootstrap, "linger.ms": 0, **EAGER})

    @property
    def living(self) -> list[Member]:
        return [member for member in self.members if member.is_alive and member.killed_at is None]

    def start(
        self,
        kind: str,
        instance: str | None = None,
        topics: list[str] | None = None,
        config: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> Member:
        library, usual, instance_key = KINDS[kind]
        name = f"{kind.replace(' ', '-')}-{len(self.members)}"
        given = usual | dict(config or {}) | ({instance_key: instance} if instance else {})
        member: Member
        if library in (CONSOLE, OUR_CLI):
            member = ToolMember(self._tool(library, name, given), name, self)
        else:
            settings = {"bootstrap": self.cluster.bootstrap, "group": self.name, "name": name, "config": given}
            settings |= {"topics": topics or [self.topic], **more}
            member = Member([sys.executable, "-m", "tests.system.member_process", library, json.dumps(settings)], name)
        self.members.append(member)
        return member

    def _tool(self, library: str, name: str, config: dict[str, Any]) -> list[str]:
        if library == OUR_CLI:
            path = self.cluster.directory / f"{self.name}-{name}.properties"
            settings = config | {"client.id": name}
            path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
            flags = ("--group", self.name, "--from-beginning", "--json", "--command-config", str(path))
            return [*COMMAND, "consume", self.topic, "--bootstrap-server", self.cluster.bootstrap, *flags]
        properties = {"group.id": self.name, "client.id": name, **config}
        more = [flag for key, value in properties.items() for flag in ("--command-property", f"{key}={value}")]
        for shown in ("print.partition=true", "print.offset=true"):
            more += ["--formatter-property", shown]
        return judge().command(
            library, "--bootstrap-server", self.cluster.bootstrap, "--topic", self.topic, "--from-beginning", *more
        )

    def described(self) -> GroupDescription | None:
        found = self.admin.describe_groups([self.name])[self.name]
        return found if isinstance(found, GroupDescription) else None

    def divided(self, *expected: int) -> None:
        """Until the living members own all partitions, each one's own, and (if it is said) so many each."""

        def is_divided() -> bool:
            for member in self.members:
                assert member.is_alive or member.killed_at is not None or member.of("left") or self._is_tool(member), (
                    f"{member.name} ended by itself"
                )
            owned = [member.owned for member in self.living]
            places = [place for each in owned for place in each]
            everything = len(set(places)) == self.partitions and len(places) == self.partitions
            return everything and (not expected or sorted(map(len, owned)) == sorted(expected))

        try:
            eventually(is_divided, f"{self.name} is divided", SETTLE_TIMEOUT_S)
        except AssertionError as error:
            owners = {member.name: sorted(member.owned) for member in self.living}
            raise AssertionError(f"{error}: {owners}; {self.described()}") from None

    @staticmethod
    def _is_tool(member: Member) -> bool:
        return isinstance(member, ToolMember)

    def write(self, records: int = 30) -> None:
        """So many more to each partition, and all of them are read."""
        for number in range(records * self.partitions):
            self._producer.produce(self.topic, b"%d" % number, partition=number % self.partitions)
        assert self._producer.flush(END_TIMEOUT_S) == 0
        self.written += records
        self.reads_all()

    def reads_all(self) -> None:
        self._reads(dict.fromkeys(range(self.partitions), self.written))

    def reads_to_the_end(self) -> None:
        """Until all that is in the topic now was seen, and the coordinator knows."""
        asked = {(self.topic, partition): LATEST for partition in range(self.partitions)}
        answers = self.admin.list_offsets(asked).items()
        ends = {place[1]: answer.offset for place, answer in answers if not isinstance(answer, KafkaError)}
        self._reads(ends)
        wanted = {(self.topic, partition): end for partition, end in ends.items()}
        eventually(lambda: self.offsets() == wanted, f"{self.name} committed all", SETTLE_TIMEOUT_S)

    def _reads(self, ends: Mapping[int, int]) -> None:
        everything = {
            (self.topic, partition, offset) for partition, end in ends.items() for offset in range(self.began, end)
        }

        def all_seen() -> bool:
            return everything <= {place for member in self.members for place in member.seen()}

        try:
            eventually(all_seen, "all records are seen", SETTLE_TIMEOUT_S)
        except AssertionError as error:
            missing = sorted(everything - {place for member in self.members for place in member.seen()})
            raise AssertionError(f"{error}: {len(missing)} are not, such as {missing[:3]}") from None

    def committed_to_the_end(self) -> None:
        """Until the coordinator has everything that was written as committed."""
        end = dict.fromkeys(((self.topic, partition) for partition in range(self.partitions)), self.written)
        eventually(lambda: self.offsets() == end, f"{self.name} committed {self.written} everywhere", SETTLE_TIMEOUT_S)

    def offsets(self) -> dict[tuple[str, int], int]:
        """Committed, as the coordinator tells."""
        answer: Any = self.admin.list_group_offsets({self.name: None})[self.name]
        assert isinstance(answer, dict), answer
        return {place: offset.offset for place, offset in answer.items() if offset is not None}

    def check(self) -> None:
        check_ownership(self.members)
        check_seen(self.members)

    def close(self) -> None:
        for member in self.members:
            member.discard()
        self._client.close()


def check_ownership(members: list[Member]) -> None:
    """No partition in two hands at once."""
    rows = sorted(
        (place, since, until, member.name) for member in members for place, since, until in member.intervals()
    )
    for (place, _, until, first), (following, since, _, second) in itertools.pairwise(rows):
        assert place != following or until <= since, f"{place} was {first}'s until {until} and {second}'s from {since}"


def check_seen(members: list[Member]) -> None:
    """Whoever saw a record that was seen before took over from a member that could not say so any more."""
    seen: dict[tuple[str, int, int], list[Member]] = {}
    for member in members:
        for place in member.seen():
            seen.setdefault(place, []).append(member)
    for (topic, partition, offset), by in seen.items():
        if len(by) > 1:
            excused = [m for m in by if m.killed_at is not None and m.acknowledged.get((topic, partition), 0) <= offset]
            refused = [
                m
                for m in by
                for event in m.of("refused")
                if any((t, p) == (topic, partition) and offset < o for t, p, o in event["offsets"])
            ]
            names = [member.name for member in by]
            assert len(by) - 1 <= len(excused) + len(refused), f"{topic}-{partition}@{offset} was seen by {names}"


@contextlib.contextmanager
def group(cluster: Brokers, topic: str, partitions: int, name: str | None = None) -> Iterator[Group]:
    found = Group(cluster, topic, partitions, name)
    try:
        yield found
    finally:
        found.close()
