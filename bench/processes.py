"""What server processes have used so far, as Linux counts it.

CPU time covers all threads of a process, in user and kernel mode. Resident memory is what is in RAM now, file mappings included.
"""

from __future__ import annotations

import os
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


def resident_mb(pids: Sequence[int]) -> float:
    """Resident memory of these processes together, in MiB."""
    lines = (line for pid in pids for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return sum(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")) / 1024
