"""What server processes have used so far, as Linux counts it.

CPU time covers all threads of a process, in user and kernel mode. Resident memory is what is in RAM now, file mappings included.
"""

from __future__ import annotations

import mmap
import os
import time
from collections.abc import Sequence
from pathlib import Path

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
TICK_S = 1 / TICKS_PER_S
_UTIME, _STIME = 11, 12
"""Places in /proc/PID/stat, counted from the state, which follows the name in brackets."""


def cpu_s(pids: Sequence[int]) -> float:
    """CPU-seconds of these processes together since they started."""
    ticks = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[_UTIME]) + int(fields[_STIME])
    return ticks / TICKS_PER_S


def is_running(pid: int) -> bool:
    """Whether this process still runs; one that ended and waits for its parent to notice does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def resident_mb(pids: Sequence[int]) -> float:
    """Resident memory of these processes together, in MiB."""
    lines = (line for pid in pids for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return sum(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")) / 1024


QUIET_FOR_S = 0.3
QUIET_SHARE = 0.1
QUIET_WITHIN_S = 10.0


def settle(pids: Sequence[int]) -> None:
    """Wait until the device has what was written and none of these processes is busy, so that no load pays for another.

    A JVM compiles and collects for a while after a load, and the kernel writes back; both would be counted against whoever
    comes next.
    """
    os.sync()
    deadline = time.monotonic() + QUIET_WITHIN_S
    while time.monotonic() < deadline:
        before = cpu_s(pids)
        time.sleep(QUIET_FOR_S)
        if cpu_s(pids) - before <= QUIET_SHARE * QUIET_FOR_S:
            break
    _touch_memory()


WARM_BYTES = 1 << 30


def _touch_memory() -> None:
    """Have as much free memory behind the next load as it will write to the page cache.

    A virtual machine gives free pages back to its host, and the first write to a page it has to ask for costs the writer ten times
    as much. Who pays for that would otherwise be a matter of luck.
    """
    with mmap.mmap(-1, WARM_BYTES) as memory:
        block = bytes(1 << 20)
        for at in range(0, WARM_BYTES, len(block)):
            memory[at : at + len(block)] = block
