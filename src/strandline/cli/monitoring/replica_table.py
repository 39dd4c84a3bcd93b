"""The replicas of a partition side by side, assembled from the reports of the nodes.

Always true: a replica whose node does not answer is shown as its leader sees it, or as unknown; the report with the newest epochs
wins.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypedDict


class ReportedFollower(TypedDict):
    """A follower as its leader reports it."""

    replica: int
    log_start_offset: int
    log_end_offset: int
    lag: int | None
    caught_up_ms_ago: int | None


class ReportedReplica(TypedDict):
    """A replica as its node reports it in `/replicas`."""

    topic: str
    partition: int
    replica: int
    role: str
    offline: bool
    leader: int
    leader_epoch: int
    partition_epoch: int
    replicas: list[int]
    isr: list[int]
    elr: list[int]
    log_start_offset: int
    high_watermark: int
    log_end_offset: int
    lag: int | None
    log_dir: str | None
    followers: list[ReportedFollower]


class ReplicasReport(TypedDict):
    """A node's answer to `/replicas`."""

    replicas: list[ReportedReplica]


NOT_KNOWN = -1


class ReplicaRow(NamedTuple):
    """A replica in the table of its partition; None is unknown."""

    replica: int
    role: str
    """leader, follower, offline, or unreachable."""
    log_start_offset: int | None
    high_watermark: int | None
    log_end_offset: int | None
    lag: int | None
    leader_epoch: int | None
    """The newest leader epoch that this replica knows."""
    in_sync: bool
    caught_up_ms_ago: int | None
    log_dir: str | None


class PartitionTable(NamedTuple):
    """A partition and all its replicas."""

    topic: str
    partition: int
    leader: int
    leader_epoch: int
    partition_epoch: int
    isr: list[int]
    osr: list[int]
    """Out-of-sync replicas."""
    elr: list[int]
    replicas: list[ReplicaRow]

    def as_json(self) -> dict[str, object]:
        return self._asdict() | {"replicas": [row._asdict() for row in self.replicas]}


def tables(answers: Mapping[int, ReplicasReport]) -> list[PartitionTable]:
    """The tables from the nodes' answers, sorted by topic and partition."""
    by_partition: dict[tuple[str, int], list[ReportedReplica]] = {}
    for answer in answers.values():
        for report in answer["replicas"]:
            by_partition.setdefault((report["topic"], report["partition"]), []).append(report)
    return [_table(*partition, reports) for partition, reports in sorted(by_partition.items())]


def _table(topic: str, partition: int, reports: list[ReportedReplica]) -> PartitionTable:
    newest = max(reports, key=lambda one: (one["leader_epoch"], one["partition_epoch"]))
    by_replica = {one["replica"]: one for one in reports}
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


def _row(replica: int, own: ReportedReplica | None, seen: ReportedFollower | None, in_sync: bool) -> ReplicaRow:
    """A row from the replica's own report, and from the leader's report of it as a follower (`seen`)."""
    caught_up = None if seen is None else seen["caught_up_ms_ago"]
    if own is None:
        start, end = (
            (None, None) if seen is None else (_known(seen["log_start_offset"]), _known(seen["log_end_offset"]))
        )
        lag = None if seen is None else seen["lag"]
        return ReplicaRow(replica, "unreachable", start, None, end, lag, None, in_sync, caught_up, None)
    return ReplicaRow(
        replica,
        "offline" if own["offline"] else own["role"],
        own["log_start_offset"],
        own["high_watermark"],
        own["log_end_offset"],
        own["lag"] if seen is None or seen["lag"] is None else seen["lag"],
        own["leader_epoch"],
        in_sync,
        caught_up,
        own["log_dir"],
    )


def _known(offset: int) -> int | None:
    return None if offset == NOT_KNOWN else offset


def columns(rows: Iterable[ReplicaRow]) -> Iterable[tuple[int | str | None, ...]]:
    """The cells of each row, in the order of HEADINGS."""
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
            _caught_up(row),
        )


def _caught_up(row: ReplicaRow) -> str | None:
    """When the replica was last caught up. With a lag of 0 it is caught up now, even if nothing was written for long."""
    if row.lag == 0:
        return "now"
    return None if row.caught_up_ms_ago is None else age(row.caught_up_ms_ago)


HEADINGS = ("replica", "role", "log start", "watermark", "log end", "lag", "epoch", "in sync", "caught up")


def age(ms: int) -> str:
    """The time since then as text."""
    if ms < 1000:
        return "now" if ms < 600 else f"{ms} ms ago"
    seconds = ms // 1000
    return f"{seconds} s ago" if seconds < 120 else f"{seconds // 60} min ago"
