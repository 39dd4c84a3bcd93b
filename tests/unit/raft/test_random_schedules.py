"""Random schedules: the invariants hold whatever the network, the disks and the operators do, and in the end all agree.

Always true: a run follows from its seed alone; a failure names it, and `schedule(seed)` shows it again.
"""

from __future__ import annotations

import random

import pytest

from tests.unit.raft.cluster import Cluster, Faults

SEEDS = 240
PARTS = 10


def schedule(seed: int) -> Cluster:
    """One run: some seconds of faults, then peace, then everybody has to agree."""
    chance = random.Random(seed)
    is_dynamic = chance.random() < 0.6
    voters = chance.choice([[1], [1, 2], [1, 2, 3], [1, 2, 3], [1, 2, 3, 4, 5]])
    observers = [6, 7] if is_dynamic else []
    faults = Faults(
        delay_s=(0.0005, chance.choice([0.002, 0.02, 0.2])),
        flush_s=(0.0005, chance.choice([0.001, 0.02, 0.15])),
        loss=chance.choice([0.0, 0.02, 0.1]),
        duplication=chance.choice([0.0, 0.05]),
        crash=chance.choice([0.0, 0.0, 0.002, 0.01]),
    )
    cluster = Cluster(
        voters,
        observers=observers,
        brokers=[9],
        kraft_version=int(is_dynamic),
        seed=chance.getrandbits(32),
        faults=faults,
    )
    controllers = [*voters, *observers]
    for _ in range(chance.randint(10, 40)):
        cluster.run(chance.choice([0.01, 0.05, 0.2, 0.6]))
        _something(cluster, chance, controllers, is_dynamic)
    cluster.heal()
    cluster.faults = Faults()
    for node in cluster.nodes.values():
        cluster.resume(node.id)
        if node.raft is None:
            cluster.start(node.id)
    _agree(cluster)
    return cluster


def _something(cluster: Cluster, chance: random.Random, controllers: list[int], is_dynamic: bool) -> None:
    node_id = chance.choice(controllers)
    node, leader = cluster.nodes[node_id], cluster.leader()
    leader_id = leader.id if leader else node_id
    match chance.choice(
        [
            "write",
            "write",
            "write",
            "crash",
            "crash",
            "start",
            "start",
            "cut",
            "one way",
            "heal",
            "snapshot",
            "change",
            "change",
            "pause",
            "reset",
        ]
    ):
        case "write":
            cluster.write(leader_id, chance.randint(1, 3))
        case "crash":
            if node.raft is not None:
                cluster.crash(chance.choice([node_id, leader_id]), power_loss=chance.random() < 0.7)
        case "start":
            for stopped in cluster.nodes.values():
                cluster.resume(stopped.id)
                if stopped.raft is None:
                    cluster.start(stopped.id)
        case "pause":
            cluster.pause(chance.choice([node_id, leader_id]))
        case "reset":
            for _ in range(chance.choice([1, 30])):
                cluster.reset(*chance.sample(sorted(cluster.nodes), 2))
                cluster.run(0.01)
        case "cut":
            cluster.cut_off(chance.choice([node_id, leader_id]))
        case "one way":
            cluster.cut.add((node_id, chance.choice(controllers)))
        case "heal":
            cluster.heal()
        case "snapshot":
            cluster.snapshot(node_id)
        case "change" if is_dynamic:
            if chance.random() < 0.5:
                cluster.add_voter(leader_id, node_id)
            else:
                cluster.remove_voter(leader_id, node_id)


def _agree(cluster: Cluster) -> None:
    """Liveness: a leader is found, commits, and everybody gets there, with the same log."""

    def all_there() -> bool:
        leader = cluster.leader()
        if leader is None or leader.raft is None or leader.raft.high_watermark != leader.log.end_offset:
            return False
        return all(
            node.raft is not None
            and node.raft.leader_id == leader.id
            and node.log.end_offset == leader.log.end_offset
            and node.raft.high_watermark == leader.raft.high_watermark
            for node in cluster.nodes.values()
        )

    assert cluster.run_until(all_there), status(cluster)
    leader = cluster.leader()
    assert leader is not None
    cluster.write(leader.id, 2)
    assert cluster.run_until(all_there), status(cluster)
    leader = cluster.leader()
    assert leader is not None
    for node in cluster.nodes.values():
        first = max(node.log.start_offset, leader.log.start_offset)
        assert [b for b in node.log.batches if b.base_offset >= first] == [
            b for b in leader.log.batches if b.base_offset >= first
        ]


def status(cluster: Cluster) -> str:
    return "\n".join(
        f"{n.id}: {n.raft.role if n.raft else 'stopped'} {n.saved} log {n.log.start_offset}-{n.log.end_offset} "
        f"flushed {n.log.flushed_offset} hw {n.raft.high_watermark if n.raft else None} "
        f"voters {n.raft.voters.ids if n.raft else None}"
        for n in cluster.nodes.values()
    )


@pytest.mark.parametrize("part", range(PARTS))
def test_invariants_hold_over_random_schedules(part: int) -> None:
    for seed in range(part, SEEDS, PARTS):
        try:
            schedule(seed)
        except Exception as error:
            raise AssertionError(f"seed {seed}: {error}") from error
