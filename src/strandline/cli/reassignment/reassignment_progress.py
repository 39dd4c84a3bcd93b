"""How far reassignments are, and watching them until they end.

A new replica's share is the size of its log against that of the replicas that were there before. Sizes are close, not exact:
retention and compaction run on each broker for itself.

Always true: watching changes nothing; who stops watching stops nothing else. What is under way never counts as whole.
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
from strandline.client.flow.described import Reassignment
from strandline.errors import KafkaError
from strandline.ids import TopicPartition

if TYPE_CHECKING:
    from rich.progress import TaskID

POLL_S = 0.5
BARS_MAX = 15
"""Partitions that get a bar of their own; the rest is in the sum."""
PERCENT_MAX = 99
"""Of a partition that is under way, whatever the sizes say."""


class Progress(NamedTuple):
    copied_bytes: int
    total_bytes: int
    missing: tuple[int, ...] = ()
    """Brokers that it waits for and that are not alive."""

    @property
    def percent(self) -> int:
        return min(PERCENT_MAX, 100 * self.copied_bytes // self.total_bytes) if self.total_bytes else 0


def measure(
    under_way: Mapping[TopicPartition, Reassignment], sizes: Mapping[Replica, int], live: Iterable[int]
) -> dict[TopicPartition, Progress]:
    """By partition, how much of what must be copied is there."""
    alive = set(live)
    found = {}
    for (topic, index), one in under_way.items():
        before = [sizes.get((topic, index, broker), 0) for broker in one.replicas if broker not in one.adding]
        whole = max(before, default=0)
        copied = sum(min(whole, sizes.get((topic, index, broker), 0)) for broker in one.adding)
        missing = tuple(broker for broker in one.adding if broker not in alive)
        found[topic, index] = Progress(copied, whole * len(one.adding), missing)
    return found


def look(admin: Admin, under_way: Mapping[TopicPartition, Reassignment]) -> dict[TopicPartition, Progress]:
    """Ask the brokers for the sizes; a broker that goes away meanwhile has none."""
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


class Display(Protocol):
    def show(self, progress: Mapping[TopicPartition, Progress]) -> None:
        """Those that are still under way."""

    def close(self) -> None: ...


def watch(admin: Admin, partitions: Iterable[TopicPartition]) -> bool:
    """Until none of these is under way (True), or until Ctrl-C (False)."""
    wanted = sorted(partitions)
    display: Display = Bars(wanted) if is_terminal(sys.stderr) else Lines(wanted)
    with ctrl_c() as asked:
        try:
            while True:
                under_way = admin.list_partition_reassignments(wanted)
                display.show(look(admin, under_way) if under_way else {})
                if not under_way:
                    return True
                if asked.to_end:
                    return False
                time.sleep(POLL_S)
        finally:
            display.close()


class Lines:
    """Where nobody watches: a line for each partition that ended, and for each broker that is waited for."""

    def __init__(self, partitions: Iterable[TopicPartition]) -> None:
        self._left = dict.fromkeys(partitions)
        self._count = len(self._left)
        self._missed: set[int] = set()

    def show(self, progress: Mapping[TopicPartition, Progress]) -> None:
        for partition in [partition for partition in self._left if partition not in progress]:
            del self._left[partition]
            note(f"{name(partition)}: ended ({self._count - len(self._left)} of {self._count})")
        for broker in sorted({broker for one in progress.values() for broker in one.missing} - self._missed):
            self._missed.add(broker)
            note(f"broker {broker} is not alive; partitions that move to it wait")

    def close(self) -> None:
        pass


class Bars:
    """On a terminal: one bar for all, and one for each of the first partitions that are under way."""

    def __init__(self, partitions: Iterable[TopicPartition]) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, TextColumn, TransferSpeedColumn
        from rich.progress import Progress as RichProgress

        self._bars = RichProgress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[percent]:>3}%"),
            DownloadColumn(),
            TransferSpeedColumn(),
            TextColumn("{task.fields[remark]}"),
            console=Console(stderr=True),
        )
        self._seen: dict[TopicPartition, Progress] = {}
        self._count = len(list(partitions))
        self._sum = self._bars.add_task("all", total=None, percent=0, remark="")
        self._of: dict[TopicPartition, TaskID] = {}
        self._bars.start()

    def show(self, progress: Mapping[TopicPartition, Progress]) -> None:
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
        together = Progress(copied, sum(one.total_bytes for one in self._seen.values()))
        self._update(self._sum, together, f"{self._count - len(progress)} of {self._count} partitions", not progress)

    def _update(self, task: TaskID, one: Progress, remark: str, whole: bool = False) -> None:
        percent = 100 if whole else one.percent
        total = max(one.total_bytes, 1)
        self._bars.update(
            task, total=total, completed=total if whole else one.copied_bytes, percent=percent, remark=remark
        )

    def close(self) -> None:
        self._bars.stop()


def _remark(one: Progress) -> str:
    return f"waits for broker {', '.join(map(str, one.missing))}, not alive" if one.missing else ""
