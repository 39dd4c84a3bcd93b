"""A coordinator of something else than groups: the same frame with other records, another topic and other shards."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from strandline.coordinator.record import CoordinatorKey, CoordinatorRecord, CoordinatorValue
from strandline.coordinator.result import CoordinatorResult, Moment
from strandline.coordinator.timers import CoordinatorTimers
from strandline.errors import ErrorCode, KafkaError
from strandline.metadata.image import MetadataImage
from strandline.node.coordinator.coordinator import NodeCoordinator
from strandline.node.coordinator.shard_spec import RegularWork, ShardSpec
from strandline.node.coordinator.stats import CoordinatorStats
from strandline.records.compression import CompressionType
from strandline.wire.codec import Buffer

from .stage import in_simulation

TOPIC = "__totals"


@dataclass(frozen=True)
class Account(CoordinatorKey):
    name: str


@dataclass(frozen=True)
class Total(CoordinatorValue):
    amount: int


class AccountFraming:
    def encode(self, record: CoordinatorRecord) -> tuple[bytes, bytes | None]:
        assert isinstance(record.key, Account)
        value = record.value
        return record.key.name.encode(), str(value.amount).encode() if isinstance(value, Total) else None

    def decode(self, key: Buffer | None, value: Buffer | None) -> CoordinatorRecord | None:
        assert key is not None
        return CoordinatorRecord(Account(bytes(key).decode()), None if value is None else Total(int(bytes(value))))


class AccountShard:
    """What is on each account; once a second, a one is added to all."""

    def __init__(self) -> None:
        self.timers = CoordinatorTimers()
        self.amounts: dict[str, int] = {}
        self.happened: list[str] = []

    def replay(self, record: CoordinatorRecord, at_ms: int, producer_id: int = -1) -> None:
        key, value = record
        assert isinstance(key, Account)
        if isinstance(value, Total):
            self.amounts[key.name] = value.amount
        else:
            del self.amounts[key.name]

    def replay_marker(self, producer_id: int, *, commit: bool) -> None: ...

    def loaded(self, at: Moment) -> CoordinatorResult | None:
        self.happened.append("loaded")
        return None

    def metadata_changed(
        self, image: MetadataImage, deleted_topics: frozenset[tuple[str, bytes]], at: Moment
    ) -> CoordinatorResult | None:
        return None

    def unload(self) -> None:
        self.happened.append("unloaded")

    def add(self, name: str, amount: int) -> CoordinatorResult:
        total = self.amounts.get(name, 0) + amount
        return CoordinatorResult([CoordinatorRecord(Account(name), Total(total))])

    def add_to_all(self, at: Moment) -> CoordinatorResult:
        totals = [CoordinatorRecord(Account(name), Total(amount + 1)) for name, amount in self.amounts.items()]
        return CoordinatorResult(totals)


def coordinator_of(broker: Any) -> NodeCoordinator[AccountShard]:
    spec = ShardSpec(
        TOPIC,
        "accounts",
        AccountFraming(),
        new_shard=lambda partition, leader_epoch: AccountShard(),
        count=lambda shard: len(shard.amounts),
        codec=lambda: CompressionType.NONE,
        commit_timeout_s=lambda: 5.0,
        stats=CoordinatorStats(),
        on_written=lambda records: None,
        regular_work=[RegularWork("interest", lambda: 1.0, lambda shard, at: shard.add_to_all(at))],
    )
    broker.create(TOPIC, (1,), (1,))
    return NodeCoordinator(spec, broker.groups._dependencies, broker.groups._topic)


def begin(broker: Any) -> NodeCoordinator[AccountShard]:
    coordinator = coordinator_of(broker)
    for partition in broker.parts.hosted.by_name.values():
        coordinator.role(partition)
    return coordinator


def amount_of(coordinator: NodeCoordinator[AccountShard], name: str) -> int | str:
    """As it is known at once, or why not."""
    found: list[int | str] = []

    def refuse(error: KafkaError) -> None:
        found.append(error.code.name)

    coordinator.read(name, lambda shard, at: shard.amounts[name], found.append, refuse)
    [one] = found
    return one


def with_accounts(story: Callable[[NodeCoordinator[AccountShard], Any], Any]) -> None:
    async def on_node(broker: Any, disk: Any) -> None:
        coordinator = begin(broker)
        await story(coordinator, broker)
        coordinator.close()

    in_simulation(on_node)


def test_it_leads_the_partitions_of_its_own_topic() -> None:
    async def story(coordinator: NodeCoordinator[AccountShard], broker: Any) -> None:
        broker.create("__consumer_offsets", (1,), configs={"cleanup.policy": "compact"})
        coordinator.role(broker.parts.hosted.by_name["__consumer_offsets", 0])
        assert amount_of(coordinator, "a") == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS.name
        assert (list(coordinator.runners), coordinator.loading) == ([0, 1], 2)
        assert list(broker.groups.runners) == [0]
        await asyncio.sleep(0.1)
        assert coordinator.loading == 0

    with_accounts(story)


def test_what_it_wrote_is_there_when_it_leads_again() -> None:
    async def story(coordinator: NodeCoordinator[AccountShard], broker: Any) -> None:
        await asyncio.sleep(0.1)
        for name, amount in (("a", 5), ("b", 7), ("a", 10)):
            coordinator.write(name, lambda shard, at, n=name, m=amount: shard.add(n, m), print)  # type: ignore[misc]
            await asyncio.sleep(0.01)
        before = list(coordinator.shards())
        assert [amount_of(coordinator, name) for name in "ab"] == [15, 7]
        coordinator.close()
        assert [shard.happened for shard in before] == [["loaded", "unloaded"]] * 2
        again = NodeCoordinator(coordinator._spec, coordinator._dependencies, coordinator._topic)
        for index in range(2):
            again.role(broker.parts.hosted.by_name[TOPIC, index])
        await asyncio.sleep(0.1)
        assert [amount_of(again, name) for name in "ab"] == [15, 7]
        again.close()

    with_accounts(story)


def test_its_regular_work_is_done_at_its_interval() -> None:
    async def story(coordinator: NodeCoordinator[AccountShard], broker: Any) -> None:
        await asyncio.sleep(0.1)
        coordinator.write("a", lambda shard, at: shard.add("a", 5), print)
        await asyncio.sleep(2.5)
        assert amount_of(coordinator, "a") == 7

    with_accounts(story)
