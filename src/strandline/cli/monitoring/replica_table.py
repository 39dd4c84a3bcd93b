"""Every replica of a partition side by side, put together from what the nodes say of their own.

Always true: a replica whose node can't be asked is shown as its leader sees it, or as not known; what the newest epochs say counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

Told = Mapping[str, Any]
"""One element of a node's `/replicas`."""
NOT_KNOWN = -1


class ReplicaRow(NamedTuple):
    replica: int
    role: str
    """leader, follower, offline, or unreachable."""
    log_start_offset: int | None
    high_watermark: int | None
    log_end_offset: int | None
    lag: int | None
    leader_epoch: int | None
    """The newest that this replica knows."""
    in_sync: bool
    caught_up_ms_ago: int | None
    log_dir: str | None


class PartitionTable(NamedTuple):
    topic: str
    partition: int
    leader: int
    leader_epoch: int
    partition_epoch: int
    isr: list[int]
    osr: list[int]
    """Replicas that are out of sync."""
    elr: list[int]
    replicas: list[ReplicaRow]

    def as_json(self) -> dict[str, Any]:
        return self._asdict() | {"replicas": [row._asdict() for row in self.replicas]}


def tables(answers: Mapping[int, Mapping[str, Any]]) -> list[PartitionTable]:
    """From the nodes' answers, in the order of topics and partitions."""
    by_partition: dict[tuple[str, int], list[Told]] = {}
    for answer in answers.values():
        for told in answer["replicas"]:
            by_partition.setdefault((told["topic"], told["partition"]), []).append(told)
    return [_table(*place, told) for place, told in sorted(by_partition.items())]


def _table(topic: str, partition: int, told: list[Told]) -> PartitionTable:
    newest = max(told, key=lambda one: (one["leader_epoch"], one["partition_epoch"]))
    by_replica = {one["replica"]: one for one in told}
    leader = by_replica.get(newest["leader"])
    followers = {}
    if leader is not None and leader["role"] == "leader":
        followers = {follower["replica"]: follower for follower in leader["followers"]}
    isr = newest["isr"]
    rows = [
        _row(replica, by_replica.get(replica), followers.get(replica), replica in isr) for replica in newest["replicas"]
    ]
    return PartitionTable(
        topic,
        partition,
        newest["leader"],
        newest["leader_epoch"],
        newest["partition_epoch"],
        isr,
        [replica for replica in newest["replicas"] if replica not in isr],
        newest["elr"],
        rows,
    )


def _row(replica: int, told: Told | None, seen: Told | None, in_sync: bool) -> ReplicaRow:
    """`told` by itself, `seen` by its leader."""
    caught_up = None if seen is None else seen["caught_up_ms_ago"]
    if told is None:
        start, end = (
            (None, None) if seen is None else (_known(seen["log_start_offset"]), _known(seen["log_end_offset"]))
        )
        lag = None if seen is None else seen["lag"]
        return ReplicaRow(replica, "unreachable", start, None, end, lag, None, in_sync, caught_up, None)
    return ReplicaRow(
        replica,
        "offline" if told["offline"] else told["role"],
        told["log_start_offset"],
        told["high_watermark"],
        told["log_end_offset"],
        told["lag"] if seen is None or seen["lag"] is None else seen["lag"],
        told["leader_epoch"],
        in_sync,
        caught_up,
        told["log_dir"],
    )


def _known(offset: int) -> int | None:
    return None if offset == NOT_KNOWN else offset


def columns(rows: Iterable[ReplicaRow]) -> Iterable[tuple[Any, ...]]:
    """As a person reads them."""
    for row in rows:
        yield (
            row.replica,
            row.role,
            row.log_start_offset,
            row.high_watermark,
            row.log_end_offset,
            row.lag,
            row.leader_epoch,
            "ISR" if row.in_sync else "OSR",
            _level(row),
        )


def _level(row: ReplicaRow) -> str | None:
    """When it last had all that its leader had. One that lacks nothing has it now, however long nothing came."""
    if row.lag == 0:
        return "now"
    return None if row.caught_up_ms_ago is None else age(row.caught_up_ms_ago)


HEADINGS = ("replica", "role", "log start", "watermark", "log end", "lag", "epoch", "in sync", "level")


def age(ms: int) -> str:
    """How long ago that was."""
    if ms < 1000:
        return "now" if ms < 600 else f"{ms} ms ago"
    seconds = ms // 1000
    return f"{seconds} s ago" if seconds < 120 else f"{seconds // 60} min ago"
