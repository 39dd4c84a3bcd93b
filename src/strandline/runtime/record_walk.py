"""Which walk this process's node uses for produced batches: the one in machine code, made first if the store has none.

Always true: a node starts without waiting for a compiler. It walks in Python until another process has filled the store, and for
good where there is no compiler; numba and LLVM are never imported here.
"""

from __future__ import annotations

import asyncio
import os
import subprocess

from strandline.columnar import compiled_walk
from strandline.columnar.kernels import standalone
from strandline.node.logger import Logger
from strandline.records import walk

SLOWLY = "the records of produced batches are checked in Python, about a microsecond each"


def use_compiled() -> bool:
    """Whether the walk in machine code is in use, now if not before. A few milliseconds."""
    if walk.in_use is walk.PLAIN:
        walker = compiled_walk.load()
        if walker is None:
            return False
        walk.use(walker)
    return True


async def make_compiled(logger: Logger) -> None:
    """Have the store filled by a process of its own, then use what it made."""
    if not compiled_walk.can_be_made():
        logger.info(f"{SLOWLY}: numba is not installed")
        return
    process = await asyncio.create_subprocess_exec(
        *standalone.command(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=standalone.environment(os.environ),
    )
    try:
        _, said = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
    if use_compiled():
        logger.info("the records of produced batches are checked in machine code from now on")
    else:
        lines = said.decode(errors="replace").strip().splitlines() or ["it can't be loaded"]
        logger.warning(f"{SLOWLY}: machine code can't be had ({lines[-1]})")
