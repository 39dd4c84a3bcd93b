"""Copiers of several kinds go on while nodes die and stand still; what they wrote is there exactly once, at every moment."""

from __future__ import annotations

import contextlib
import functools
import statistics
import threading
import time
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Producer

from strandline.api.groups.placement import partition_of
from strandline.client.blocking import Admin, Client
from tests.soak import SOAK, times
from tests.system.copiers import CommittedReader, ConfluentCopying, Copier, CopyingClient, OurCopying, Outcome
from tests.system.group_members import GROUPS_SOON
from tests.system.load import EAGER, all_in_sync, leaders, make_topic
from tests.system.local import Cluster, up
from tests.system.server import eventually
from tests.system.transaction_version import set_transaction_version

PARTITIONS = 6
REPLICAS = [[1, 2, 3], [2, 3, 1], [3, 1, 2]] * (PARTITIONS // 3)
STATE_PARTITIONS = 3
SETTINGS = (
    f"transaction.state.log.num.partitions={STATE_PARTITIONS}",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms=500",
    "group.consumer.session.timeout.ms=20000",
)
PAUSE_S = 0.004
"""Between two records of the input."""
BACK_TIMEOUT_S = 90
HANGS_AFTER_S = 20
"""librdkafka 2.16: send_offsets_to_transaction waits for a group coordinator that has left the metadata, whatever its timeout,
until another of its connections changes (confluentinc/librdkafka#5511, #5456). Such a client waits for the node to be back."""
IMPATIENT_MS = 1_500
"""How long some transactions may take: less than it takes until a node that stands still is replaced."""
COMMITS_AFTER = 3
"""Of each copier, before the next act."""
MakeCopying = Callable[[str, str, str, int], CopyingClient]
KINDS: dict[str, MakeCopying] = {
    "confluent-classic": functools.partial(ConfluentCopying, protocol="classic"),
    "confluent-consumer": functools.partial(ConfluentCopying, protocol="consumer"),
    "strandline-consumer": functools.partial(OurCopying, protocol="consumer"),
}

IMPATIENT: dict[str, MakeCopying] = {
    "confluent-impatient": functools.partial(ConfluentCopying, protocol="classic", timeout_ms=IMPATIENT_MS),
    "strandline-impatient": functools.partial(OurCopying, protocol="classic", timeout_ms=IMPATIENT_MS),
}
"""Their producers are fenced and made anew, some also because of how librdkafka takes errors; in `make soak` only."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    settings = [word for each in SETTINGS for word in ("--config", each)]
    with up(tmp_path_factory.mktemp("transactions") / "cluster", 3, 0, *GROUPS_SOON, *settings) as started:
        yield started


class Feeder:
    """The numbers 0, 1, 2, … flow to the partitions of a topic in turn."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 0, **EAGER})
        self._topic = topic
        self.written = 0
        self._enough = threading.Event()
        self._thread = threading.Thread(target=self._run, name="feeder")
        self._thread.start()

    def _run(self) -> None:
        while not self._enough.is_set():
            with contextlib.suppress(BufferError):
                self._producer.produce(self._topic, b"%d" % self.written, partition=self.written % PARTITIONS)
                self.written += 1
            self._producer.poll(PAUSE_S)

    def stop(self) -> None:
        self._enough.set()
        self._thread.join()
        assert self._producer.flush(BACK_TIMEOUT_S) == 0


class Run:
    """The copiers, what they copy, and the reader of what they write."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self.cluster = cluster
        self.source = make_topic(cluster, name, REPLICAS)
        self.copiers: list[Copier] = []
        self.took: dict[str, dict[str, list[float]]] = {}
        self.feeder = Feeder(cluster.bootstrap, self.source)
        for kind, make in (KINDS | IMPATIENT if SOAK else KINDS).items():
            target = make_topic(cluster, f"{name}-{kind}", REPLICAS)
            client = make(cluster.bootstrap, self.source, target, PARTITIONS)
            self.copiers.append(Copier(kind, target, client, PARTITIONS))
        self.reader = CommittedReader(cluster.bootstrap, self.copiers, PARTITIONS)

    # Who is who

    def transaction_coordinator(self, copier: Copier, bootstrap: str) -> int:
        return _coordinator(bootstrap, "__transaction_state", copier.target)

    def group_coordinator(self, copier: Copier, bootstrap: str) -> int:
        return _coordinator(bootstrap, "__consumer_offsets", copier.target)

    def target_leader(self, copier: Copier, bootstrap: str) -> int:
        return leaders(bootstrap, copier.target)[0]

    # What happens

    def wrong(self) -> list[str]:
        return [*self.reader.errors, *(error for copier in self.copiers for error in copier.errors)]

    def check(self) -> None:
        assert not self.wrong(), "\n".join(self.wrong()[:10])

    def go_on(self, what: str, since: float, *, one_is_gone: bool = False) -> None:
        """Every copier has committed more, and what it committed was read."""
        for copier in self.copiers:
            may_hang = one_is_gone and copier.name.startswith("confluent")

            def back(copier: Copier = copier) -> list[float] | None:
                self.check()
                later = [end for end in list(copier.ends) if end > since]
                return later if len(later) >= COMMITS_AFTER else None

            try:
                timeout_s = HANGS_AFTER_S if may_hang else BACK_TIMEOUT_S
                later = eventually(back, f"{copier.name} is back after: {what}", timeout_s)
            except AssertionError:
                self.check()
                if may_hang:
                    continue
                raise
            self.took.setdefault(what, {}).setdefault(copier.name, []).append(later[0] - since)

    def in_sync(self) -> None:
        topics = [self.source, "__transaction_state", "__consumer_offsets", *(each.target for each in self.copiers)]
        for topic in topics:
            all_in_sync(self.cluster, topic)

    def kill(self, what: str, role: Role, copier: Copier) -> None:
        node_id = role(self, copier, self.cluster.bootstrap)
        self.cluster.kill(node_id)
        self.go_on(f"kill {what}", time.monotonic(), one_is_gone=True)
        self.cluster.restart(node_id)
        self.go_on(f"restart {what}", time.monotonic())
        self.in_sync()

    def pause(self, what: str, role: Role, copier: Copier) -> None:
        """Until another node has its role, and has filled it."""
        node_id = role(self, copier, self.cluster.bootstrap)
        others = self.cluster.without(node_id)
        with self.cluster.paused(node_id):
            since = time.monotonic()
            eventually(lambda: role(self, copier, others) not in (node_id, -1), f"{what} is another node", 60)
            self.go_on(f"pause {what}", since, one_is_gone=True)
        self.go_on(f"resume {what}", time.monotonic())
        self.in_sync()

    def set_level(self, level: int) -> None:
        set_transaction_version(self.cluster, level)

    # The end

    def finish(self) -> None:
        self.feeder.stop()
        ends = {index: len(range(index, self.feeder.written, PARTITIONS)) for index in range(PARTITIONS)}

        def all_copied() -> bool:
            self.check()
            return all(copier.committed == ends for copier in self.copiers)

        eventually(all_copied, "everything is copied", BACK_TIMEOUT_S)

        def all_seen() -> bool:
            self.check()
            return sum(map(len, self.reader.seen.values())) >= self.feeder.written * len(self.copiers)

        eventually(all_seen, "everything is read", BACK_TIMEOUT_S)
        with Client(self.cluster.bootstrap) as client:
            found = Admin(client).list_group_offsets({each.target: None for each in self.copiers}, require_stable=True)
            for copier in self.copiers:
                offsets = {place[1]: each.offset for place, each in found[copier.target].items()}  # type: ignore[union-attr]
                assert offsets == ends, f"{copier.name} committed {offsets}, the input ends at {ends}"
        for (topic, partition), rows in self.reader.seen.items():
            assert [number for number, _ in rows] == list(range(partition, self.feeder.written, PARTITIONS)), topic
        self.check()

    def close(self) -> None:
        with contextlib.suppress(AssertionError):
            self.feeder.stop()
        for copier in self.copiers:
            copier.close()
        self.reader.close()

    def report(self) -> None:
        print(f"{self.feeder.written} records of input")
        for copier in self.copiers:
            print(
                f"{copier.name}: {copier.count(Outcome.COMMITTED)} committed, {copier.count(Outcome.ABORTED)} aborted, "
                f"{len(copier.spoilt)} spoilt {sorted(set(copier.spoilt))[:4]}, {len(copier.unusable)} unusable "
                f"{sorted(set(copier.unusable))[:4]}"
            )
        for what, by_copier in self.took.items():
            for name, seconds in by_copier.items():
                rounded = ", ".join(f"{each:.2f}" for each in seconds)
                print(f"{what}: {name} commits after {statistics.median(seconds):.2f} s ({rounded})")


def _coordinator(bootstrap: str, topic: str, name: str) -> int:
    found = leaders(bootstrap, topic)
    return found[partition_of(name, len(found))]


Role = Callable[[Run, Copier, str], int]
"""Which node it is, as the nodes at these addresses know."""
ROLES: dict[str, Role] = {
    "the transaction coordinator": Run.transaction_coordinator,
    "a target's leader": Run.target_leader,
    "the group coordinator": Run.group_coordinator,
}


@pytest.mark.timeout(2_400 if SOAK else 300)
def test_copiers_survive_kills_and_pauses(cluster: Cluster) -> None:
    run = Run(cluster, "copied")
    try:
        run.go_on("the start", time.monotonic())
        run.in_sync()
        for each in range(times(1, 10)):
            if SOAK:
                run.set_level(each % 2 * 2)
            for place, (what, role) in enumerate(ROLES.items()):
                copier = run.copiers[(each + place) % len(run.copiers)]
                run.kill(what, role, copier)
                if SOAK or what == "the transaction coordinator":
                    run.pause(what, role, copier)
        run.finish()
    finally:
        run.close()
        run.report()
