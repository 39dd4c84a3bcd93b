"""The offset checkpoints of a log dir, as Kafka keeps them: how far each of its replicas is written, read and flushed.

`replication-offset-checkpoint` has the high watermarks, `recovery-point-offset-checkpoint` what is on the device,
`log-start-offset-checkpoint` where a log starts inside its first segment.

Always true: a file is replaced as a whole; two writers of one log dir never meet.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from functools import partial

from strandline.ids import TopicPartition
from strandline.log import checkpoints
from strandline.ports import Disk
from strandline.replica.partition import Partition


class OffsetCheckpoints:
    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._writing: dict[str, asyncio.Lock] = {}
        """By log dir: one whose device is slow holds up no other."""

    async def write(self, path: str, partitions: Iterable[Partition]) -> None:
        """OSError is the log dir's."""
        async with self._writing.setdefault(path, asyncio.Lock()):
            await self._disk.offload(partial(self._write, path, _offsets(partitions)), path)

    def _write(self, path: str, files: dict[str, dict[TopicPartition, int]]) -> None:
        for name, offsets in files.items():
            checkpoints.write_offsets(self._disk, f"{path}/{name}", offsets)


def _offsets(partitions: Iterable[Partition]) -> dict[str, dict[TopicPartition, int]]:
    """Plain numbers, so that topics may come and go while they are written."""
    by_key = {(p.topic, p.index): p for p in partitions}
    return {
        checkpoints.RECOVERY_POINT_CHECKPOINT: {key: p.log.recovery_point for key, p in by_key.items()},
        checkpoints.LOG_START_OFFSET_CHECKPOINT: {
            key: p.log.log_start_offset
            for key, p in by_key.items()
            if p.log.log_start_offset > p.log.segments[0].base_offset
        },
        checkpoints.REPLICATION_OFFSET_CHECKPOINT: {key: p.high_watermark for key, p in by_key.items()},
    }
