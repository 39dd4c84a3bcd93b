"""The cleaner: keeps the last value of each key in logs that are compacted.

Of all logs that are due the filthiest comes first. What is read and written anew happens in a niced process of its own;
here the result is only put in place, in the midst of readers and writers.

Always true: a log is cleaned by one process at a time, and no longer than it stays what it was when that began: a
truncation, a deletion or a log dir that fails ends it first, process and all. While no log is compacted nothing is
looked at, and no process is there. A log that can't be cleaned is left alone until the node starts again, and counted.
"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from strandline.config.node import NodeConfig
from strandline.log.compaction.job import CleaningResult, CleanJob, discard, run
from strandline.log.compaction.planning import CleaningPlan, plan
from strandline.log.compaction.swapping import Overtaken, swap
from strandline.log.errors import CorruptBatch, CorruptLog
from strandline.metadata.image import MetadataImage
from strandline.node.clean_offsets import CleanOffsets
from strandline.node.log_dirs import LogDir
from strandline.node.log_effects import perform
from strandline.node.logger import Logger
from strandline.node.replicas import Replicas
from strandline.node.tasks import to_the_end
from strandline.ports import Clock, Disk, WorkLost
from strandline.replica.partition import Partition

KEY_BYTES = 200
"""So much memory a key takes while its log is cleaned, about."""
BACKOFF_MIN_S = 0.01
"""`log.cleaner.backoff.ms=0` means soon, not without end."""
LOSSES_MAX = 3
"""So often the process may end in the middle of a log, or not find its files, one time after the other; then it is the
log."""
PAUSE_MAX_S = 3600.0
"""A log that fails is tried again after the backoff, then twice that and so on, and at last once in this time."""
NO_ROOM = (errno.ENOSPC, errno.EDQUOT)


class Settings(NamedTuple):
    """What the configuration says now, by Kafka's names."""

    log_cleaner_enable: bool
    log_cleaner_threads: int
    log_cleaner_io_max_bytes_per_second: float
    log_cleaner_dedupe_buffer_size: int

    @classmethod
    def of(cls, config: NodeConfig) -> Settings:
        return cls._make(config.layers.broker_value(name.replace("_", ".")) for name in cls._fields)

    @property
    def bytes_per_second(self) -> float:
        """What one cleaning may take of the limit for all of them."""
        return self.log_cleaner_io_max_bytes_per_second / max(1, self.log_cleaner_threads)

    @property
    def keys_max(self) -> int:
        """What one cleaning can hold in its share of the memory."""
        return max(1, self.log_cleaner_dedupe_buffer_size // max(1, self.log_cleaner_threads) // KEY_BYTES)


@dataclass(slots=True)
class CleanerStats:
    """Since the node started, or as of the last look at the logs."""

    looked_at_ms: int = 0
    """On the wall clock; 0 if no log was compacted yet."""
    max_dirty_ratio: float = 0.0
    max_overdue_s: float = 0.0
    """By how much a log has passed its `max.compaction.lag.ms`, at most."""
    cleanings: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    last_recopy_ratio: float = 0.0
    """Bytes that the last cleaning wrote, of those that it read."""
    last_clean_s: float = 0.0


@dataclass(slots=True, eq=False)
class _Cleaning:
    partition: Partition
    log_dir: LogDir
    job: CleanJob
    task: asyncio.Task[None]
    given_up: str = ""
    """Why."""

    def give_up(self, reason: str) -> None:
        """Its process is gone when its task is over."""
        if not self.given_up:
            self.given_up = reason
            self.task.cancel()


class Cleaner:
    def __init__(
        self,
        replicas: Replicas,
        disk: Disk,
        clock: Clock,
        logger: Logger,
        on_task_ended: Callable[[asyncio.Task[None]], None],
    ) -> None:
        self.stats = CleanerStats()
        self.uncleanable: dict[Partition, LogDir] = {}
        self._replicas = replicas
        self._disk = disk
        self._clock = clock
        self._logger = logger
        self._on_task_ended = on_task_ended
        self._offsets = CleanOffsets(disk, replicas.log_dirs)
        self._cleanings: dict[Partition, _Cleaning] = {}
        self._not_before: dict[Partition, float] = {}
        """Those that failed, and when they may be tried again."""
        self._failures: dict[Partition, int] = {}
        """One time after the other."""
        self._changed = asyncio.Event()
        self._is_stopping = False
        self._image = MetadataImage()

    # When

    def applied(self, image: MetadataImage) -> None:
        """The node does what this image says: there may be something to compact now."""
        before, self._image = self._image, image
        if before.topics is not image.topics or before.configs is not image.configs:
            self._changed.set()

    @property
    def is_busy(self) -> bool:
        """Some log is being cleaned."""
        return bool(self._cleanings)

    def is_cleaning(self, partition: Partition) -> bool:
        return partition in self._cleanings

    async def run(self) -> None:
        """Until it is cancelled."""
        if not self._settings.log_cleaner_enable:
            self._logger.warning("log.cleaner.enable=false: compacted topics only grow")
            return
        try:
            while True:
                await self._changed.wait()
                while (compacted := self._compacted()) or self._cleanings:
                    self._give_up_void()
                    self._start_due(compacted)
                    await self._pause()
                self._changed.clear()
                self.stats.max_dirty_ratio = self.stats.max_overdue_s = 0.0
        finally:
            self._is_stopping = True
            await self._give_up(self._cleanings, "the node stops")

    async def _pause(self) -> None:
        """Until there may be something to do: a cleaning has ended, or `log.cleaner.backoff.ms` is over."""
        if tasks := [cleaning.task for cleaning in self._cleanings.values()]:
            await asyncio.wait(tasks, timeout=self._backoff_s, return_when=asyncio.FIRST_COMPLETED)
        else:
            await asyncio.sleep(self._backoff_s)

    @property
    def _settings(self) -> Settings:
        return Settings.of(self._replicas.config)

    @property
    def _backoff_s(self) -> float:
        return max(self._replicas.config.log_cleaner_backoff_ms / 1000, BACKOFF_MIN_S)

    # What

    def _compacted(self) -> list[tuple[Partition, LogDir]]:
        return [(partition, log_dir) for partition, log_dir in self._replicas.online() if partition.log.config.compact]

    def _start_due(self, compacted: list[tuple[Partition, LogDir]]) -> None:
        """Begin with the filthiest, as many as may be cleaned at a time."""
        settings = self._settings
        due = sorted(self._due(compacted, settings.keys_max), key=lambda one: one[0].dirty_ratio, reverse=True)
        for planned, partition, log_dir in due[: max(0, settings.log_cleaner_threads - len(self._cleanings))]:
            assert planned.job is not None
            task = asyncio.get_running_loop().create_task(self._clean(partition))
            task.add_done_callback(self._on_task_ended)
            task.add_done_callback(partial(self._ended, partition))  # also one that was cancelled before it began
            self._cleanings[partition] = _Cleaning(partition, log_dir, planned.job, task)

    def _due(
        self, compacted: list[tuple[Partition, LogDir]], keys_max: int
    ) -> list[tuple[CleaningPlan, Partition, LogDir]]:
        now, now_ms = self._clock.monotonic(), self._clock.wall_ms()
        stats = self.stats
        stats.looked_at_ms, stats.max_dirty_ratio, stats.max_overdue_s = now_ms, 0.0, 0.0
        due = []
        for partition, log_dir in compacted:
            if partition in self._cleanings or partition in self.uncleanable:
                continue
            active = partition.log.segments.active
            try:
                planned = plan(
                    partition.log,
                    self._offsets.get(partition, log_dir),
                    partition.last_stable_offset,
                    now_ms,
                    offset_map_entries_max=keys_max,
                )
            except OSError as error:
                self._replicas.storage_error(partition, error)
                continue
            except CorruptLog as error:
                self._leave_alone(partition, log_dir, error)
                continue
            if partition.log.segments.active is not active:  # it was rolled, so that it can be cleaned
                self._replicas.flush_due(partition)
            if planned.is_clamped:
                self._offsets.put(partition, log_dir, planned.first_dirty_offset)
            stats.max_dirty_ratio = max(stats.max_dirty_ratio, planned.dirty_ratio)
            stats.max_overdue_s = max(stats.max_overdue_s, planned.overdue_ms / 1000)
            if planned.job is not None and self._not_before.get(partition, now) <= now:
                due.append((planned, partition, log_dir))
        return due

    # How

    async def _clean(self, partition: Partition) -> None:
        cleaning = self._cleanings[partition]
        began = self._clock.monotonic()
        try:
            await self._make_durable(cleaning)
            cleaned = await self._disk.offload_niced(run, cleaning.job, self._settings.bytes_per_second)
        except asyncio.CancelledError:
            self._logger.info("cleaning given up", partition=str(partition), reason=cleaning.given_up)
            await self._clear_away(cleaning)
        except Exception as error:
            self._failed(cleaning, error)
            await self._clear_away(cleaning)
        else:
            await to_the_end(self._put_in_place(cleaning, cleaned, began))

    async def _make_durable(self, cleaning: _Cleaning) -> None:
        """Have the recovery point that a restart reads above all that is cleaned: a gap above it is then a tail that
        was lost."""
        log = cleaning.partition.log
        if log.recovery_point < cleaning.job.end_offset:
            try:
                await perform(log.flush())
            except OSError as error:
                self._replicas.storage_error(cleaning.partition, error)
                raise
        await self._replicas.checkpoint(cleaning.log_dir)

    def _ended(self, partition: Partition, _: object) -> None:
        del self._cleanings[partition]

    async def _put_in_place(self, cleaning: _Cleaning, cleaned: CleaningResult, began: float) -> None:
        partition = cleaning.partition
        try:
            doomed = await perform(swap(partition.log, cleaning.job, cleaned))
        except Overtaken as overtaken:
            doomed = overtaken.doomed
            self._logger.info("cleaning given up", partition=str(partition), reason=overtaken.reason)
        except OSError as error:
            # Some files may have their new names and some not: only a restart sets that right, even where there is no
            # room.
            self._replicas.storage_error(partition, error)
            return
        else:
            self._offsets.put(partition, cleaning.log_dir, cleaned.end_offset)
            self._count(cleaning, cleaned, self._clock.monotonic() - began)
        for path in doomed:
            self._replicas.remove_later(path, partition.log.config.file_delete_delay_ms)
        await self._write_offsets()

    def _count(self, cleaning: _Cleaning, cleaned: CleaningResult, seconds: float) -> None:
        stats = self.stats
        stats.cleanings += 1
        stats.bytes_read += cleaned.bytes_read
        stats.bytes_written += cleaned.bytes_written
        stats.last_recopy_ratio = cleaned.bytes_written / cleaned.bytes_read if cleaned.bytes_read else 0.0
        stats.last_clean_s = seconds
        self._failures.pop(cleaning.partition, None)
        self._replicas.dependencies.note(
            "compacted",
            cleaning.partition,
            f"of {cleaned.records_read} records below {cleaned.end_offset} there are {cleaned.records_written} left",
            first_dirty_offset=cleaning.job.first_dirty_offset,
            end_offset=cleaned.end_offset,
            records_read=cleaned.records_read,
            records_written=cleaned.records_written,
            bytes_read=cleaned.bytes_read,
            bytes_written=cleaned.bytes_written,
            seconds=round(seconds, 3),
        )

    def _failed(self, cleaning: _Cleaning, error: Exception) -> None:
        partition = cleaning.partition
        self._failures[partition] = failures = self._failures.get(partition, 0) + 1
        pause_s = min(self._backoff_s * 2.0 ** min(failures - 1, 30), PAUSE_MAX_S)
        self._not_before[partition] = self._clock.monotonic() + pause_s
        if isinstance(error, WorkLost | FileNotFoundError):
            if failures < LOSSES_MAX:
                self._logger.warning("cleaning was cut short", partition=str(partition), error=str(error))
                return
        elif isinstance(error, OSError):
            if error.errno in NO_ROOM:
                self._logger.warning("no room to clean a log", partition=str(partition), error=str(error))
            else:
                self._replicas.storage_error(partition, error)
            return
        elif isinstance(error, CorruptBatch):
            self._replicas.signals.damaged(partition, error)  # other replicas may have it
            return
        self._leave_alone(partition, cleaning.log_dir, error)

    def _leave_alone(self, partition: Partition, log_dir: LogDir, error: Exception) -> None:
        self.uncleanable[partition] = log_dir
        self._logger.error(
            "log can't be cleaned and is left alone until a restart",
            partition=str(partition),
            error=f"{type(error).__name__}: {error}",
        )

    # Giving up

    async def _clear_away(self, cleaning: _Cleaning) -> None:
        """Remove what was written, unless all of the log goes, or the next start does it."""
        partition = cleaning.partition
        if not (partition.gone or partition.offline or self._is_stopping):
            try:
                await to_the_end(
                    self._disk.offload(partial(discard, self._disk, cleaning.job.directory), cleaning.job.directory)
                )
            except OSError as error:
                self._replicas.storage_error(partition, error)

    def truncated(self, partition: Partition) -> None:
        """Its end was cut: it is clean no further than that, and what is read of it right now may be something else by
        now."""
        self._offsets.lower(partition, partition.log.log_end_offset)
        if (cleaning := self._cleanings.get(partition)) is not None:
            cleaning.give_up("the log was truncated")

    def _give_up_void(self) -> None:
        """Those whose result is of no use any more."""
        for partition, cleaning in self._cleanings.items():
            if partition.offline:
                cleaning.give_up("the log dir is offline")
            elif not partition.log.config.compact:
                cleaning.give_up("the topic is not compacted any more")

    async def dropping(self, partitions: Iterable[Partition]) -> None:
        """They leave this node: nothing may be written into their directories any more, which get other names now."""
        await self._give_up([one for one in partitions if one in self._cleanings], "the partition is not here any more")
        for partition in partitions:
            self._offsets.forget(partition)
            self._not_before.pop(partition, None)
            self._failures.pop(partition, None)
            self.uncleanable.pop(partition, None)
        await self._write_offsets()

    async def _give_up(self, partitions: Iterable[Partition], reason: str) -> None:
        """Returns when their processes are gone."""
        cleanings = [self._cleanings[partition] for partition in partitions]
        for cleaning in cleanings:
            cleaning.give_up(reason)
        if cleanings:
            await asyncio.wait([cleaning.task for cleaning in cleanings])

    async def _write_offsets(self) -> None:
        for log_dir, error in await self._offsets.write():
            self._replicas.dir_failed(log_dir, error)
