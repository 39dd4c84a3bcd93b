"""The progress of reassignments, and watching them until they end.

The progress of a new replica is the size of its log relative to that of the replicas from before. It is approximate: retention
and compaction run on each broker independently.

Always true: watching changes nothing, and to stop watching stops nothing else. A reassignment in progress is never shown as 100%.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple, Protocol

from strandline.cli.reassignment.reassignment_admin import live_brokers
from strandline.cli.reassignment.reassignment_plan import Replica, name
from strandline.cli.terminal.interrupts import ctrl_c
from strandline.cli.terminal.output import is_terminal, note
from strandline.client.blocking import Admin
from strandline.client.flow.descriptions import Reassignment
from strandline.errors import KafkaError
from strandline.ids import TopicPartition

if TYPE_CHECKING:
    from rich.progress import TaskID

POLL_S = 0.5
BARS_MAX = 15
"""Partitions with their own progress bar; the others are in the total."""
PERCENT_MAX = 99
"""The limit for a partition that is still being moved."""


class MoveProgress(NamedTuple):
    """How much of a partition's new replicas is copied."""

    copied_bytes: int
    total_bytes: int
    missing: tuple[int, ...] = ()
    """Brokers of new replicas that are not alive."""

    @property
    def percent(self) -> int:
        return min(PERCENT_MAX, 100 * self.copied_bytes // self.total_bytes) if self.total_bytes else 0


def measure(
    under_way: Mapping[TopicPartition, Reassignment], sizes: Mapping[Replica, int], live: Iterable[int]
) -> dict[TopicPartition, MoveProgress]:
    """The progress of each partition."""
    alive = set(live)
    found = {}
    for (topic, index), one in under_way.items():
        before = [sizes.get((topic, index, broker), 0) for broker in one.replicas if broker not in one.adding]
        whole = max(before, default=0)
        copied = sum(min(whole, sizes.get((topic, index, broker), 0)) for broker in one.adding)
        missing = tuple(broker for broker in one.adding if broker not in alive)
        found[topic, index] = MoveProgress(copied, whole * len(one.adding), missing)
    return found


def read_progress(admin: Admin, under_way: Mapping[TopicPartition, Reassignment]) -> dict[TopicPartition, MoveProgress]:
    """The progress from the log sizes that brokers report; a broker that does not answer counts as 0."""
    live = live_brokers(admin)
    sizes: dict[Replica, int] = {}
    for broker in sorted({broker for one in under_way.values() for broker in one.replicas} & live.keys()):
        try:
            dirs = admin.describe_log_dirs([broker])[broker]
        except KafkaError:
            continue
        for one in dirs:
            sizes.update({(*partition, broker): replica.size_bytes for partition, replica in one.replicas.items()})
    return measure(under_way, sizes, live)


class ReassignmentDisplay(Protocol):
    """A display of the progress of reassignments."""

    def show(self, progress: Mapping[TopicPartition, MoveProgress]) -> None:
        """Update the display; `progress` has the partitions that are still being moved."""

    def close(self) -> None: ...


def watch(admin: Admin, partitions: Iterable[TopicPartition]) -> bool:
    """Show the progress until none of these is in progress (True), or until Ctrl-C (False)."""
    wanted = sorted(partitions)
    display: ReassignmentDisplay = ReassignmentBars(wanted) if is_terminal(sys.stderr) else ReassignmentLines(wanted)
    with ctrl_c() as stop:
        try:
            while True:
                under_way = admin.list_partition_reassignments(wanted)
                display.show(read_progress(admin, under_way) if under_way else {})
                if not under_way:
                    return True
                if stop.requested:
                    return False
                time.sleep(POLL_S)
        finally:
            display.close()


class ReassignmentLines:
    """Without a terminal: a line for each partition that has ended, and for each broker that is not alive."""

    def __init__(self, partitions: Iterable[TopicPartition]) -> None:
        self._left = dict.fromkeys(partitions)
        self._count = len(self._left)
        self._missed: set[int] = set()

    def show(self, progress: Mapping[TopicPartition, MoveProgress]) -> None:
        for partition in [partition for partition in self._left if partition not in progress]:
            del self._left[partition]
            note(f"{name(partition)}: ended ({self._count - len(self._left)} of {self._count})")
        for broker in sorted({broker for one in progress.values() for broker in one.missing} - self._missed):
            self._missed.add(broker)
            note(f"broker {broker} is not alive; partitions that move to it wait")

    def close(self) -> None:
        pass


class ReassignmentBars:
    """On a terminal: one bar for all partitions, and one for each of the first that are being moved."""

    def __init__(self, partitions: Iterable[TopicPartition]) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

        self._bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[percent]:>3}%"),
            DownloadColumn(),
            TransferSpeedColumn(),
            TextColumn("{task.fields[remark]}"),
            console=Console(stderr=True),
        )
        self._seen: dict[TopicPartition, MoveProgress] = {}
        self._count = len(list(partitions))
        self._sum = self._bars.add_task("all", total=None, percent=0, remark="")
        self._of: dict[TopicPartition, TaskID] = {}
        self._bars.start()

    def show(self, progress: Mapping[TopicPartition, MoveProgress]) -> None:
        self._seen.update(progress)
        for partition in [partition for partition in self._of if partition not in progress]:
            self._bars.remove_task(self._of.pop(partition))
        for partition, one in progress.items():
            if partition not in self._of and len(self._of) < BARS_MAX:
                self._of[partition] = self._bars.add_task(name(partition), total=None, percent=0, remark="")
            if partition in self._of:
                self._update(self._of[partition], one, _remark(one))
        ended = [one for partition, one in self._seen.items() if partition not in progress]
        copied = sum(one.copied_bytes for one in progress.values()) + sum(one.total_bytes for one in ended)
        together = MoveProgress(copied, sum(one.total_bytes for one in self._seen.values()))
        self._update(self._sum, together, f"{self._count - len(progress)} of {self._count} partitions", not progress)

    def _update(self, task: TaskID, one: MoveProgress, remark: str, whole: bool = False) -> None:
        percent = 100 if whole else one.percent
        total = max(one.total_bytes, 1)
        self._bars.update(
            task, total=total, completed=total if whole else one.copied_bytes, percent=percent, remark=remark
        )

    def close(self) -> None:
        self._bars.stop()


def _remark(one: MoveProgress) -> str:
    return f"waits for broker {', '.join(map(str, one.missing))}, not alive" if one.missing else ""
