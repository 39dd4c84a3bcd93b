"""Random schedules of a data plane: nothing committed is lost whatever dies, lags or is overtaken, and in the end all agree.

Always true: a run follows from its seed alone; a failure names it, and `schedule(seed)` shows it again. STRANDLINE_REPLICA_SEEDS
sets how many seeds are tried, STRANDLINE_REPLICA_FIRST_SEED which is the first.
"""

from __future__ import annotations

import os
import random

import pytest

from strandline.controller.leader_election import Election
from strandline.errors import KafkaError
from strandline.log.log import Log
from strandline.records.header import iterate

from .cluster import NO_FLUSH, Cluster
from .invariants import Watch

SEEDS = int(os.environ.get("STRANDLINE_REPLICA_SEEDS", "400"))
FIRST_SEED = int(os.environ.get("STRANDLINE_REPLICA_FIRST_SEED", "0"))
PARTS = 8
ROUNDS_MAX = 10
UNLUCKY = 1

STEPS = {
    "deliver": 30,
    "metadata": 12,
    "fetch": 14,
    "flush": 6,
    "beat": 8,
    "produce": 12,
    "consume": 3,
    "lose": 2,
    "wait": 5,
    "shrink": 2,
    "kill": 2,
    "power": 2,
    "stop": 2,
    "start": 6,
    "fence": 2,
    "checkpoint": 2,
    "elect": 1,
    "balance": 1,
    "reassign": 2,
    "delete": 1,
    "cut": 1,
    "heal": 2,
}


class Schedule:
    """One run: a hundred and more steps of whatever can happen, then peace."""

    def __init__(self, seed: int) -> None:
        chance = self.chance = random.Random(seed)
        self.flush_messages = chance.choice([NO_FLUSH, NO_FLUSH, 1, 1, 3])
        self.allows_loss = chance.random() < 0.15
        self.is_one_unlucky = self.flush_messages == NO_FLUSH and not self.allows_loss and chance.random() < 0.5
        """With ELR and two in sync, one broker may lose what it did not sync, as long as no other ends uncleanly."""
        self.brokers = chance.choice([3, 3, 4])
        replicas = tuple(
            chance.sample(range(1, self.brokers + 1), 3 if self.is_one_unlucky else chance.choice([2, 3, 3]))
        )
        self.cluster = Cluster(
            self.brokers,
            replicas=replicas,
            min_isr=2 if self.is_one_unlucky else chance.choice([1, 2, 2]),
            elr=self.is_one_unlucky or chance.random() < 0.6,
            unclean=self.allows_loss,
            flush_messages=self.flush_messages,
            segment_bytes=chance.choice([2**30, 400]),
            fetch_bytes=chance.choice([2**20, 2**20, 150, 1]),
            seed=seed,
        )
        self.watch = Watch(self.cluster, allows_loss=self.allows_loss)
        self.values = 0
        self.log: list[str] = []

    def run(self) -> None:
        names, weights = [*STEPS], [*STEPS.values()]
        for name in self.chance.choices(names, weights, k=self.chance.choice([80, 150, 300])):
            self.step(name)
        self.peace()

    def step(self, name: str) -> None:
        getattr(self, f"do_{name}")()
        self.watch.check()

    def told(self, text: str) -> None:
        self.log.append(text)

    # Steps

    def _running(self) -> int | None:
        running = [process.node_id for process in self.cluster.running]
        return self.chance.choice(running) if running else None

    def _leader_or_any(self) -> int | None:
        state = self.cluster.controller.partition
        if self.chance.random() < 0.7 and state.has_leader and self.cluster.hosts[state.leader].process is not None:
            return state.leader
        return self._running()

    def do_deliver(self) -> None:
        for _ in range(self.chance.choice([1, 1, 4])):
            messages = self.cluster.deliverable()
            if not messages:
                return
            message = self.chance.choice(messages)
            self.told(f"{message.kind} {message.source}->{message.target}")
            self.cluster.deliver(message)
            self.watch.check()

    def do_lose(self) -> None:
        if self.cluster.under_way:
            message = self.chance.choice(self.cluster.under_way)
            self.told(f"lose {message.kind} {message.source}->{message.target}")
            self.cluster.lose(message)

    def do_metadata(self) -> None:
        broker_id = self._running()
        if broker_id is not None and self.cluster.hears_controller(broker_id):
            process = self.cluster.process(broker_id)
            upto = None if self.chance.random() < 0.6 else process.applied + self.chance.randint(1, 2)
            if process.applied < process.broker_epoch:
                upto = None
            process.apply(upto)
            self.told(f"metadata {broker_id} {process.applied}")

    def do_fetch(self) -> None:
        broker_id = self._running()
        if broker_id is not None:
            self.told(f"fetch {broker_id}")
            self.cluster.process(broker_id).fetch()

    def do_flush(self) -> None:
        broker_id = self._running()
        if broker_id is not None:
            self.told(f"flush {broker_id}")
            self.cluster.process(broker_id).flush()

    def do_beat(self) -> None:
        broker_id = self._running()
        if broker_id is not None and (broker_id, 0) not in self.cluster.cut:
            self.told(f"beat {broker_id}")
            self.cluster.beat(broker_id)

    def do_produce(self) -> None:
        broker_id = self._leader_or_any()
        if broker_id is not None:
            for _ in range(self.chance.choice([1, 1, 3])):
                self.values += 1
                acks = self.chance.choice([-1, -1, 1])
                self.told(f"produce {broker_id} v{self.values} acks={acks}")
                self.cluster.produce(broker_id, f"v{self.values}", acks=acks)

    def do_consume(self) -> None:
        broker_id = self._running()
        if broker_id is not None and not self.allows_loss:
            self.watch.read(broker_id)

    def do_wait(self) -> None:
        self.cluster.wait(self.chance.choice([0.1, 0.5, 5.0, 40.0]))
        self.told("wait")

    def do_shrink(self) -> None:
        for process in self.cluster.running:
            if process.partition is not None:
                process.partition.shrink_isr(self.cluster.loop.now)
        self.told("shrink")

    def do_kill(self) -> None:
        broker_id = self._leader_or_any()
        if broker_id is not None and not self.is_one_unlucky:
            self.told(f"kill {broker_id}")
            self.cluster.kill(broker_id)
            if self.chance.random() < 0.5:
                self.cluster.controller.fence(broker_id)
                self.told(f"fence {broker_id}")

    def do_power(self) -> None:
        """Only where nothing counts before it is on the device, where loss is allowed anyway, and to the unlucky one."""
        broker_id = self._leader_or_any()
        if self.is_one_unlucky:
            broker_id = UNLUCKY if self.cluster.hosts[UNLUCKY].process is not None else None
        if broker_id is not None and (self.flush_messages == 1 or self.allows_loss or self.is_one_unlucky):
            self.told(f"power {broker_id}")
            self.cluster.power_loss(broker_id)

    def do_stop(self) -> None:
        broker_id = self._running()
        if broker_id is not None:
            self.told(f"stop {broker_id}: {self.cluster.stop(broker_id)}")

    def do_start(self) -> None:
        stopped = [host.id for host in self.cluster.hosts.values() if host.process is None]
        if stopped:
            broker_id = self.chance.choice(stopped)
            self.told(f"start {broker_id}")
            self.cluster.start(broker_id)

    def do_fence(self) -> None:
        broker_id = self.chance.choice([*self.cluster.hosts])
        self.told(f"fence {broker_id}")
        self.cluster.controller.fence(broker_id)

    def do_checkpoint(self) -> None:
        broker_id = self._running()
        if broker_id is not None:
            self.cluster.process(broker_id).write_checkpoint()
            self.told(f"checkpoint {broker_id}")

    def do_elect(self) -> None:
        kind = Election.UNCLEAN if self.allows_loss and self.chance.random() < 0.5 else Election.PREFERRED
        self.told(f"elect {kind.name}")
        try:
            self.cluster.controller.elect(kind)
        except KafkaError as error:
            self.told(error.code.name)

    def do_balance(self) -> None:
        self.told("balance")
        self.cluster.controller.balance()
        if self.allows_loss:
            self.cluster.controller.elect_uncleanly_if_allowed()

    def do_reassign(self) -> None:
        # With a single replica, one unlucky broker is one too many.
        count = self.chance.choice([2, 3] if self.is_one_unlucky else [1, 2, 3])
        replicas = tuple(self.chance.sample([*self.cluster.hosts], count)) if self.chance.random() < 0.8 else None
        self.told(f"reassign {replicas}")
        try:
            self.cluster.controller.reassign(replicas)
        except KafkaError as error:
            self.told(error.code.name)

    def do_delete(self) -> None:
        leader = self.cluster.leader
        if leader is not None and leader.high_watermark > leader.log.log_start_offset:
            offset = self.chance.randint(leader.log.log_start_offset, leader.high_watermark)
            self.told(f"delete {offset}")
            leader.delete_records(offset)
            self.cluster.loop.run()

    def do_cut(self) -> None:
        a, b = self.chance.choice([*self.cluster.hosts]), self.chance.choice([0, *self.cluster.hosts])
        self.told(f"cut {a}-{b}")
        self.cluster.cut |= {(a, b), (b, a)} if self.chance.random() < 0.6 else {(a, b)}

    def do_heal(self) -> None:
        self.told("heal")
        self.cluster.heal()

    # Peace

    def peace(self) -> None:
        """Everybody is back and everything arrives: all replicas become equal and in sync, and every producer is answered."""
        cluster = self.cluster
        self.told("peace")
        cluster.heal()
        for host in cluster.hosts.values():
            if host.process is None:
                cluster.start(host.id)
        for _ in range(ROUNDS_MAX):
            self._rounds()
            if self._is_quiet():
                break
        state = cluster.controller.partition
        assert cluster.leader is not None, f"nobody leads: {state}"
        self._agree()
        cluster.produce(state.leader, "last", acks=-1)
        self._rounds()
        assert cluster.told[-1].startswith("last: acked"), cluster.told[-1]
        self._agree()
        assert len({str(cluster.partition(each).log.epochs.latest) for each in state.replicas}) == 1

    def _is_quiet(self) -> bool:
        """Everybody takes part, and no reassignment is under way."""
        image, state = self.cluster.controller.image, self.cluster.controller.partition
        everybody = all(image.brokers[process.node_id].active for process in self.cluster.running)
        return everybody and state.has_leader and not (state.adding_replicas or state.removing_replicas)

    def _rounds(self) -> None:
        for process in self.cluster.running:
            process.apply()
            answer = self.cluster.beat(process.node_id)
            assert answer is not None
            if answer.should_shut_down:
                process.close_clean()
                self.cluster.start(process.node_id)
        if self.allows_loss:
            self.cluster.controller.elect_uncleanly_if_allowed()
        self.cluster.settle()
        self.watch.check()
        self.cluster.wait(31.0)
        self.cluster.settle()
        self.watch.check()

    def _agree(self) -> None:
        cluster, leader = self.cluster, self.cluster.leader
        state = cluster.controller.partition
        assert leader is not None
        assert sorted(state.isr) == sorted(state.replicas), f"not all are in sync: {state}"
        assert not state.adding_replicas, f"not reassigned: {state}"
        assert not state.removing_replicas, f"not reassigned: {state}"
        end = leader.log.log_end_offset
        for broker_id in state.replicas:
            partition = cluster.partition(broker_id)
            assert (partition.high_watermark, partition.log.log_end_offset) == (end, end), (
                f"{broker_id} is at {partition.high_watermark} of {partition.log.log_end_offset}, the leader at {end}"
            )
            # Where records were deleted they may be gone on one and still there on another.
            start = max(leader.log.log_start_offset, partition.log.log_start_offset)
            assert bytes_from(partition.log, start) == bytes_from(leader.log, start), f"{broker_id} differs"


def bytes_from(log: Log, offset: int) -> bytes:
    data = b""
    while offset < log.log_end_offset:
        part = log.read(offset, 2**30, log.log_end_offset, min_one=True)
        offset = [header.next_offset for _, header in iterate(part)][-1]
        data += part
    return data


def schedule(seed: int) -> Schedule:
    run = Schedule(seed)
    run.run()
    return run


@pytest.mark.parametrize("part", range(PARTS))
def test_invariants_hold_over_random_schedules(part: int) -> None:
    for seed in range(FIRST_SEED + part, FIRST_SEED + SEEDS, PARTS):
        run = Schedule(seed)
        try:
            run.run()
        except Exception as error:
            raise AssertionError(f"seed {seed}, after {'; '.join(run.log[-40:])}: {error}") from error
