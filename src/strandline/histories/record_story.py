"""A scenario of the data plane: replicated topics under load, whole nodes, and what must be so in the end.

Every history ends alike: all harm is undone and all nodes come up; then every ISR is full, every replica of a partition has the
same bytes and the same high watermark, records can be written, and what was acknowledged is read.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial

from strandline.histories.cluster import Shape, Stuck
from strandline.histories.judges.replication import replica_checkers
from strandline.histories.record_load import KEYS, WRITERS, RecordLoad
from strandline.histories.replica_sight import Key, Loss, ReplicaSight
from strandline.histories.scenario import CONVERGE_WITHIN_S, Scenario, Story, scenario
from strandline.histories.transcript import WORLD
from strandline.metadata.image import PartitionImage
from strandline.sim.world import World

CONFIG = {
    "replica.lag.time.max.ms": "1500",
    "replica.fetch.wait.max.ms": "200",
    "replica.fetch.backoff.ms": "100",
    "replica.socket.timeout.ms": "1500",
    "replica.high.watermark.checkpoint.interval.ms": "700",
    "log.flush.offset.checkpoint.interval.ms": "900",
    "auto.leader.rebalance.enable": "false",
}
THREE, FIVE = Shape(voters=3), Shape(voters=5)
APART = Shape(voters=1, brokers=3)


def replicated(
    name: str,
    shapes: Sequence[Shape] = (THREE, APART),
    *,
    may_lose: Loss = Loss.NOTHING,
    config: Mapping[str, str] | None = None,
) -> Callable[[Callable[[RecordStory], Awaitable[None]]], Callable[[RecordStory], Awaitable[None]]]:
    """Register a scenario of the data plane under a name."""
    return scenario(  # type: ignore[return-value]
        name, shapes, config={**CONFIG, **(config or {})}, story=partial(RecordStory, may_lose=may_lose)
    )


class RecordStory(Story):
    load: RecordLoad

    def __init__(self, world: World, scenario: Scenario, *, may_lose: Loss) -> None:
        self.may_lose = may_lose
        super().__init__(world, scenario)

    def _make_load(self) -> RecordLoad:
        cluster = self.cluster
        self.replicas = ReplicaSight(cluster.sight, cluster.members, replica_checkers(self.may_lose), self.transcript)
        cluster.also_look = self.replicas.look
        return RecordLoad(cluster, self.replicas)

    async def run(self) -> None:
        await self.scenario.play(self)
        self.cluster.heal()
        self.transcript.note(WORLD, "all harm is undone")
        await self.converge("after all harm is undone", self._is_in_sync)
        await self.every_writer_gets_on()
        await self.load.stop_writing()
        await self.converge("at the end", self._is_level)
        await self.load.stop_reading()

    # Steps that scenarios are made of

    async def begin(self, records: int = 40) -> int:  # type: ignore[override]
        """Start all nodes, make the topics, wait for so many acknowledged records; which broker leads the first partition."""
        self.cluster.start()
        await self.cluster.until(lambda: self.cluster.leader() is not None, "the first election")
        await self.load.create_topics()
        await self.cluster.until(self._is_known, "the topics are known")
        self.load.start()
        await self.written(records)
        return self.leader_of(0)

    async def written(self, records: int = 20, within_s: float = 30.0) -> None:
        """Wait until so many more records are acknowledged with acks=all."""
        target = len(self.load.history.acknowledged) + records
        await self.cluster.until(
            lambda: len(self.load.history.acknowledged) >= target or self.load.problems,
            f"{target} records acknowledged",
            within_s,
        )

    async def every_writer_gets_on(self) -> None:
        before = {writing.name: self.load.acknowledged_by(writing.name) for writing in WRITERS}
        await self.cluster.until(
            lambda: all(self.load.acknowledged_by(name) >= count + 3 for name, count in before.items()),
            "every producer gets on",
            CONVERGE_WITHIN_S,
        )

    def keys(self) -> list[Key]:
        topics = self.replicas.image.topics
        return [(topics[topic].topic_id, partition) for topic, partition in KEYS]

    def state(self, number: int) -> PartitionImage:
        """Of one of the load's partitions."""
        topic, partition = KEYS[number]
        return self.replicas.image.topics[topic].partitions[partition]

    def leader_of(self, number: int) -> int:
        return self.state(number).leader

    async def led(self, number: int, *, but: int | None = None, within_s: float = 20.0) -> int:
        """Wait until somebody, or somebody else, leads a partition, and knows it."""

        def is_led() -> bool:
            leader = self.leader_of(number)
            replica = self.replicas.replicas.get((leader, self.keys()[number]))
            return leader >= 0 and leader != but and replica is not None and replica.leads

        await self.cluster.until(is_led, f"a leader of {KEYS[number]} other than {but}", within_s)
        return self.leader_of(number)

    def followers_of(self, number: int) -> list[int]:
        state = self.state(number)
        return [replica for replica in state.replicas if replica != state.leader]

    async def in_sync(self, within_s: float = CONVERGE_WITHIN_S) -> None:
        await self.cluster.until(self._is_in_sync, "all replicas in sync", within_s)

    # The end

    async def converge(self, when: str, is_so: Callable[[], bool] = lambda: True) -> None:
        try:
            await self.cluster.until(lambda: self._is_converged() and is_so(), f"convergence {when}", CONVERGE_WITHIN_S)
        except Stuck as stuck:
            raise Stuck(f"{self.describe()}; {stuck}") from None
        self.transcript.note(WORLD, f"converged {when} at {self.cluster.high_watermark()}")

    def _is_known(self) -> bool:
        return all(topic in self.replicas.image.topics for topic, _ in KEYS)

    def _is_in_sync(self) -> bool:
        """As the controller has it, which must know every broker as it is now: one that restarted may have lost records."""
        if not all(self.replicas.is_current(broker_id) for broker_id in self.brokers):
            return False
        states = [self.state(number) for number in range(len(KEYS))]
        return all(s.has_leader and set(s.isr) == set(s.replicas) and not s.elr for s in states)

    def _is_level(self) -> bool:
        """Every replica has everything, and knows that it is committed."""
        for number, key in enumerate(self.keys()):
            replicas = [self.replicas.replicas.get((i, key)) for i in self.state(number).replicas]
            ends = {None if r is None else (r.log_end_offset, r.high_watermark) for r in replicas}
            if len(ends) != 1 or None in ends or len(set(next(iter(ends)) or ())) != 1:
                return False
        return self._is_in_sync()

    def describe(self) -> str:
        parts = []
        for number, key in enumerate(self.keys()):
            state = self.state(number)
            ends = {
                i: (r.log_end_offset, r.high_watermark)
                for i in state.replicas
                if (r := self.replicas.replicas.get((i, key)))
            }
            topic, partition = KEYS[number]
            parts.append(f"{topic}-{partition}: leader {state.leader}, ISR {state.isr}, ELR {state.elr}, {ends}")
        return "; ".join(parts)

    def judge(self) -> list[str]:
        return [*super().judge(), *self._differing_replicas()]

    def _differing_replicas(self) -> list[str]:
        """Byte by byte, as far as both logs go back."""
        found = []
        for number, key in enumerate(self.keys()):
            logs = {i: log for i in self.state(number).replicas if (log := self.replicas.log(i, key)) is not None}
            start = max(log.log_start_offset for log in logs.values())
            contents = {
                i: b"".join(bytes(segment.file.inode.data) for segment in log.segments) for i, log in logs.items()
            }
            if start == 0 and len(set(contents.values())) != 1:
                sizes = {i: len(content) for i, content in contents.items()}
                found.append(f"the replicas of {KEYS[number]} differ in their bytes: {sizes}")
        return found
