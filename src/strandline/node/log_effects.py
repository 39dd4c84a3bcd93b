"""Work on a log, performed: its effects are awaited one after the other.

Always true: the work goes on in the same turn of the event loop in which its effect ended; an error of an effect, or a
cancellation during it, is raised inside the work, which gives up what it held.
"""

from __future__ import annotations

from typing import TypeVar

from strandline.log.effects import LogWork, SyncFile

T = TypeVar("T")


async def perform(work: LogWork[T]) -> T:
    try:
        effect = next(work)
        while True:
            try:
                result: object = None
                if isinstance(effect, SyncFile):
                    await effect.file.sync()
                else:
                    result = await effect.disk.offload(effect.work, effect.path)
            except BaseException as error:
                effect = work.throw(error)
            else:
                effect = work.send(result)
    except StopIteration as stop:
        value: T = stop.value
        return value
