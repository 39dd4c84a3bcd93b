"""Bytes that are not in memory: read beside the event loop, then the read that needed them is tried again.

Always true: only what is still part of a log is read, and it stays open meanwhile: retention or a deleted topic may have taken the
file away since the read began.
"""

from __future__ import annotations

from collections.abc import Iterable

from strandline.api.context import NodeContext
from strandline.log.errors import NotCached
from strandline.replica.partition import Partition


async def warm(node: NodeContext, partitions: Iterable[Partition], cold: NotCached) -> bool:
    """Read what is cold, which belongs to one of these partitions, if it is still there; False if its log dir failed."""
    for partition in partitions:
        log = partition.log
        if not partition.gone and log.has_segment(cold.file):
            try:
                with log.held():
                    await node.disk.offload(cold.warm, log.directory)
            except OSError as error:
                node.hosted.storage_failed(partition, error)
                return False
            break
    return True
