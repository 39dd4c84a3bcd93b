"""How many requests of each API were answered, how long that took, and which errors were answered.

Always true: a request is counted once its reply is there, whether it waited or not; counting costs less than half a
microsecond. Times are of the node's own clock, in seconds.
"""

from __future__ import annotations

from bisect import bisect_left

from strandline.errors import ErrorCode

BOUNDS_S = (
    *(0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025),
    *(0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0),
)
"""The upper ends of the buckets that times are counted in; one more bucket has the rest."""


class ApiStats:
    """The requests of one API in one version."""

    __slots__ = ("buckets", "total_s")

    def __init__(self) -> None:
        self.buckets = [0] * (len(BOUNDS_S) + 1)
        self.total_s = 0.0

    def answered(self, took_s: float) -> None:
        self.buckets[bisect_left(BOUNDS_S, took_s)] += 1
        self.total_s += took_s

    @property
    def count(self) -> int:
        return sum(self.buckets)


class RequestStats:
    """By API key and version, and errors by API key and code."""

    __slots__ = ("apis", "errors", "refused")

    def __init__(self) -> None:
        self.apis: dict[tuple[int, int], ApiStats] = {}
        self.errors: dict[tuple[int, int], int] = {}
        self.refused = 0
        """Requests that could not be read or answered; their connections ended."""

    def of(self, api_key: int, version: int) -> ApiStats:
        return self.apis.setdefault((api_key, version), ApiStats())

    def failed(self, api_key: int, code: int) -> None:
        """An answer had this error, of all that was asked for or of one part of it."""
        if code != ErrorCode.NONE:
            self.errors[api_key, code] = self.errors.get((api_key, code), 0) + 1
