"""The setting of a history: the cluster, its configuration, its topics, and what may be promised of it.

Timers are Kafka's or nearly so: most of a history is quiet, as most of a cluster's life is. A few settings are brisk.

Always true: a setting is drawn from the seed alone; whatever a history may lose, its setting says so from the
beginning.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace

from strandline.client.flow.descriptions import NewTopic
from strandline.histories.compaction import plan as compaction_plans
from strandline.histories.compaction.plan import COMPACTED, CompactionPlan
from strandline.histories.groups import plan as group_plans
from strandline.histories.groups.plan import GROUPED, GroupPlan
from strandline.histories.member import LOG_DIR
from strandline.histories.replica_observation import PermittedLoss
from strandline.histories.shape import Shape
from strandline.histories.transactions import plan as transaction_plans
from strandline.histories.transactions.plan import LEDGER, TransactionPlan
from strandline.ids import TopicPartition

OTHER_DIRS = ("/other", "/third")
RACKS = ("a", "b", "c")
TRIES_MAX = 5_000

CACHED, SYNCED = "cached", "synced"
"""The topics: committed in the memory of all in sync, and on their devices."""
LAX, PAIR, SINGLE, STRICT = "lax", "pair", "single", "strict"
"""Topics unlike these: three replicas of which one in sync is enough, two replicas, one; and the first topic's twin
that forbids unclean elections where that allows them."""


@dataclass(frozen=True, slots=True)
class TopicPlan:
    name: str
    partitions: int
    replicas: int
    min_isr: int
    is_synced: bool
    segment_bytes: int
    unclean: bool = False
    """Any replica may lead if none that is in sync is there."""
    assignments: tuple[tuple[int, ...], ...] = ()
    """The replicas of each partition, in their order; empty: as the controller places them."""

    @property
    def configs(self) -> dict[str, str]:
        configs = {"min.insync.replicas": str(self.min_isr), "internal.segment.bytes": str(self.segment_bytes)}
        if self.unclean:
            configs["unclean.leader.election.enable"] = "true"
        return configs | {"flush.messages": "1"} if self.is_synced else configs

    def as_new_topic(self, **more_configs: str) -> NewTopic:
        configs: dict[str, str | None] = {**self.configs, **more_configs}
        if self.assignments:
            return NewTopic(self.name, configs=configs, assignments=dict(enumerate(self.assignments)))
        return NewTopic(self.name, self.partitions, self.replicas, configs=configs)


@dataclass(frozen=True, slots=True)
class ClusterTimers:
    heartbeat_ms: int
    session_ms: int
    election_ms: int
    quorum_fetch_ms: int
    """Timeout: a voter that hears so long nothing from the leader asks for an election."""
    lag_ms: int
    fetch_wait_ms: int
    is_brisk: bool

    @property
    def session_s(self) -> float:
        return self.session_ms / 1000

    @property
    def lag_s(self) -> float:
        return self.lag_ms / 1000

    @property
    def quorum_s(self) -> float:
        """About how long it takes to notice that a controller is silent, and to elect another one."""
        return (self.quorum_fetch_ms + 2 * self.election_ms) / 1000

    @property
    def config(self) -> dict[str, str]:
        return {
            "broker.heartbeat.interval.ms": str(self.heartbeat_ms),
            "broker.session.timeout.ms": str(self.session_ms),
            "controller.quorum.election.timeout.ms": str(self.election_ms),
            "controller.quorum.election.backoff.max.ms": str(self.election_ms // 2),
            "controller.quorum.fetch.timeout.ms": str(self.quorum_fetch_ms),
            "controller.quorum.request.timeout.ms": str(max(1_000, self.quorum_fetch_ms // 2)),
            "replica.lag.time.max.ms": str(self.lag_ms),
            "replica.fetch.wait.max.ms": str(self.fetch_wait_ms),
            "replica.socket.timeout.ms": str(self.fetch_wait_ms + 1_500),
            "replica.fetch.backoff.ms": "200" if self.is_brisk else "500",
        }


@dataclass(frozen=True, slots=True)
class HistorySetting:
    shape: Shape
    timers: ClusterTimers
    topics: tuple[TopicPlan, ...]
    may_lose: PermittedLoss = PermittedLoss.NOTHING
    """Of committed records, by faults that go past the promise on purpose; then only detection is judged."""
    snapshots_often: bool = False
    log_dirs: int = 1
    """Of each node; the first has the metadata log."""
    rebalances: bool = False
    """Leadership returns to the preferred replicas by itself."""
    group: GroupPlan | None = None
    compaction: CompactionPlan | None = None
    transactions: TransactionPlan | None = None

    @property
    def voters(self) -> int:
        return len(self.shape.voters)

    @property
    def brokers(self) -> int:
        return len(self.shape.brokers)

    @property
    def keys(self) -> list[TopicPartition]:
        """The partitions of the load."""
        return [(topic.name, partition) for topic in self.topics for partition in range(topic.partitions)]

    @property
    def replicas(self) -> int:
        return self.topics[0].replicas

    @property
    def main(self) -> list[TopicPlan]:
        """The topics that keep the promise of the setting: what they have survives the loss of a broker, and goes on
        without."""
        return [topic for topic in self.topics if topic.name not in (LAX, PAIR, SINGLE)]

    @property
    def compacted(self) -> TopicPlan | None:
        """The compacted topic; it keeps the same promise as the others."""
        if self.compaction is None:
            return None
        return replace(self.topics[0], name=COMPACTED, partitions=1, assignments=())

    @property
    def ledger(self) -> TopicPlan | None:
        """What transactional producers write to; it keeps the same promise as the others."""
        if self.transactions is None:
            return None
        return replace(self.topics[0], name=LEDGER, partitions=self.transactions.partitions, assignments=())

    @property
    def cached(self) -> list[TopicPlan]:
        return [topic for topic in self.topics if not topic.is_synced]

    @property
    def parts(self) -> list[str]:
        """What is said of it, one thing at a time."""
        parts = [str(self.shape), "brisk timers" if self.timers.is_brisk else "usual timers"]
        parts += [f"{topic.name} x{topic.replicas}, min ISR {topic.min_isr}" for topic in self.topics]
        parts += ["racks"] * bool(self.shape.racks) + [f"{self.log_dirs} log dirs"] * (self.log_dirs > 1)
        parts += ["two listeners"] * self.shape.two_listeners
        parts += ["snapshots often"] * self.snapshots_often + ["preferred leaders"] * self.rebalances
        parts += [str(plan) for plan in (self.group, self.compaction, self.transactions) if plan is not None]
        return [*parts, f"may lose {self.may_lose.value}"]

    def __str__(self) -> str:
        return "; ".join(self.parts)


def draw(seed: int, fits: Callable[[HistorySetting], bool]) -> HistorySetting:
    """The seed's setting, of those that fit."""
    chance = random.Random(f"{seed}/setting")
    compaction, transactions = compaction_plans.draw(seed), transaction_plans.draw(seed)
    plans = group_plans.plans(seed) if group_plans.has_group(seed) else None
    for _ in range(TRIES_MAX):
        setting = _with_group(_draw(chance), next(plans) if plans else None)
        setting = _with_transactions(_with_compaction(setting, compaction), transactions)
        if fits(setting):
            return setting
    raise AssertionError("no setting fits")


def _with_group(setting: HistorySetting, group: GroupPlan | None) -> HistorySetting:
    """Where nothing may be lost: of a group that has lost offsets, or records that it had read, little could be
    said."""
    if group is None or setting.may_lose is not PermittedLoss.NOTHING:
        return setting
    first = setting.topics[0]
    topic = replace(first, name=GROUPED, partitions=group.partitions, assignments=())
    config = group.config(first.replicas, is_synced=first.is_synced)
    shape = replace(setting.shape, config={**(setting.shape.config or {}), **config})
    return replace(setting, shape=shape, topics=(topic, *setting.topics[1:]), group=group)


def _with_compaction(setting: HistorySetting, compaction: CompactionPlan | None) -> HistorySetting:
    if compaction is None or setting.may_lose is not PermittedLoss.NOTHING:
        return setting
    shape = replace(setting.shape, config={**(setting.shape.config or {}), **compaction.config})
    return replace(setting, shape=shape, compaction=compaction)


def _with_transactions(setting: HistorySetting, transactions: TransactionPlan | None) -> HistorySetting:
    """Where nothing may be lost: a transaction may be torn by what took a part of it."""
    if transactions is None or setting.may_lose is not PermittedLoss.NOTHING:
        return setting
    first = setting.topics[0]
    config = transactions.config(first.replicas, is_synced=first.is_synced)
    config |= setting.shape.config or {}  # the group's, if there is one
    shape = replace(setting.shape, config=config, transaction_version=transactions.version)
    return replace(setting, shape=shape, transactions=transactions)


SHAPES: tuple[tuple[int, Shape], ...] = (
    (90, Shape.combined(3)),
    (40, Shape.apart(1, 3)),
    (8, Shape.apart(3, 3)),
    (10, Shape.combined(1)),
    (3, Shape.combined(2)),
    (8, Shape.combined(4)),
    (3, Shape.combined(5)),
    (6, Shape.apart(1, 4)),
    (4, Shape.apart(3, 1)),
    (3, Shape.apart(3, 2)),
    (4, Shape.apart(5, 1)),
    (7, Shape.apart(3, 1, spares=1)),
    (5, Shape.apart(1, 1, spares=2)),
    (1, Shape.apart(3, 3, spares=1)),
    (1, Shape.combined(7)),
)
"""With how many tickets each is in the draw: three nodes mostly, seven rarely."""


def _draw(chance: random.Random) -> HistorySetting:
    shape = chance.choices([shape for _, shape in SHAPES], [tickets for tickets, _ in SHAPES])[0]
    timers = _draw_timers(chance)
    may_lose = chance.choices((PermittedLoss.NOTHING, PermittedLoss.UNSYNCED, PermittedLoss.ANYTHING), (86, 6, 8))[0]
    setting = HistorySetting(
        shape,
        timers,
        _draw_topics(chance, shape.brokers, may_lose),
        may_lose,
        snapshots_often=chance.random() < 0.15,
        log_dirs=chance.choices((1, 2, 3), (70, 22, 8))[0],
        rebalances=chance.random() < 0.25,
    )
    racks = {broker: chance.choice(RACKS) for broker in shape.brokers} if chance.random() < 0.35 else {}
    shape = replace(shape, racks=racks, config=_config(chance, setting), two_listeners=chance.random() < 0.4)
    return replace(setting, shape=shape)


def _draw_timers(chance: random.Random) -> ClusterTimers:
    if chance.random() < 0.25:
        return ClusterTimers(
            heartbeat_ms=500,
            session_ms=chance.choice((2_000, 3_000)),
            election_ms=500,
            quorum_fetch_ms=chance.choice((1_200, 2_000)),
            lag_ms=chance.choice((800, 1_500, 3_000)),
            fetch_wait_ms=chance.choice((200, 500)),
            is_brisk=True,
        )
    lag_ms = chance.choice((2_000, 5_000, 8_000, 10_000))
    return ClusterTimers(
        heartbeat_ms=chance.choice((2_000, 2_500)),
        session_ms=chance.choice((7_000, 9_000)),
        election_ms=1_000,
        quorum_fetch_ms=chance.choice((6_000, 10_000)),
        lag_ms=lag_ms,
        fetch_wait_ms=lag_ms // 2,
        is_brisk=False,
    )


def _draw_topics(chance: random.Random, brokers: tuple[int, ...], may_lose: PermittedLoss) -> tuple[TopicPlan, ...]:
    replicas = min(3, len(brokers))
    min_isr = 2 if replicas == 3 else 1
    segment_bytes = chance.choice((4_096, 8_192, 1 << 20))
    synced = TopicPlan(SYNCED, 1, replicas, min_isr, True, segment_bytes)
    topics: list[TopicPlan] = [synced]
    if chance.random() >= (0.7 if replicas < 3 else 0.25):  # else any number may lose power within the promise
        topics.insert(0, TopicPlan(CACHED, chance.choice((1, 2)), replicas, min_isr, False, segment_bytes))
    if chance.random() < 0.6:
        topics = [_placed(chance, topic, brokers) for topic in topics]
    if may_lose is PermittedLoss.ANYTHING:
        # Alike in everything but that: a decision about the one must not be taken for the other.
        first = replace(topics[0], unclean=True)
        topics = [first, replace(first, name=STRICT, unclean=False), *topics[1:]]
    elif replicas == 3 and chance.random() < 0.45:
        topics += [_placed(chance, topic, brokers) for topic in _unlike(chance, segment_bytes)]
    return tuple(topics)


def _placed(chance: random.Random, topic: TopicPlan, brokers: tuple[int, ...]) -> TopicPlan:
    """With its replicas in any order."""
    return replace(
        topic, assignments=tuple(tuple(chance.sample(brokers, topic.replicas)) for _ in range(topic.partitions))
    )


def _unlike(chance: random.Random, segment_bytes: int) -> list[TopicPlan]:
    """One or two more topics, with other promises. What they have is on a device before it is acknowledged: so power
    losses may go on as if there were none of them."""
    found = (
        TopicPlan(LAX, 1, 3, 1, True, segment_bytes),
        TopicPlan(PAIR, 1, 2, chance.choice((1, 2)), True, segment_bytes),
        TopicPlan(SINGLE, 1, 1, 1, True, segment_bytes),
    )
    return chance.sample(found, chance.choices((1, 2), (3, 1))[0])


def _config(chance: random.Random, setting: HistorySetting) -> dict[str, str]:
    config = setting.timers.config | {
        "metadata.max.idle.interval.ms": "2000" if setting.timers.is_brisk else chance.choice(("0", "10000", "20000")),
        "replica.high.watermark.checkpoint.interval.ms": chance.choice(("3000", "9000")),
        "log.flush.offset.checkpoint.interval.ms": chance.choice(("4000", "11000")),
        "auto.leader.rebalance.enable": "true" if setting.rebalances else "false",
        "leader.imbalance.check.interval.seconds": "5",
        "unclean.leader.election.interval.ms": "5000",
        "auto.create.topics.enable": "false",
        "log.flush.scheduler.interval.ms": "10000",
        "log.message.timestamp.after.max.ms": "604800000",  # clocks jump by hours
    }
    if setting.log_dirs > 1:
        dirs = ",".join((LOG_DIR, *OTHER_DIRS[: setting.log_dirs - 1]))
        config |= {"log.dirs": dirs, "log.dir.failure.timeout.ms": "10000"}
    if setting.snapshots_often:
        config |= {
            "metadata.log.max.record.bytes.between.snapshots": "600",
            "metadata.log.max.snapshot.interval.ms": "5000",
            "internal.metadata.log.segment.bytes": "1500",
            "metadata.log.segment.ms": "2000",
            "metadata.max.retention.bytes": "1500",
            "metadata.max.retention.ms": "5000",
        }
    return config
