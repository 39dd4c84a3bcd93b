"""Snapshots of the metadata: when one is taken, and when old ones and the log before them are deleted.

A snapshot is taken when enough new records are committed, or when some are and the last one is old. Old snapshots are deleted,
and with them the log up to the next one, when they take too much space or are too old.

Always true: a snapshot holds committed records only; the latest one stays; the log begins at 0 or where a snapshot ends
(rule D11).
"""

from __future__ import annotations

import asyncio
from functools import partial

from strandline.config.node import NodeConfig
from strandline.metadata import snapshot as layout
from strandline.node.logger import Logger
from strandline.node.quorum.descriptor_retry import offload_with_retry
from strandline.node.quorum.images import Images
from strandline.node.quorum.metadata_log import MetadataLog
from strandline.node.quorum.snapshots import Snapshots
from strandline.node.tasks import to_the_end
from strandline.ports import Clock, Disk
from strandline.raft.control_records import voters_record
from strandline.raft.messages import OffsetAndEpoch
from strandline.wire.messages import decode_data

CLEAN_INTERVAL_S = 60.0
"""How often to look whether a snapshot has become too old."""


class SnapshotGenerator:
    def __init__(
        self,
        config: NodeConfig,
        disk: Disk,
        clock: Clock,
        logger: Logger,
        log: MetadataLog,
        snapshots: Snapshots,
        images: Images,
    ) -> None:
        self._config = config
        self._disk = disk
        self._clock = clock
        self._logger = logger
        self._log = log
        self._snapshots = snapshots
        self._images = images
        self._due = asyncio.Event()
        self._taken_at = clock.monotonic()

    def note_committed(self) -> None:
        """There is a newer image: perhaps it is time."""
        if self._images.unsaved_bytes >= self._config.metadata_log_max_record_bytes_between_snapshots:
            self._due.set()

    async def run(self) -> None:
        """For as long as the node lives. An OSError ends it."""
        while True:
            await self._wait()
            if self._due.is_set() or self._is_old():
                self._due.clear()
                await to_the_end(self.take())
            await to_the_end(self.clean())

    async def _wait(self) -> None:
        interval_s = self._config.metadata_log_max_snapshot_interval_ms / 1000
        left_s = self._taken_at + interval_s - self._clock.monotonic() if interval_s else CLEAN_INTERVAL_S
        try:
            async with asyncio.timeout(min(max(left_s, 1.0), CLEAN_INTERVAL_S)):
                await self._due.wait()
        except TimeoutError:
            pass

    def _is_old(self) -> bool:
        interval_s = self._config.metadata_log_max_snapshot_interval_ms / 1000
        return bool(interval_s) and self._clock.monotonic() - self._taken_at >= interval_s

    async def take(self) -> OffsetAndEpoch | None:
        """Write a snapshot of the committed image, if there is anything new in it."""
        self._taken_at = self._clock.monotonic()
        images, image = self._images, self._images.committed
        snapshot_id = OffsetAndEpoch(image.end_offset, image.epoch)
        latest = self._snapshots.latest
        if snapshot_id.offset <= (latest.offset if latest is not None else 0):
            return None
        unsaved_bytes = images.unsaved_bytes
        write = partial(
            layout.write,
            image,
            snapshot_id,
            kraft_version=images.kraft_version,
            voters=None if images.voters is None else decode_data("VotersRecord", 0, voters_record(images.voters)[1]),
            timestamp_ms=images.timestamp_ms,
        )
        size = await offload_with_retry(
            self._disk, lambda: self._snapshots.write(snapshot_id, write()), self._log.directory, self._logger
        )
        self._snapshots.add(snapshot_id, size)
        images.unsaved_bytes = max(0, images.unsaved_bytes - unsaved_bytes)
        self._logger.info("metadata snapshot", end_offset=snapshot_id.offset, epoch=snapshot_id.epoch, size_bytes=size)
        return snapshot_id

    async def clean(self) -> None:
        """Remove what is too old or too much, and let the log begin at the oldest snapshot that stays."""
        ids = self._snapshots.ids
        gone = 0
        while gone < len(ids) - 1 and self._may_go(ids, gone):
            gone += 1
        if not gone:
            return
        doomed = [self._snapshots.forget(snapshot_id) for snapshot_id in ids[:gone]]
        log = self._log.log
        # Everything up to the end of a snapshot is committed, so the log reaches there.
        log.advance_start(max(log.log_start_offset, ids[gone].offset))
        below = sum(following.base_offset <= log.log_start_offset for following in log.segments[1:])
        if below:
            doomed += log.drop_segments(below, self._clock.wall_ms())

        def work() -> None:
            for path in doomed:
                self._disk.remove(path)

        await self._disk.offload(work, self._log.directory)

    def _may_go(self, ids: list[OffsetAndEpoch], gone: int) -> bool:
        """Whether the oldest of those that are left is one too many."""
        config, oldest = self._config, ids[gone]
        if oldest.offset < self._log.start_offset:
            return True  # the log began anew with a later one that was fetched
        if config.metadata_max_retention_ms >= 0 and (
            self._snapshots.age_ms(oldest, self._clock.wall_ms()) > config.metadata_max_retention_ms
        ):
            return True
        if config.metadata_max_retention_bytes < 0:
            return False
        kept_bytes = sum(self._snapshots.size(snapshot_id) or 0 for snapshot_id in ids[gone:])
        return self._log.log.bytes_after(oldest.offset) + kept_bytes > config.metadata_max_retention_bytes
