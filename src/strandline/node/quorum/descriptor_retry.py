"""Work on the metadata log dir that waits for a descriptor when there is none, instead of ending the node (SEC-L5).

Always true: only work that can begin again from its start is given to it: it replaces a whole file, or it changed nothing yet.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from strandline.node.logger import Logger
from strandline.ports import Disk, is_out_of_handles

T = TypeVar("T")
RETRY_S = 0.1


async def offload_with_retry(disk: Disk, work: Callable[[], T], path: str, logger: Logger) -> T:
    """As `Disk.offload`, tried again for as long as no descriptor is left."""
    is_first = True
    while True:
        try:
            return await disk.offload(work, path)
        except OSError as error:
            if not is_out_of_handles(error):
                raise
            if is_first:
                is_first = False
                logger.warning(
                    "no descriptor is left: raise the limit of open files (ulimit -n)", path=path, error=str(error)
                )
            await asyncio.sleep(RETRY_S)
