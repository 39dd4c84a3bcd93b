"""What a nemesis sees of its history and does in it: nodes and partitions, faults, waiting, and the operator's
requests.

"The nemesis" is Jepsen's name for the process that injects faults.

Always true: every wait has a bound. What must come true during faults (another leader, records that go on) and does not
is a problem of the history; `until` only says whether it did.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from strandline.client.aio import Admin
from strandline.client.flow.descriptions import ConfigResource, ResourceType
from strandline.config.alter import Alteration, Op
from strandline.errors import KafkaError
from strandline.histories.budget import Budget
from strandline.histories.cluster import SimulatedCluster
from strandline.histories.convergence import Convergence
from strandline.histories.fault_injector import FaultInjector
from strandline.histories.groups.load import GroupLoad
from strandline.histories.groups.observation import GroupObservation
from strandline.histories.judges.quorum.stable_leadership import StableLeadership
from strandline.histories.load import Load
from strandline.histories.noise import Noise
from strandline.histories.outcome import UNDER_FAULTS
from strandline.histories.replica_observation import ReplicaObservation
from strandline.histories.setting import ClusterTimers, HistorySetting
from strandline.histories.transactions.observation import TransactionObservation
from strandline.metadata.image import PartitionImage

WITHIN_S = 20.0
OPERATION_MS = 5_000
HASTE = 0.2
MOMENT_S = 0.02


class NemesisContext:
    def __init__(
        self,
        setting: HistorySetting,
        cluster: SimulatedCluster,
        replicas: ReplicaObservation,
        convergence: Convergence,
        load: Load,
        faults: FaultInjector,
        budget: Budget,
        noise: Noise,
        stable_leadership: StableLeadership,
        chance: random.Random,
        groups: GroupObservation | None = None,
        transactions: TransactionObservation | None = None,
    ) -> None:
        self._groups = groups
        self._transactions = transactions
        self.setting = setting
        self.cluster = cluster
        self.replicas = replicas
        self.convergence = convergence
        self.load = load
        self.faults = faults
        self.budget = budget
        self._noise = noise
        self._stable_leadership = stable_leadership
        self.chance = chance
        """Of this nemesis alone."""

    # Nodes and partitions

    @property
    def timers(self) -> ClusterTimers:
        return self.setting.timers

    @property
    def nodes(self) -> list[int]:
        return list(self.cluster.members)

    @property
    def voters(self) -> list[int]:
        """As they were at the beginning."""
        return list(self.setting.shape.voters)

    @property
    def brokers(self) -> list[int]:
        return list(self.setting.shape.brokers)

    @property
    def partitions(self) -> int:
        """Of the load, by number."""
        return len(self.convergence.names)

    def others(self, ids: Iterable[int], *but: int | None) -> list[int]:
        return [node_id for node_id in ids if node_id not in but]

    def controller(self) -> int:
        """The leader of the quorum; any voter if there is none."""
        leader = self.cluster.leader()
        return self.chance.choice(self.voters) if leader is None else leader

    def state(self, number: int = 0) -> PartitionImage:
        return self.convergence.state(number)

    def leader(self, number: int = 0) -> int:
        """Of a partition; any of its replicas if it has none."""
        state = self.state(number)
        return state.leader if state.leader >= 0 else self.chance.choice(state.replicas)

    def followers(self, number: int = 0) -> list[int]:
        return self.others(self.state(number).replicas, self.leader(number))

    def any_partition(self) -> int:
        """One that goes on without any one of its replicas."""
        names = {topic.name for topic in self.setting.main}
        return self.chance.choice([n for n, (topic, _) in enumerate(self.convergence.names) if topic in names])

    def partition_of(self, topic: str) -> int | None:
        """The first of a topic, if the setting has that."""
        return next((n for n, (name, _) in enumerate(self.convergence.names) if name == topic), None)

    # Waiting

    async def wait(self, least_s: float, most_s: float) -> None:
        await asyncio.sleep(self.chance.uniform(least_s, most_s))

    async def until(self, condition: Callable[[], object], within_s: float = WITHIN_S) -> bool:
        return await self.cluster.comes_true(condition, within_s)

    async def until_soon(self, condition: Callable[[], object], within_s: float) -> bool:
        """The same, for what lasts a moment only."""
        deadline = self.cluster.world.now + within_s
        while not condition():
            if self.cluster.world.now >= deadline or self.cluster.problems:
                return False
            await asyncio.sleep(MOMENT_S)
        return True

    async def _must(self, condition: Callable[[], object], what: str, within_s: float) -> bool:
        """Unless faults are left out: then a nemesis may wait for what only they would have brought about."""
        came_true = await self.until(condition, within_s)
        if not came_true and not self.faults.are_left_out:
            self.problem(UNDER_FAULTS, f"{what}: not within {within_s:g} s; {self.convergence.describe()}")
        return came_true

    async def another_controller(self, than: int, within_s: float = WITHIN_S) -> bool:
        """Another node leads the quorum, and has committed in its epoch."""

        def settled() -> bool:
            leader = self.cluster.leader()
            seen = None if leader is None or leader == than else self.cluster.seen(leader)
            return seen is not None and seen.high_watermark is not None

        return await self._must(settled, f"a controller other than {than}", within_s)

    async def another_leader(self, than: int, number: int = 0, within_s: float = WITHIN_S) -> bool:
        """Another broker leads a partition, and knows it."""

        def is_led() -> bool:
            leader = self.state(number).leader
            replica = self.replicas.replicas.get((leader, self.convergence.key(number)))
            return leader >= 0 and leader != than and replica is not None and replica.leads

        return await self._must(is_led, f"a leader other than {than} of {self.convergence.names[number]}", within_s)

    async def written(self, records: int = 5, within_s: float = WITHIN_S) -> bool:
        target = self.load.acknowledged + records
        return await self._must(lambda: self.load.acknowledged >= target, f"{records} records more", within_s)

    async def commits(self, records: int = 2, among: Sequence[int] = ()) -> bool:
        """So many more records of metadata are committed, as far as these nodes know. Only the admin client is sure
        to write some, and it may rest for 15 s after each (seed 300827)."""
        within_s = records * WITHIN_S
        target = self.cluster.observed.high_watermark + records
        return await self._must(
            lambda: self.cluster.high_watermark(*among) >= target, f"{records} commits more", within_s
        )

    async def caught_up(self, *node_ids: int, within_s: float = WITHIN_S) -> bool:
        """These nodes know everything to be committed that is now."""
        target = self.cluster.observed.high_watermark
        return await self._must(
            lambda: all(self.cluster.high_watermark(node_id) >= target for node_id in node_ids),
            f"{node_ids} catch up",
            within_s,
        )

    async def out_of_sync(self, broker_id: int, leader: int, number: int = 0, within_s: float = WITHIN_S) -> bool:
        """Unless the leader that it was cut off from is deposed: the next one may be reached (seed 1200648)."""
        return await self._must(
            lambda: broker_id not in self.state(number).isr or self.state(number).leader != leader,
            f"{broker_id} leaves the ISR",
            within_s,
        )

    async def whole(self, within_s: float = 30.0) -> bool:
        """Everything is in sync again: faults may begin anew."""
        whole = await self._must(self.convergence.is_whole, "the cluster is whole", within_s)
        if whole:
            self.budget.made_whole()
        return whole

    # The group

    @property
    def group(self) -> GroupLoad:
        assert self.load.group is not None, "a nemesis about groups fits a setting that has one"
        return self.load.group

    @property
    def groups(self) -> GroupObservation:
        assert self._groups is not None
        return self._groups

    @property
    def transactions(self) -> TransactionObservation:
        assert self._transactions is not None, "a nemesis about transactions fits a setting that has them"
        return self._transactions

    def coordinator_state(self) -> PartitionImage | None:
        """Of the group's partition of the offsets topic, once there is one."""
        key = self.groups.offsets_key
        return None if key is None else self.replicas.state(key)

    def coordinator(self) -> int:
        """The group's; any broker if it has none."""
        state = self.coordinator_state()
        return self.chance.choice(self.brokers) if state is None or state.leader < 0 else state.leader

    async def another_coordinator(self, than: int, within_s: float = WITHIN_S) -> bool:
        """Another broker leads the group's partition, and has read it."""

        def is_loaded() -> bool:
            state = self.coordinator_state()
            return state is not None and state.leader not in (-1, than) and self.groups.is_loaded(state.leader)

        return await self._must(is_loaded, f"a coordinator other than {than}", within_s)

    async def settled(self, within_s: float = WITHIN_S) -> bool:
        """Every partition of the group has an owner, every member is one, and the coordinator has nothing more in
        mind."""
        within_s += 3 * self.group.plan.session_s
        is_settled = await self.until(lambda: self.groups.is_stable() and self.group.is_settled(), within_s)
        if not is_settled and not self.faults.are_left_out:
            what = (
                f"the group settles: not within {within_s:g} s; {self.group.describe()}; {self.convergence.describe()}"
            )
            self.problem(UNDER_FAULTS, what)
        return is_settled

    async def members_back(self, within_s: float) -> bool:
        """Every member was served by the coordinator that there is now."""

        def are_back() -> bool:
            state, newest = self.coordinator_state(), self.groups.coordinator
            names = {member.name for member in self.group.wanted if member.is_running}
            return (
                state is not None
                and newest is not None
                and newest[0] >= state.leader_epoch
                and names <= self.groups.served_at.keys()
            )

        return await self._must(are_back, "the members are back", within_s)

    @contextmanager
    def no_noise(self) -> Iterator[None]:
        with self._noise.hushed():
            yield

    @contextmanager
    def stable_leadership(self) -> Iterator[None]:
        """Meanwhile the active controller keeps its majority, there is no noise, and no other node may lead."""
        with self._noise.hushed():
            self._stable_leadership.begin()
            try:
                yield
            finally:
                self._stable_leadership.end()

    @contextmanager
    def haste(self) -> Iterator[None]:
        """Meanwhile clients rest less."""
        self.load.pace = HASTE
        self.load.hurry()
        try:
            yield
        finally:
            self.load.pace = 1.0

    @contextmanager
    def busy(self) -> Iterator[None]:
        """Meanwhile there is always something to replicate, also late in a history, when clients have done most of
        their work."""
        self.load.is_busy = True
        self.load.hurry()
        try:
            yield
        finally:
            self.load.is_busy = False

    # Doing

    def start(self, *node_ids: int) -> None:
        self.cluster.start(*node_ids)

    def heal_network(self) -> None:
        self.cluster.heal_network()

    def either(self) -> bool:
        return self.chance.random() < 0.5

    async def alter_topic(self, topic: str, key: str, value: str) -> None:
        resource = ConfigResource(ResourceType.TOPIC, topic)
        await self.operate(lambda admin: admin.alter_configs({resource: [Alteration(key, Op.SET, value)]}))

    async def change_metadata(self, times: int = 12) -> None:
        """So that there is something to take snapshots of."""
        for number in range(times):
            await self.alter_topic(self.convergence.names[0][0], "retention.ms", str(10**9 + number))

    async def read_from_start(self, number: int) -> None:
        """A consumer reads a whole partition."""
        await self.load.read(self.convergence.names[number])

    def problem(self, property_: str, what: str) -> None:
        self.load.problem(property_, what)

    async def operate(self, work: Callable[[Admin], Awaitable[object]]) -> None:
        """As the operator, who takes a refusal for an answer."""

        async def attempt(admin: Admin) -> None:
            try:
                await work(admin)
            except KafkaError as error:
                self.load.note_error(error)

        await self.load.operate(attempt)
