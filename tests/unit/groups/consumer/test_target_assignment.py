from __future__ import annotations

import pytest

from strandline.groups.consumer.group import ConsumerGroup
from strandline.groups.consumer.target_assignment import may_compute


@pytest.mark.parametrize(
    ("last_ms", "interval_ms", "now_ms", "may"),
    [
        (0, 1000, 1, True),
        (5000, 0, 5000, True),
        (5000, 1000, 5999, False),
        (5000, 1000, 6000, True),
        (5000, 1000, 4999, True),  # by the clock of another coordinator, which was ahead
    ],
)
def test_when_a_target_may_be_computed(last_ms: int, interval_ms: int, now_ms: int, may: bool) -> None:
    group = ConsumerGroup("g")
    group.assignment_timestamp_ms = last_ms
    assert may_compute(group, interval_ms, now_ms) is may
