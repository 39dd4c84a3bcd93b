"""A scenario of the quorum: its nodes, its faults, which properties apply; and one history of it from a seed.

Every history ends alike: all harm is undone, all nodes come up, the clients finish, and then every node has the same image,
every log is the same below the high watermark, and everything that was acknowledged is there.

Always true: whatever a scenario waits for has a bound in virtual time.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from strandline.histories.cluster import Cluster, Shape, Stuck
from strandline.histories.judges import ALWAYS
from strandline.histories.judges.images import differences
from strandline.histories.load import Load
from strandline.histories.outcome import Outcome
from strandline.histories.sight import Checker, Violation
from strandline.histories.transcript import WORLD, Transcript
from strandline.sim.world import World

VIRTUAL_S_MAX = 240.0
STEPS_MAX = 3_000_000
CLIENTS = 2
CONVERGE_WITHIN_S = 45.0
LINES_SHOWN_ON_FAILURE = 40


@dataclass(frozen=True, slots=True)
class Scenario:
    name: str
    play: Callable[[Story], Awaitable[None]]
    shapes: Sequence[Shape]
    """The seed picks one."""
    without: frozenset[type[Checker]] = frozenset()
    """Properties that its faults may break in Kafka's protocol too."""
    also: tuple[type[Checker], ...] = ()
    config: Mapping[str, str] = field(default_factory=dict)
    meaning: str = ""
    story: Callable[[World, Scenario], Story] | None = None
    """How a history of it is told, if not as one of the quorum."""

    def checkers(self) -> list[Checker]:
        return [checker() for checker in (*ALWAYS, *self.also) if checker not in self.without]


SCENARIOS: dict[str, Scenario] = {}
"""By name, in the order in which seeds walk through them."""

THREE, FIVE = Shape(voters=3), Shape(voters=5)
APART = Shape(voters=3, brokers=2)
ONE_BROKER = Shape(voters=3, brokers=1)


def scenario(
    name: str,
    shapes: Sequence[Shape] = (THREE, APART),
    *,
    without: frozenset[type[Checker]] = frozenset(),
    also: tuple[type[Checker], ...] = (),
    config: Mapping[str, str] | None = None,
    story: Callable[[World, Scenario], Story] | None = None,
) -> Callable[[Callable[[Story], Awaitable[None]]], Callable[[Story], Awaitable[None]]]:
    """Register a scenario under a name."""

    def register(play: Callable[[Story], Awaitable[None]]) -> Callable[[Story], Awaitable[None]]:
        assert name not in SCENARIOS, f"two scenarios are called {name!r}"
        meaning = (play.__doc__ or "").strip()
        SCENARIOS[name] = Scenario(name, play, shapes, without, also, config or {}, meaning, story)
        return play

    return register


class Story:
    """One history, as its scenario sees it."""

    def __init__(self, world: World, scenario: Scenario) -> None:
        self.world = world
        self.scenario = scenario
        self.chance: random.Random = world.faults
        chosen = self.chance.choice(list(scenario.shapes))
        shape = replace(chosen, config={**scenario.config, **(chosen.config or {})})
        self.transcript = Transcript(lambda: world.now)
        self.transcript.note(WORLD, str(shape))
        self.cluster = Cluster(world, shape, scenario.checkers(), self.transcript)
        self.load: Any = self._make_load()

    def _make_load(self) -> Any:
        return Load(self.cluster, CLIENTS)

    @property
    def voters(self) -> list[int]:
        return list(self.cluster.shape.voter_ids)

    @property
    def brokers(self) -> list[int]:
        return list(self.cluster.shape.broker_ids)

    async def run(self) -> None:
        self.load.start()
        await self.scenario.play(self)
        self.cluster.heal()
        self.transcript.note(WORLD, "all harm is undone")
        await self.converge("after all harm is undone")
        before = self.load.acknowledged
        await self.cluster.until(
            lambda: self.load.acknowledged >= before + 2 * CLIENTS, "clients get on", CONVERGE_WITHIN_S
        )
        await self.load.finish()
        await self.converge("at the end")

    # Steps that scenarios are made of

    async def begin(self, commits: int = 10) -> int:
        """Start all nodes, wait for a leader and for this many records beyond what begins a cluster; who leads."""
        self.cluster.start()
        await self.cluster.until(lambda: self.cluster.leader() is not None, "the first election")
        await self.cluster.until(lambda: self.load.acknowledged >= 2, "the first topics")
        await self.progress(commits)
        return await self.leader()

    async def leader(self, *, other_than: int | None = None, within_s: float = 20.0) -> int:
        """A leader whose commits go on, or whom at least the others believe in."""

        def settled() -> bool:
            leader = self.cluster.leader()
            if leader is None or leader == other_than:
                return False
            seen = self.cluster.seen(leader)
            return seen is not None and seen.high_watermark is not None

        await self.cluster.until(settled, "a leader", within_s)
        leader = self.cluster.leader()
        assert leader is not None
        return leader

    async def progress(self, commits: int = 5, among: Sequence[int] = (), within_s: float = 30.0) -> None:
        """Wait until so many more records are committed, as far as these nodes know."""
        target = self.cluster.sight.high_watermark + commits
        await self.cluster.until(
            lambda: self.cluster.high_watermark(*among) >= target, f"commits go on to {target}", within_s
        )

    async def wait(self, least_s: float, most_s: float) -> None:
        await asyncio.sleep(self.chance.uniform(least_s, most_s))

    async def caught_up(self, *node_ids: int, within_s: float = 30.0) -> None:
        """Wait until these nodes know everything to be committed that is now."""
        target = self.cluster.sight.high_watermark
        await self.cluster.until(
            lambda: all(self.cluster.high_watermark(node_id) >= target for node_id in node_ids),
            f"{node_ids} reach {target}",
            within_s,
        )

    # The end

    async def converge(self, when: str) -> None:
        await self.cluster.until(self._is_converged, f"convergence {when}", CONVERGE_WITHIN_S)
        self.transcript.note(WORLD, f"converged {when} at {self.cluster.high_watermark()}")

    def _is_converged(self) -> bool:
        cluster = self.cluster
        leader = cluster.leader()
        looks = {node_id: cluster.seen(node_id) for node_id in cluster.members}
        if leader is None or any(seen is None for seen in looks.values()):
            return False
        seen_leader = looks[leader]
        assert seen_leader is not None
        image = seen_leader.image
        everyone = [seen for seen in looks.values() if seen is not None]
        return (
            all(seen.epoch == seen_leader.epoch and seen.leader_id == leader for seen in everyone)
            and all(seen.image.end_offset == seen_leader.high_watermark for seen in everyone)
            and all(seen.high_watermark == seen_leader.high_watermark for seen in everyone)
            and seen_leader.log_end_offset == seen_leader.high_watermark
            and all(member.is_started for member in cluster.members.values())
            and all(broker_id in image.brokers and image.brokers[broker_id].active for broker_id in self.brokers)
        )

    def judge(self) -> list[str]:
        """After `run`: everything that is not as it should be."""
        cluster = self.cluster
        found = [*cluster.problems, *self.load.problems]
        leader = cluster.leader()
        if leader is None:
            return [*found, "nobody leads at the end"]
        truth = cluster.seen(leader)
        assert truth is not None
        for node_id in cluster.members:
            seen = cluster.seen(node_id)
            if seen is None:
                found.append(f"n{node_id} is not there at the end")
            elif seen.image != truth.image and seen.image.end_offset == truth.image.end_offset:
                found.append(
                    f"n{node_id} and n{leader} end with images that differ: {differences(seen.image, truth.image)}"
                )
        found += self._differing_logs()
        return found + self.load.judge()

    def _differing_logs(self) -> list[str]:
        found = []
        batches: dict[int, tuple[int, object]] = {}
        for node_id, member in self.cluster.members.items():
            seen = member.look()
            if seen is None or not seen.high_watermark:
                continue
            for batch in member.batches(seen.log_start_offset, seen.high_watermark):
                if batch.base_offset >= seen.log_start_offset:
                    other, known = batches.setdefault(batch.base_offset, (node_id, batch))
                    if known != batch:
                        found.append(f"n{node_id} has {batch}, n{other} has {known}")
        return found


def play(scenario: Scenario, seed: int) -> Outcome:
    """One history of a scenario, from the first byte to the verdict."""
    with World(seed) as world:
        story = (scenario.story or Story)(world, scenario)
        try:
            world.run(story.run(), until=VIRTUAL_S_MAX, steps_max=STEPS_MAX)
        except Violation as violation:
            problems = [f"violation: {violation}"]
        except Stuck as stuck:
            problems = [f"stuck: {stuck}", *story.cluster.problems, *story.load.problems]
        except Exception as error:
            problems = [f"the history did not come to its end: {error!r}", *story.cluster.problems]
        else:
            problems = story.judge()
        return Outcome(
            seed,
            scenario.name,
            problems,
            world.trace_hash,
            world.now,
            story.load.acknowledged,
            story.cluster.faults,
            str(story.transcript),
        )
