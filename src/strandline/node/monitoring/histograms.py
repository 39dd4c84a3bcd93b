"""Buckets of times as Prometheus wants them.

Always true: each bucket counts all that is in the ones before it, and the last one everything.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from strandline.node.observation.requests import BOUNDS_S


def cumulative(buckets: Sequence[int]) -> Iterator[tuple[str, int]]:
    """Each bucket with what all before it hold, by its upper end in milliseconds."""
    count = 0
    for bound_s, in_bucket in zip((*BOUNDS_S, float("inf")), buckets, strict=True):
        count += in_bucket
        yield "+Inf" if bound_s == float("inf") else f"{bound_s * 1000:g}", count
