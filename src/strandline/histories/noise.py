"""Noise: faults in the background of every nemesis that cost nothing of any promise.

Always true: what it does to a node or a link is over after a moment, or harmless as long as it lasts; it is drawn from
a stream of its own, so that nemeses do not shift it.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from contextlib import contextmanager

from strandline.histories.cluster import SimulatedCluster
from strandline.histories.fault_injector import FaultInjector
from strandline.histories.load import Load
from strandline.histories.shape import host
from strandline.sim.context import ProcessState

PAUSE_S = (4.0, 16.0)
HOUR_MS = 3_600_000
SLUGGISH_S = 0.02
LATE_S = (0.1, 3.0)
STILL_S = (0.05, 0.6)


class Noise:
    def __init__(self, cluster: SimulatedCluster, load: Load, faults: FaultInjector, seed: int) -> None:
        self._cluster = cluster
        self._load = load
        self._faults = faults
        self._chance = random.Random(f"{seed}/noise")
        self.is_hushed = False

    @contextmanager
    def hushed(self) -> Iterator[None]:
        """No noise begins meanwhile."""
        self.is_hushed = True
        try:
            yield
        finally:
            self.is_hushed = False

    async def run(self) -> None:
        """Until it is cancelled; what it was about then is healed with everything else."""
        chance = self._chance
        kinds = (self._reset, self._lose_reply, self._delay, self._slow_link, self._jump, self._drift, self._pause)
        weights = (3, 3, 2, 2, 1, 1, 2)
        while True:
            await asyncio.sleep(chance.uniform(*PAUSE_S))
            make = chance.choices(kinds, weights)[0]
            if not self.is_hushed:
                await make()

    def _two_nodes(self) -> tuple[int, int]:
        ids = list(self._cluster.members)
        one, other = self._chance.choice(ids), self._chance.choice(ids)
        return one, other

    async def _reset(self) -> None:
        one, other = self._two_nodes()
        if one != other:
            self._faults.reset(host(one), host(other), noise=True)

    async def _lose_reply(self) -> None:
        broker, client = self._chance.choice(self._cluster.shape.brokers), self._chance.choice(self._load.hosts)
        self._faults.lose_reply(host(broker), client, noise=True)

    async def _delay(self) -> None:
        one, other = self._two_nodes()
        by_s = self._chance.uniform(*LATE_S)
        if one != other:
            self._faults.delay_bytes(host(one), host(other), by_s, noise=True)

    async def _slow_link(self) -> None:
        one, other = self._two_nodes()
        if one != other:
            self._faults.slow_link(host(one), host(other), SLUGGISH_S, noise=True)

    async def _jump(self) -> None:
        node_id, _ = self._two_nodes()
        self._faults.clock_jump(node_id, self._chance.choice((-HOUR_MS, HOUR_MS)), noise=True)

    async def _drift(self) -> None:
        node_id, _ = self._two_nodes()
        self._faults.clock_drift(node_id, self._chance.uniform(-0.05, 0.05), noise=True)

    async def _pause(self) -> None:
        node_id, _ = self._two_nodes()
        machine, still_s = self._cluster.members[node_id].machine, self._chance.uniform(*STILL_S)
        if machine.process.state is ProcessState.PAUSED:
            return  # a nemesis has paused it, and will resume it
        process, member = machine.process, self._cluster.members[node_id]
        if self._faults.pause(node_id, noise=True):
            pauses = member.pauses
            await asyncio.sleep(still_s)
            if machine.process is process and member.pauses == pauses:
                self._cluster.resume(node_id)
