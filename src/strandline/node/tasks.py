"""Work that must not be cut off in the middle.

Always true: what was handed to a worker thread goes on when its task is cancelled, so the code that cancels must wait
for it, or two of them will write the same file.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from functools import partial
from typing import Any, TypeAlias, TypeVar

T = TypeVar("T")

AsyncWork: TypeAlias = Coroutine[Any, Any, T]
"""What an async function returns, before it is awaited: a job of the node, as `AsyncWork[None]`."""


async def to_the_end(work: AsyncWork[T]) -> T:
    """Await `work`. If we are cancelled meanwhile, it ends first, and its own error counts for more than the
    cancellation."""
    loop = asyncio.get_running_loop()
    task, ended = loop.create_task(work), loop.create_future()
    task.add_done_callback(partial(_tell, ended))
    try:
        await ended
    except asyncio.CancelledError:
        if not task.cancelled():
            await task
        raise
    return task.result()


def _tell(ended: asyncio.Future[None], _: object) -> None:
    if not ended.done():
        ended.set_result(None)
