"""One seed, one history: a setting, a cluster under load, nemeses and noise, healing, and the verdict.

Always true: every history lasts at least `VIRTUAL_S`, has `FAULTS` faults and serves `OPERATIONS`, unless a property
fails before; after each nemesis all faults are undone and the cluster is whole again within a bounded virtual time; the
same seed without the same faults is the same history, byte for byte.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

from strandline.histories import setting as settings
from strandline.histories.budget import Budget
from strandline.histories.cluster import LivenessFailure, SimulatedCluster
from strandline.histories.compaction import plan as compaction_plans
from strandline.histories.compaction.replica_progress import ReplicaProgress
from strandline.histories.convergence import Convergence
from strandline.histories.coverage import COMPACTION, NEMESIS, SETTING, Coverage
from strandline.histories.fault_injector import FaultInjector
from strandline.histories.groups import plan as group_plans
from strandline.histories.groups.observation import GroupObservation
from strandline.histories.judges import quorum_judges, replica_judges
from strandline.histories.judges.groups import group_judges
from strandline.histories.judges.quorum.stable_leadership import StableLeadership
from strandline.histories.judges.transactions import no_hanging, transaction_judges
from strandline.histories.load import Load
from strandline.histories.member import ClusterMember
from strandline.histories.nemeses.context import NemesisContext
from strandline.histories.nemeses.nemesis import CLUSTER, GROUPS, TRANSACTIONS, Nemesis, deck
from strandline.histories.nemeses.nemesis import COMPACTION as COMPACTION_NEMESES
from strandline.histories.noise import Noise
from strandline.histories.outcome import HistoryOutcome, Problem
from strandline.histories.quorum_observation import Violation
from strandline.histories.replica_observation import ReplicaJudge, ReplicaObservation
from strandline.histories.setting import HistorySetting
from strandline.histories.transactions import plan as transaction_plans
from strandline.histories.transactions.noise import TransactionNoise
from strandline.histories.transactions.observation import TransactionObservation
from strandline.histories.transactions.plan import COPIES, LEDGER
from strandline.histories.transcript import WORLD, Transcript
from strandline.node.coordinator.offsets_topic import CONSUMER_OFFSETS
from strandline.sim.world import World

VIRTUAL_S, FAULTS, OPERATIONS = 45.0, 5, 500
NEMESES_USUAL, NEMESES_MAX = (1, 2), 16
NEMESES_DENSE, NEMESES_UNTIL_S = 3, 30.0
"""Before that time another nemesis begins, up to so many: the least that a history lasts should not be spent in
peace."""
OWN_SHARE = 0.7
"""Of the nemeses of a history with a group, a compacted topic or transactions, so many are about that."""
CALM_S = (0.5, 5.0)
"""Between two nemeses."""
RECORDS_FIRST, RECORDS_WITHIN_S = 8, 6.0
"""Before the first nemesis each partition has so many, so that there is something to lose."""
OPERATIONS_PER_S, PACE_MIN, PACE_MAX = 9.5, 0.2, 5.0
"""What the load does about when it is calm; at the end it may be hastened or slowed."""
BEGIN_WITHIN_S = 30.0
WHOLE_WITHIN_S = 90.0
VIRTUAL_S_MAX = 600.0
STEPS_MAX = 2_000_000

Watch = Callable[[bytes, float, int, bytes], None]


def first_nemesis(seed: int) -> Nemesis:
    """Seeds walk through the nemeses, so that each has its share; with a group, a compacted topic or transactions some
    begin with one on it."""
    has_group, has_compaction = group_plans.has_group(seed), compaction_plans.draw(seed) is not None
    nemeses = deck(_family(seed, 1, has_group, has_compaction, transaction_plans.draw(seed) is not None))
    return nemeses[seed % len(nemeses)]


def _family(seed: int, number: int, has_group: bool, has_compaction: bool, has_transactions: bool) -> str:
    """The family of the nemesis with this number: those of every setting, or those that not every setting could
    have."""
    families = [GROUPS] * has_group + [COMPACTION_NEMESES] * has_compaction
    families += [TRANSACTIONS] * has_transactions
    chance = random.Random(f"{seed}/act/{number}/family")
    return chance.choice(families) if families and chance.random() < OWN_SHARE else CLUSTER


def play(seed: int, *, without: frozenset[int] = frozenset(), watch: Watch | None = None) -> HistoryOutcome:
    """One history from the first byte to the verdict."""
    first = first_nemesis(seed)
    setting = settings.draw(seed, first.fits)
    with World(seed) as world:
        world.loop.trace.watch = watch
        history = History(world, seed, setting, first, without)
        problems = history.play()
        return HistoryOutcome(
            seed,
            str(setting),
            history.nemeses,
            problems,
            world.trace_hash,
            world.now,
            history.load.operations,
            history.load.acknowledged,
            history.faults.injected,
            history.coverage,
            history.transcript.lines,
        )


class History:
    def __init__(
        self, world: World, seed: int, setting: HistorySetting, first: Nemesis, without: frozenset[int]
    ) -> None:
        self.world = world
        self.setting = setting
        self.nemeses: list[str] = []
        self.coverage = Coverage()
        self.transcript = Transcript(lambda: world.now)
        self.transcript.note(WORLD, str(setting))
        for part in setting.parts:
            self.coverage.note(SETTING, part)
        judges = quorum_judges()
        self.cluster = SimulatedCluster(world, setting.shape, judges, self.transcript, coverage=self.coverage)
        progress = ReplicaProgress()
        also: list[ReplicaJudge] = [progress]
        self.transactions: TransactionObservation | None = None
        if setting.transactions is not None:
            # Of a log that is cleaned the bytes do not say any more which transactions it had.
            topics = (LEDGER, COPIES) if setting.compaction is not None else (LEDGER, COPIES, CONSUMER_OFFSETS)
            self.transactions = TransactionObservation(
                self.cluster.observed,
                transaction_judges(),
                setting.transactions.version,
                self.cluster.members,
                topics,
            )
            also.append(self.transactions)
            self.cluster.on_transaction_exchange = self.transactions.hear
        self.replicas = ReplicaObservation(
            self.cluster.observed, self.cluster.members, [*replica_judges(), *also], self.transcript
        )
        self.replicas.may_lose = setting.may_lose
        self._stable_leadership = next(judge for judge in judges if isinstance(judge, StableLeadership))
        self.cluster.also_look = self.replicas.look
        self.cluster.on_death = self._about_to_die
        self.groups = self._make_groups()
        self.load = Load(self.cluster, self.replicas, setting, self.coverage, progress)
        self.convergence = Convergence(self.cluster, self.replicas, setting.keys, self.load.missed_deletion)
        self.budget = Budget(setting)
        self.faults = FaultInjector(self.cluster, self.replicas, self.budget, self.coverage, without)
        self.noise = Noise(self.cluster, self.load, self.faults, seed)
        self._transaction_noise: TransactionNoise | None = None
        if self.transactions is not None:
            self._transaction_noise = TransactionNoise(
                self.transactions, self.faults, seed, lambda: self.noise.is_hushed
            )
        self._seed = seed
        self._first = first

    def _about_to_die(self, member: ClusterMember, how: str) -> None:
        if self.setting.compaction is not None and member.is_cleaning:
            self.coverage.note(COMPACTION, "cleaning cut short")
            self.transcript.note(member.name, f"a {how} in the middle of a cleaning")

    def _make_groups(self) -> GroupObservation | None:
        if self.setting.group is None:
            return None
        groups = GroupObservation(
            self.setting.group, self.cluster.observed, self.replicas, group_judges(), self.transcript
        )

        def look(member: ClusterMember) -> None:
            self.replicas.look(member)
            groups.look(member)

        self.cluster.also_look, self.cluster.on_group_exchange = look, groups.hear
        return groups

    def play(self) -> list[Problem]:
        """What was found wrong."""
        try:
            self.world.run(self._run(), until=VIRTUAL_S_MAX, steps_max=STEPS_MAX)
        except Violation as violation:
            return [violation.problem]
        except LivenessFailure as stuck:
            return [*self._of_nodes(), *self.load.problems, Problem("liveness", self.world.now, str(stuck))]
        except Exception as error:
            return [*self._of_nodes(), *self.load.problems, Problem("comes to its end", self.world.now, repr(error))]
        differing = self.convergence.differing_replicas()
        return [
            *self._of_nodes(),
            *self.load.judge(),
            *self.cluster.observed.finish(),
            *self.replicas.finish(),
            *([] if self.groups is None else self.groups.finish()),
            *(Problem("replicas end alike", self.world.now, what) for what in differing),
        ]

    def _of_nodes(self) -> list[Problem]:
        return [Problem("nodes are well", self.world.now, what) for what in self.cluster.problems]

    async def _run(self) -> None:
        await self._begin()
        noises = [self.world.loop.create_task(self.noise.run())]
        if self._transaction_noise is not None:
            noises.append(self.world.loop.create_task(self._transaction_noise.run()))
        chance = random.Random(f"{self._seed}/acts")
        number, nemeses = 0, chance.choice(NEMESES_USUAL)
        while number < nemeses or (
            number < NEMESES_MAX
            and (self.faults.planned < FAULTS or (number < NEMESES_DENSE and self.world.now < NEMESES_UNTIL_S))
        ):
            number += 1
            if number > 1:
                await asyncio.sleep(chance.uniform(*CALM_S))
            self.load.pace = 1.0
            self.load.become_brisk()
            await self._play_nemesis(self._act(number), number)
            self.load.become_calm()
            self.load.pace = PACE_MAX
        await self._last()
        for noise in noises:
            if noise.done():
                noise.result()  # it does not end by itself
            noise.cancel()
        await self._end()

    def _act(self, number: int) -> Nemesis:
        if number == 1:
            return self._first
        has = self.setting
        family = _family(
            self._seed, number, has.group is not None, has.compaction is not None, has.transactions is not None
        )
        fitting = [nemesis for nemesis in deck(family) if nemesis.fits(self.setting)]
        fitting = fitting or [nemesis for nemesis in deck() if nemesis.fits(self.setting)]
        return random.Random(f"{self._seed}/act/{number}/which").choice(fitting)

    async def _last(self) -> None:
        """Live on, until all that a history has at least is there."""
        rest_s = max(1.0, VIRTUAL_S - self.world.now)
        missing = OPERATIONS - self.load.operations
        self.load.pace = PACE_MAX if missing <= 0 else max(PACE_MIN, min(PACE_MAX, rest_s * OPERATIONS_PER_S / missing))
        await asyncio.sleep(max(0.0, VIRTUAL_S - self.world.now))
        if self.load.operations < OPERATIONS:
            self.load.pace = PACE_MIN
            self.load.hurry()
            await self._until(lambda: self.load.operations >= OPERATIONS, "operations go on")

    async def _begin(self) -> None:
        self.cluster.start()
        await self.cluster.until(lambda: self.cluster.leader() is not None, "the first election", BEGIN_WITHIN_S)
        await self.load.create_topics()
        await self.cluster.until(self.convergence.is_known, "the topics are known", BEGIN_WITHIN_S)
        self.load.become_brisk()
        self.load.start()
        await self.cluster.comes_true(self._has_something_to_lose, RECORDS_WITHIN_S)
        await self._until_whole("at the beginning")

    def _has_something_to_lose(self) -> bool:
        return all(self.replicas.committed_end(*key) >= RECORDS_FIRST for key in self.setting.keys)

    async def _play_nemesis(self, nemesis: Nemesis, number: int) -> None:
        self.nemeses.append(nemesis.name)
        self.coverage.note(NEMESIS, nemesis.name)
        self.transcript.note(WORLD, f"nemesis {number}: {nemesis.name}")
        self.faults.begin_nemesis(number)
        chance = random.Random(f"{self._seed}/act/{number}")
        context = NemesisContext(
            self.setting,
            self.cluster,
            self.replicas,
            self.convergence,
            self.load,
            self.faults,
            self.budget,
            self.noise,
            self._stable_leadership,
            chance,
            self.groups,
            self.transactions,
        )
        await nemesis.play(context)
        self._heal()
        await self._until_whole(f"after {nemesis.name}")

    def _heal(self) -> None:
        self.world.network.restore_links()
        self.cluster.heal()
        for also in (self.load.group, self.load.transactions):
            if also is not None:
                also.heal()

    async def _until_whole(self, when: str) -> None:
        await self._until(self.convergence.is_whole, f"the cluster is whole {when}")
        self.budget.made_whole()

    async def _end(self) -> None:
        """All faults are undone: every client gets on and comes to an end, and all nodes agree."""
        self._heal()
        await self._until(self.convergence.is_whole, "the cluster is whole at the end")
        self.load.pace = 1.0
        before = [writer.acknowledged for writer in self.load.writers]
        self.load.hurry()
        await self._until(
            lambda: all(w.acknowledged > b for w, b in zip(self.load.writers, before, strict=True)),
            "every producer gets on",
        )
        await self.load.stop_writing()
        await self._end_of_group()
        await self._end_of_transactions()
        await self._until(
            lambda: self.convergence.is_caught_up() and self.convergence.is_agreed(), "all agree at the end"
        )
        await self.load.stop_reading()

    async def _end_of_group(self) -> None:
        group = self.load.group
        if group is None:
            return
        try:
            await self._until(group.is_caught_up, "the group owns and has committed everything")
        except LivenessFailure as stuck:
            raise LivenessFailure(f"{stuck}; {group.describe()}") from None
        await group.stop()

    async def _end_of_transactions(self) -> None:
        transactions, observed = self.load.transactions, self.transactions
        if transactions is None or observed is None:
            return
        try:
            await self._until(transactions.is_copied, "everything that is committed is copied")
        except LivenessFailure as stuck:
            raise LivenessFailure(f"{stuck}; {transactions.describe()}") from None
        await transactions.stop_copying()
        within_s = no_hanging.within_s(transactions.plan.timeout_s)
        if not await self.cluster.comes_true(lambda: not no_hanging.hanging(observed), within_s):
            raise LivenessFailure(f"transactions hang after {within_s} s: {no_hanging.hanging(observed)}")

    async def _until(self, condition: Callable[[], bool], what: str) -> None:
        try:
            await self.cluster.until(condition, what, WHOLE_WITHIN_S)
        except LivenessFailure as stuck:
            raise LivenessFailure(f"{stuck}; {self.convergence.describe()}") from None
