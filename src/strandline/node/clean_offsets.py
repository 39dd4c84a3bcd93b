"""How far the logs of a node were cleaned: Kafka's `cleaner-offset-checkpoint`, one file in each log dir.

Always true: nothing says that a log is clean where it is not: an offset is raised once the cleaned segments are in
place, and lowered when the log is truncated below it or is another one. A file is replaced as a whole; two writers
never meet.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial

from strandline.log import checkpoints
from strandline.node.log_dirs import LogDir
from strandline.ports import Disk
from strandline.replica.partition import Partition


class CleanOffsets:
    def __init__(self, disk: Disk, log_dirs: Sequence[LogDir]) -> None:
        self._disk = disk
        self._log_dirs = log_dirs
        self._changed: dict[str, LogDir] = {}
        self._writing = asyncio.Lock()

    def get(self, partition: Partition, log_dir: LogDir) -> int | None:
        return log_dir.clean_offsets.get((partition.topic, partition.index))

    def put(self, partition: Partition, log_dir: LogDir, offset: int) -> None:
        log_dir.clean_offsets[partition.topic, partition.index] = offset
        self._changed[log_dir.path] = log_dir

    def lower(self, partition: Partition, end_offset: int) -> None:
        """The log ends there now."""
        for log_dir in self._log_dirs:
            offset = self.get(partition, log_dir)
            if offset is not None and offset > end_offset:
                self.put(partition, log_dir, end_offset)

    def forget(self, partition: Partition) -> None:
        for log_dir in self._log_dirs:
            if log_dir.clean_offsets.pop((partition.topic, partition.index), None) is not None:
                self._changed[log_dir.path] = log_dir

    async def write(self) -> list[tuple[LogDir, OSError]]:
        """Write down what changed; the log dirs where that failed."""
        failed = []
        async with self._writing:
            while self._changed:
                path, log_dir = self._changed.popitem()
                if log_dir.online:
                    offsets = dict(log_dir.clean_offsets)
                    try:
                        await self._disk.offload(
                            partial(
                                checkpoints.write_offsets,
                                self._disk,
                                f"{path}/{checkpoints.CLEANER_OFFSET_CHECKPOINT}",
                                offsets,
                            ),
                            path,
                        )
                    except OSError as error:
                        failed.append((log_dir, error))
        return failed
