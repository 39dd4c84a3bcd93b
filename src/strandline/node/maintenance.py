"""A node's regular work: retention, checkpoints, flushes by time, forgotten producers, removal of what was deleted.

Always true: each job runs on its own interval, one run at a time, and a run that fails takes its log dir offline, not
the job.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from strandline.log import retention
from strandline.log.errors import CorruptLog
from strandline.node.log_dirs import LogDir
from strandline.node.logger import Logger
from strandline.node.replicas import Replicas
from strandline.node.tasks import AsyncWork, to_the_end
from strandline.ports import Clock
from strandline.replica.partition import Partition

TICK_MS = 1000
"""How often to look where no setting says it."""
FOREVER_MS = 2**63 - 1


class Maintenance:
    def __init__(
        self,
        replicas: Replicas,
        clock: Clock,
        logger: Logger,
        is_cleaning: Callable[[Partition], bool] = lambda partition: False,
    ) -> None:
        self._replicas = replicas
        self._is_cleaning = is_cleaning
        self._clock = clock
        self._logger = logger
        self._checkpointed: dict[str, tuple[object, ...]] = {}

    def jobs(self) -> list[AsyncWork[None]]:
        config = self._replicas.config
        checkpoint_ms = min(
            config.replica_high_watermark_checkpoint_interval_ms,
            config.log_flush_offset_checkpoint_interval_ms,
            config.log_flush_start_offset_checkpoint_interval_ms,
        )
        flush_ms = config.log_flush_scheduler_interval_ms
        delay_ms = config.log_initial_task_delay_ms
        return [
            self._every(config.log_retention_check_interval_ms, self.delete_old_segments, delay_ms),
            *(self._every(checkpoint_ms, self._checkpoint_job(log_dir)) for log_dir in self._replicas.log_dirs),
            self._every(TICK_MS if flush_ms == FOREVER_MS else flush_ms, self.flush_by_time, is_due=self._may_flush),
            self._every(TICK_MS, self._replicas.remove_doomed, is_due=self._replicas.has_doomed),
            self._every(config.producer_id_expiration_check_interval_ms, self.forget_producers),
        ]

    async def _every(
        self,
        interval_ms: int,
        job: Callable[[], AsyncWork[None]],
        first_ms: int | None = None,
        is_due: Callable[[], bool] = lambda: True,
    ) -> None:
        await asyncio.sleep((interval_ms if first_ms is None else first_ms) / 1000)
        while True:
            try:
                if is_due():
                    await to_the_end(job())
            except (OSError, CorruptLog) as error:
                self._logger.error("regular work failed", job=job.__name__, error=str(error))
            await asyncio.sleep(interval_ms / 1000)

    async def delete_old_segments(self) -> None:
        """Retention by time, by size, and below the log start. A log that is being cleaned waits: its segments are
        read."""
        now_ms = self._clock.wall_ms()
        for partition, _ in self._replicas.online():
            log = partition.log
            if self._is_cleaning(partition):
                continue
            try:
                count = retention.due(log, partition.high_watermark, now_ms)
                if count:
                    doomed = log.drop_segments(count, now_ms)
                    self._logger.info(
                        "deleted old segments",
                        partition=str(partition),
                        segments=count,
                        log_start_offset=log.log_start_offset,
                    )
                    for path in doomed:
                        self._replicas.remove_later(path, log.config.file_delete_delay_ms)
            except (OSError, CorruptLog) as error:
                self._replicas.storage_error(partition, OSError(str(error)))

    async def write_checkpoints(self) -> None:
        """How far each replica is written, read and flushed, where that changed."""
        for log_dir in self._replicas.log_dirs:
            await self._write_checkpoint(log_dir)

    def _checkpoint_job(self, log_dir: LogDir) -> Callable[[], AsyncWork[None]]:
        """One for each log dir: a device that is slow holds up no other."""

        async def write_checkpoint() -> None:
            await self._write_checkpoint(log_dir)

        return write_checkpoint

    async def _write_checkpoint(self, log_dir: LogDir) -> None:
        state = tuple(
            (p.topic, p.index, p.log.recovery_point, p.log.log_start_offset, p.high_watermark)
            for p in self._replicas.in_dir(log_dir)
        )
        if self._checkpointed.get(log_dir.path) != state:
            await self._replicas.checkpoint(log_dir)
            self._checkpointed[log_dir.path] = state

    def _may_flush(self) -> bool:
        return any(partition.log.config.flush_ms != FOREVER_MS for partition, _ in self._replicas.online())

    async def flush_by_time(self) -> None:
        """`flush.ms`: no record stays longer than that without being on the device."""
        now = self._clock.monotonic()
        for partition, _ in self._replicas.online():
            log, flush_ms = partition.log, partition.log.config.flush_ms
            unflushed = log.log_end_offset > log.recovery_point
            if unflushed and flush_ms != FOREVER_MS and (now - partition.last_flush) * 1000 >= flush_ms:
                self._replicas.flush_due(partition)

    async def forget_producers(self) -> None:
        now_ms, expiration_ms = self._clock.wall_ms(), self._replicas.config.producer_id_expiration_ms
        for partition, _ in self._replicas.online():
            partition.log.producers.expire(now_ms, expiration_ms)
            partition.log.guards.expire(now_ms, expiration_ms)
