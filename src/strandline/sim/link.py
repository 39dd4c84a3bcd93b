"""How long bytes take from one host to another.

Always true: a latency is at least the link's own; all randomness comes from the generator that is passed in.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass


@dataclass(frozen=True)
class NetworkLink:
    """How one host reaches another: a least latency, an exponential tail, now and then a long delay, a bandwidth."""

    latency_s: float = 0.0002
    jitter_s: float = 0.0003
    spike_probability: float = 0.002
    spike_s_max: float = 0.2
    bytes_per_s: float | None = None

    def draw_latency(self, randomness: random.Random) -> float:
        latency = self.latency_s - self.jitter_s * math.log(1.0 - randomness.random())
        if self.spike_probability and randomness.random() < self.spike_probability:
            latency += randomness.uniform(0, self.spike_s_max)
        return latency


OWN_HOST = NetworkLink(latency_s=0.00001, jitter_s=0.00001, spike_probability=0.0)
