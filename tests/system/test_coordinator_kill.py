"""The coordinator's node is killed again and again while members of many kinds read and commit.

What was acknowledged as committed stays so, nobody's partition is somebody else's at the same time, and everybody gets on. How
long members needed until their next commit was acknowledged is printed; what is judged here is only what was promised.
"""

from __future__ import annotations

import contextlib
import functools
import statistics
import threading
import time
from collections.abc import Iterator

import pytest
from confluent_kafka import Producer

from strandline.client.blocking import Admin, Client
from strandline.errors import KafkaError
from tests.soak import times
from tests.system.group_members import GROUPS_SOON, Group, Member, check_ownership, check_seen
from tests.system.load import EAGER, all_in_sync, make_topic
from tests.system.local import Cluster, up
from tests.system.server import eventually

KILLS = times(4, 20)
PARTITIONS = 6
REPLICAS = [[1, 2, 3], [2, 3, 1], [3, 1, 2]] * (PARTITIONS // 3)
PAUSE_S = 0.004
"""Between two records."""
BACK_TIMEOUT_S = 60
SETTINGS = ("offsets.topic.num.partitions=1", "group.consumer.session.timeout.ms=10000")
"""One partition, so that both groups have the same coordinator; sessions longer than any failover."""
SESSION = {"session.timeout.ms": 10_000, "heartbeat.interval.ms": 500}
UNDERSCORED = {"session_timeout_ms": 10_000, "heartbeat_interval_ms": 500}
CLASSIC = {
    "confluent range": SESSION,
    "aiokafka": UNDERSCORED,
    "kafka-python": UNDERSCORED,
    "strandline range": UNDERSCORED,
}
CONSUMER: dict[str, dict[str, int]] = {"confluent consumer": {}, "strandline consumer": {}}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    settings = [word for each in SETTINGS for word in ("--config", each)]
    with up(tmp_path_factory.mktemp("kill") / "cluster", 3, 0, *GROUPS_SOON, *settings) as started:
        yield started


class Stream:
    """Records that flow to some topics all the time."""

    def __init__(self, bootstrap: str, topics: list[str]) -> None:
        self._producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 0, **EAGER})
        self._topics = topics
        self._enough = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        number = 0
        while not self._enough.is_set():
            topic, partition = self._topics[number % len(self._topics)], number // len(self._topics) % PARTITIONS
            with contextlib.suppress(BufferError):
                self._producer.produce(topic, b"%d" % number, partition=partition)
                number += 1
            self._producer.poll(PAUSE_S)

    def stop(self) -> None:
        self._enough.set()
        self._thread.join()
        assert self._producer.flush(BACK_TIMEOUT_S) == 0


class Witness:
    """Asks the coordinator over and over what is committed and who owns what, and remembers every contradiction."""

    def __init__(self, groups: list[Group]) -> None:
        self.contradictions: list[str] = []
        self.answers = 0
        self._groups = groups
        self._enough = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        highest: dict[tuple[str, str, int], int] = {}
        with Client(self._groups[0].cluster.bootstrap) as client:
            admin = Admin(client)
            while not self._enough.wait(PAUSE_S):
                for each in self._groups:
                    acknowledged = _acknowledged(each.members)
                    self._ask(admin, each, acknowledged, highest)

    def _ask(
        self,
        admin: Admin,
        each: Group,
        acknowledged: dict[tuple[str, int], int],
        highest: dict[tuple[str, str, int], int],
    ) -> None:
        offsets = admin.list_group_offsets({each.name: None})[each.name]
        if isinstance(offsets, KafkaError):
            assert offsets.retriable, offsets
            return
        self.answers += 1
        found = {
            place: answer.offset
            for place, answer in offsets.items()
            if answer is not None and not isinstance(answer, KafkaError)
        }
        for place, offset in acknowledged.items():
            if found.get(place, -1) < offset:
                self.contradictions.append(
                    f"{each.name} {place}: {offset} was acknowledged, {found.get(place)} is committed"
                )
        for (topic, partition), offset in found.items():
            before = highest.get((each.name, topic, partition), -1)
            if offset < before:
                self.contradictions.append(f"{each.name} {topic}-{partition} went back from {before} to {offset}")
            highest[each.name, topic, partition] = offset
        described = admin.describe_groups([each.name])[each.name]
        if not isinstance(described, KafkaError):
            places = [place for member in described.members for place in member.assignment]
            if len(places) != len(set(places)):
                self.contradictions.append(f"{each.name} has a partition twice: {described}")

    def stop(self) -> None:
        self._enough.set()
        self._thread.join()


def _acknowledged(members: list[Member]) -> dict[tuple[str, int], int]:
    highest: dict[tuple[str, int], int] = {}
    for member in members:
        for place, offset in dict(member.acknowledged).items():
            highest[place] = max(highest.get(place, -1), offset)
    return highest


def back(member: Member, since: float, position: int) -> float | None:
    """How long after that this member had something committed that it saw after it; no event before `position` is later."""
    has_seen = False
    for event in member.events[position:]:
        if event["event"] == "seen":
            has_seen = event["at"] > since
        elif has_seen and event["event"] == "committed":
            return float(event["at"]) - since
    return None


@pytest.mark.timeout(400)
def test_the_coordinator_is_killed_again_and_again(cluster: Cluster) -> None:
    groups = [Group(cluster, make_topic(cluster, name, REPLICAS), PARTITIONS, name) for name in ("classic", "consumer")]
    members: list[Member] = []
    stream = witness = None
    took: dict[str, list[float]] = {}
    try:
        for found, kinds in zip(groups, (CLASSIC, CONSUMER), strict=True):
            for kind, config in kinds.items():
                found.start(kind, config=config)
            found.divided()
        members = [member for found in groups for member in found.members]
        stream = Stream(cluster.bootstrap, [found.topic for found in groups])
        witness = Witness(groups)
        for _ in range(KILLS):
            described = groups[0].described()
            assert described is not None
            coordinator = described.coordinator.node_id
            positions = [len(member.events) for member in members]
            cluster.kill(coordinator)
            since = time.monotonic()
            for member, position in zip(members, positions, strict=True):
                asked = functools.partial(back, member, since, position)
                took.setdefault(member.name, []).append(eventually(asked, f"{member.name} is back", BACK_TIMEOUT_S))
            cluster.restart(coordinator)
            for topic in ("__consumer_offsets", *(found.topic for found in groups)):
                all_in_sync(cluster, topic)
            assert not witness.contradictions, witness.contradictions[0]
        stream.stop()
        for found in groups:
            found.reads_to_the_end()
        witness.stop()
        assert not witness.contradictions, witness.contradictions[0]
        assert witness.answers > KILLS
        for member in members:
            member.close()
        for found in groups:
            check_ownership(found.members)
            check_seen(found.members)
    finally:
        for running in (stream, witness):
            if running is not None:
                running.stop()
        for found in groups:
            found.close()
        for name, seconds in took.items():
            rounded = ", ".join(f"{each:.2f}" for each in seconds)
            print(f"{name}: back after {statistics.median(seconds):.2f} s, at most {max(seconds):.2f} s ({rounded})")
        for member in members:
            story = [event["event"] for event in member.of("assigned", "revoked", "lost", "refused", "again")]
            print(f"{member.name}: {', '.join(f'{story.count(word)} {word}' for word in sorted(set(story)))}")
