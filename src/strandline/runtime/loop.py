"""The event loop of a real node: uvloop where it exists, asyncio's own otherwise."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import TypeVar

try:
    import uvloop
except ImportError:
    _new_loop: Callable[[], asyncio.AbstractEventLoop] | None = None
else:
    _new_loop = uvloop.new_event_loop

T = TypeVar("T")


def run(main: Coroutine[object, None, T]) -> T:
    """Run a node's main coroutine to its end; what it left behind is cancelled and awaited."""
    with asyncio.Runner(loop_factory=_new_loop) as runner:
        return runner.run(main)
