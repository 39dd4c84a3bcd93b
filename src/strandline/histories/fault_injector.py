"""The one place where faults are injected into a history.

Every fault has a number from the moment it is planned: those of the noise from 1 on, those of the first nemesis from
100 on, of the second from 200 on. So a fault that is left out changes no other's number, and a smaller set of them can
be played again.

Always true: a fault that is left out, or that the budget does not cover, is not injected, and says so by False; what
was injected is in the record and in the coverage; undoing a fault is no fault and always happens.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from strandline.histories.budget import Budget
from strandline.histories.cluster import SimulatedCluster
from strandline.histories.coverage import FAULT, SPARED, Coverage
from strandline.histories.exchanges import CoordinatorExchange
from strandline.histories.groups.member import GroupMember
from strandline.histories.outcome import InjectedFault
from strandline.histories.replica_observation import ReplicaObservation
from strandline.histories.shape import host
from strandline.histories.transcript import WORLD
from strandline.sim.faults import Fault
from strandline.sim.world import SimNode

PER_ACT_MAX = 100
NOISE, TRANSACTION_NOISE = 0, 20
"""What their faults are numbered as: streams of their own, so that none shifts the numbers of another."""

DISK_FAULTS = (Fault.FULL, Fault.READ_ONLY, Fault.WRITE_ERROR, Fault.SYNC_ERROR)
SLOW_BYTES_PER_S = 375_000

DATA, INDEX, EPOCHS, SNAPSHOT, VOTE = "data", "index", "epoch file", "snapshot", "quorum-state"
"""What may rot."""

KINDS = (
    "kill",
    "stop",
    "power loss",
    "disk lost",
    "pause",
    "slow node",
    "slow disk",
    *(f"disk {fault.value}" for fault in DISK_FAULTS),
    "disk fills up",
    *(f"bit flip in {what}" for what in (DATA, INDEX, EPOCHS, SNAPSHOT, VOTE)),
    "cut off",
    "cut",
    "one-way cut",
    "split",
    "reset",
    "reset storm",
    "lost reply",
    "late bytes",
    "slow link",
    "clock jump",
    "clock drift",
    "voter change",
    "reassignment",
    "election on request",
    "min ISR changed",
    "records deleted",
    "topic deleted",
    "member kill",
    "member pause",
)
"""All there are."""


class FaultInjector:
    def __init__(
        self,
        cluster: SimulatedCluster,
        replicas: ReplicaObservation,
        budget: Budget,
        coverage: Coverage,
        without: frozenset[int],
    ) -> None:
        self.injected: list[InjectedFault] = []
        self.planned = 0
        """Those that were injected, and those that would have been if they were not left out."""
        self._cluster = cluster
        self._replicas = replicas
        self._budget = budget
        self._coverage = coverage
        self._without = without
        self._next: dict[int, int] = {}
        self._act = 0

    @property
    def are_left_out(self) -> bool:
        """Some, on request."""
        return bool(self._without)

    def begin_nemesis(self, number: int) -> None:
        """Nemeses come one after the other; the first has number 1."""
        self._act = number

    def inject(
        self,
        kind: str,
        what: str,
        do: Callable[[], object],
        *,
        possible: bool = True,
        allowed: Callable[[], bool] = lambda: True,
        noise: bool = False,
        act: int | None = None,
    ) -> bool:
        """Whether it was done. It has its number, and what it costs is counted, also if it is not: the others keep
        their place."""
        assert kind in KINDS, f"{kind!r} is not among the kinds of faults"
        nemesis = NOISE if noise else self._act if act is None else act
        ordinal = self._next[nemesis] = self._next.get(nemesis, 0) + 1
        if ordinal >= PER_ACT_MAX:
            return False
        number = nemesis * PER_ACT_MAX + ordinal
        if not possible:
            return False
        if not allowed():
            self._coverage.note(SPARED, kind)
            self._cluster.transcript.note(WORLD, f"spares {what} a {kind}")
            return False
        self.planned += 1
        if number in self._without:
            return False
        self.injected.append(InjectedFault(number, self._cluster.world.now, kind, what))
        self._coverage.note(FAULT, kind)
        self._cluster.observed.disturbed_at = self._cluster.world.now
        do()
        return True

    # Processes and machines

    def kill(self, *node_ids: int) -> bool:
        """Whether all of them were."""
        killed = [self._kill(node_id) for node_id in node_ids]
        return all(killed)

    def _kill(self, node_id: int) -> bool:
        up = self._cluster.members[node_id].is_up
        return self.inject(
            "kill",
            host(node_id),
            lambda: self._cluster.kill(node_id),
            possible=up,
            allowed=lambda: self._budget.take_process(node_id),
        )

    async def stop(self, node_id: int) -> bool:
        up = self._cluster.members[node_id].is_up
        if not self.inject("stop", host(node_id), lambda: None, possible=up):
            return False
        await self._cluster.stop(node_id)
        return True

    def power_loss(self, *node_ids: int) -> bool:
        lost = [self._power_loss(node_id) for node_id in node_ids]
        return all(lost)

    def _power_loss(self, node_id: int) -> bool:
        return self.inject(
            "power loss",
            host(node_id),
            lambda: self._cluster.power_loss(node_id),
            allowed=lambda: self._budget.take_power(node_id),
        )

    def dies(self, node_id: int, *, power: bool) -> bool:
        return self._power_loss(node_id) if power else self._kill(node_id)

    def lose_disk(self, node_id: int) -> bool:
        return self.inject(
            "disk lost",
            host(node_id),
            lambda: self._cluster.wipe(node_id),
            allowed=lambda: self._budget.take_disk(node_id),
        )

    def pause(self, node_id: int, *, noise: bool = False) -> bool:
        up = self._cluster.members[node_id].is_up
        return self.inject("pause", host(node_id), lambda: self._cluster.pause(node_id), possible=up, noise=noise)

    def slow(self, node_id: int, factor: float) -> bool:
        return self.inject("slow node", f"{host(node_id)} {factor:g}x", lambda: self._cluster.slow(node_id, factor))

    def slow_disk(self, node_id: int, factor: float) -> bool:
        what = f"{host(node_id)} {factor:g}x"
        return self.inject("slow disk", what, lambda: self._cluster.slow_disk(node_id, factor))

    def break_disk(self, node_id: int, prefix: str, fault: Fault) -> bool:
        """Operations below `prefix` fail until the disk is repaired. What a failed sync should have written may be
        gone."""
        return self.inject(
            f"disk {fault.value}",
            f"{host(node_id)} {prefix}",
            lambda: self._cluster.break_disk(node_id, prefix, fault),
            allowed=lambda: self._budget.take_power(node_id),
        )

    def fill_disk(self, node_id: int, prefix: str, room_bytes: int) -> bool:
        """It takes so many bytes more, and then none."""
        return self.inject(
            "disk fills up",
            f"{host(node_id)} {prefix} after {room_bytes} bytes",
            lambda: self._cluster.break_disk(node_id, prefix, Fault.FULL, room_bytes=room_bytes),
            allowed=lambda: self._budget.take_power(node_id),
        )

    def flip_bit(self, node_id: int, what: str, path: str, position: int, bit: int, *, possible: bool = True) -> bool:
        """Rot at rest. The caller has made sure that another replica has the same."""
        return self.inject(
            f"bit flip in {what}",
            f"{host(node_id)} {path} at {position}",
            lambda: self._flip_bit(node_id, what, path, position, bit),
            possible=possible,
            allowed=lambda: self._budget.let_rot(node_id),
        )

    def _flip_bit(self, node_id: int, what: str, path: str, position: int, bit: int) -> None:
        if what == DATA:  # all else is made anew from the data, and excuses nothing
            self._replicas.note_rot(node_id, path.split("/")[-2])
        self._cluster.flip_bit(node_id, path, position, bit)

    def clock_jump(self, node_id: int, by_ms: int, *, noise: bool = False) -> bool:
        clock = self._cluster.members[node_id].machine.clock
        what = f"{host(node_id)} by {by_ms // 1000} s"
        return self.inject("clock jump", what, lambda: clock.jump(by_ms), noise=noise)

    def clock_drift(self, node_id: int, drift: float, *, noise: bool = False) -> bool:
        clock = self._cluster.members[node_id].machine.clock
        what = f"{host(node_id)} {drift:+.3f} s/s"
        return self.inject("clock drift", what, lambda: clock.set_drift(drift), noise=noise)

    # Members of the group

    def kill_member(self, member: GroupMember) -> bool:
        return self.inject("member kill", member.name, member.kill, possible=member.is_running)

    def pause_member(self, member: GroupMember) -> bool:
        return self.inject("member pause", member.name, member.machine.pause, possible=member.is_running)

    def pause_client(self, machine: SimNode) -> bool:
        return self.inject("member pause", machine.name, machine.pause, possible=machine.alive)

    # The network

    def isolate(self, node_id: int) -> bool:
        return self.inject("cut off", host(node_id), lambda: self._cluster.isolate(node_id))

    def cut(self, one: int, other: int) -> bool:
        return self.inject("cut", f"{host(one)} - {host(other)}", lambda: self._cluster.cut(one, other))

    def cut_one_way(self, source: int, target: int) -> bool:
        what = f"{host(source)} -> {host(target)}"
        return self.inject("one-way cut", what, lambda: self._cluster.cut_one_way(source, target))

    def delay_bytes(self, one: str, other: str, by_s: float, *, noise: bool = False) -> bool:
        """What was sent on the connections that there are arrives after what comes on new ones."""
        network = self._cluster.world.network
        what = f"{one} - {other} by {by_s:.1f} s"
        there_are = network.connections(one, other) > 0
        return self.inject(
            "late bytes", what, lambda: network.delay_bytes(one, other, by_s), possible=there_are, noise=noise
        )

    def split(self, one: Sequence[int], other: Sequence[int]) -> bool:
        return self.inject("split", f"{list(one)} | {list(other)}", lambda: self._cluster.split(one, other))

    def reset(self, one: str, other: str, *, noise: bool = False) -> bool:
        """Connections between two hosts, each after any prefix of the bytes that are in the air."""
        there_are = self._cluster.world.network.connections(one, other) > 0
        what = f"{one} - {other}"
        return self.inject("reset", what, lambda: self._cluster.reset(one, other), possible=there_are, noise=noise)

    def lose_reply(self, broker: str, client: str, *, noise: bool = False) -> bool:
        """The next request of the client is carried out, and its response is lost."""
        network = self._cluster.world.network
        what = f"{broker} - {client}"
        there_are = network.connections(broker, client) > 0
        return self.inject(
            "lost reply", what, lambda: network.lose_replies(broker, client), possible=there_are, noise=noise
        )

    def lose_answer(self, exchange: CoordinatorExchange) -> bool:
        """This very request of a transaction is carried out, and its answer is lost."""
        connection = exchange.connection
        assert connection is not None, "it is known where it was sent"
        what = f"{host(exchange.broker_id)} - {exchange.who} (API {exchange.api_key})"
        return self.inject("lost reply", what, connection.lose_replies, act=TRANSACTION_NOISE)

    def delay_request(self, exchange: CoordinatorExchange, by_s: float, *, noise: bool = True) -> bool:
        """This very request arrives after what is sent on other connections, and so does its answer."""
        until = self._cluster.world.now + by_s
        what = f"{exchange.who} - {host(exchange.broker_id)} (API {exchange.api_key}) by {by_s:.1f} s"
        act = TRANSACTION_NOISE if noise else None
        return self.inject("late bytes", what, lambda: exchange.hold(until), act=act)

    def slow_link(self, one: str, other: str, latency_s: float = 0.05, *, noise: bool = False) -> bool:
        """3 Mbit/s, if it is half of a way of 100 ms; faster in proportion."""
        network, rate = self._cluster.world.network, SLOW_BYTES_PER_S * 0.05 / latency_s
        what = f"{one} - {other}, {1000 * latency_s:.0f} ms"
        return self.inject("slow link", what, lambda: network.slow_link(one, other, latency_s, rate), noise=noise)
