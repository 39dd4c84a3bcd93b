"""The system's clocks.

Always true: `monotonic` is the clock the event loop's timers run on, so the two can be compared.
"""

from __future__ import annotations

import time


class SystemClock:
    monotonic = staticmethod(time.monotonic)

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000
