"""What server processes have used so far, as Linux counts it.

CPU time covers all threads of a process, in user and kernel mode. Resident memory is what is in RAM now, file mappings included.
Always true: the processes that a server started count as its own, with the memory that they do not share with it.
"""

from __future__ import annotations

import mmap
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
TICK_S = 1 / TICKS_PER_S
_UTIME, _STIME = 11, 12
"""Places in /proc/PID/stat, counted from the state, which follows the name in brackets."""


def cpu_s(pids: Sequence[int]) -> float:
    """CPU-seconds of these processes and their children together since they started."""
    ticks = 0
    for pid in pids:
        for each in (pid, *_children(pid)):
            fields = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[_UTIME]) + int(fields[_STIME])
    return ticks / TICKS_PER_S


def is_running(pid: int) -> bool:
    """Whether this process still runs; one that ended and waits for its parent to notice does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def resident_mb(pids: Sequence[int]) -> float:
    """Resident memory of these processes and their children together, in MiB."""
    own = sum(_kilobytes(f"/proc/{pid}/status", "VmRSS:") for pid in pids)
    children = (child for pid in pids for child in _children(pid))
    return (own + sum(_kilobytes(f"/proc/{child}/smaps_rollup", "Private_") for child in children)) / 1024


def _children(pid: int) -> Iterator[int]:
    for file in Path(f"/proc/{pid}/task").glob("*/children"):
        yield from map(int, file.read_text().split())


def _kilobytes(file: str, prefix: str) -> int:
    """The sum of the lines that begin so."""
    return sum(int(line.split()[1]) for line in Path(file).read_text().splitlines() if line.startswith(prefix))


QUIET_FOR_S = 0.3
QUIET_SHARE = 0.1
QUIET_WITHIN_S = 10.0


def settle(pids: Sequence[int], load_bytes: int = 0) -> None:
    """Wait until the device has what was written and none of these processes is busy, so that no load pays for another.

    A JVM compiles and collects for a while after a load, and the kernel writes back; both would be counted against the
    contender that comes next. `load_bytes` is what the next load will have written, replicas included.
    """
    os.sync()
    deadline = time.monotonic() + QUIET_WITHIN_S
    while time.monotonic() < deadline:
        before = cpu_s(pids)
        time.sleep(QUIET_FOR_S)
        if cpu_s(pids) - before <= QUIET_SHARE * QUIET_FOR_S:
            break
    _touch_memory(max(load_bytes + load_bytes // 4, WARM_BYTES))


WARM_BYTES, WARM_BYTES_MAX = 1 << 30, 4 << 30
BLOCK_BYTES = 1 << 20


def _touch_memory(size: int) -> None:
    """Have as much free memory behind the next load as it will write to the page cache.

    A virtual machine gives free pages back to its host, and the first write to a page it has to ask for costs the writer ten times
    as much. Who pays for that would otherwise be a matter of luck.
    """
    size = min(size, WARM_BYTES_MAX) & ~(BLOCK_BYTES - 1)
    with mmap.mmap(-1, size) as memory:
        block = bytes(BLOCK_BYTES)
        for at in range(0, size, BLOCK_BYTES):
            memory[at : at + BLOCK_BYTES] = block
