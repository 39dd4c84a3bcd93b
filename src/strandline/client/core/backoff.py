"""How long to wait before trying again: exponential, with jitter so that clients do not come back all at once.

Always true: the wait is within 20 % of its nominal length, and never longer than the maximum.
"""

from __future__ import annotations

import random
from typing import NamedTuple

JITTER = 0.2


class Backoff(NamedTuple):
    """retry.backoff.ms and retry.backoff.max.ms, or their reconnect equivalents."""

    initial_ms: int
    max_ms: int


RETRY = Backoff(100, 1000)
RECONNECT = Backoff(50, 1000)


def delay_s(backoff: Backoff, failures: int, randomness: random.Random) -> float:
    """Seconds to wait after so many failures in a row; none after none."""
    if failures <= 0:
        return 0.0
    # The exponent is bounded so that a client that failed for days does not compute a huge power.
    nominal_ms = backoff.initial_ms * 2.0 ** min(failures - 1, 30)
    jittered_ms = min(nominal_ms, backoff.max_ms) * (1 + JITTER * (2 * randomness.random() - 1))
    return min(jittered_ms, backoff.max_ms) / 1000
