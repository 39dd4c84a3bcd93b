"""How long to wait before trying again."""

# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

import random

from strandline.client.core.backoff import Backoff, delay_s


def test_it_doubles_within_its_jitter_up_to_the_maximum():
    chance, backoff = random.Random(1), Backoff(100, 1000)
    assert delay_s(backoff, 0, chance) == 0
    for failures, nominal_ms in ((1, 100), (2, 200), (3, 400), (4, 800)):
        delays = [delay_s(backoff, failures, chance) * 1000 for _ in range(200)]
        assert nominal_ms * 0.8 <= min(delays) < nominal_ms < max(delays) <= min(1000, nominal_ms * 1.2)
    assert all(0.8 <= delay_s(backoff, 10_000, chance) <= 1 for _ in range(200))
