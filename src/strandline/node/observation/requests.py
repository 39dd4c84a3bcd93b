"""What can be seen of the requests of a node: how many there were, how long they took, what is large among them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from strandline.api.requests.request_stats import BOUNDS_S as BOUNDS_S


class ObservedApi(Protocol):
    """The requests of one API in one version."""

    @property
    def count(self) -> int: ...

    @property
    def total_s(self) -> float: ...

    @property
    def buckets(self) -> Sequence[int]:
        """How many took how long: one number for each of `BOUNDS_S`, and one for the rest."""


class ObservedRequests(Protocol):
    @property
    def apis(self) -> Mapping[tuple[int, int], ObservedApi]:
        """By API key and version."""

    @property
    def refused(self) -> int:
        """Requests that could not be read or answered."""


class ObservedLargeRequests(Protocol):
    @property
    def served_count(self) -> int: ...

    @property
    def refused_count(self) -> int: ...

    @property
    def unanswered_bytes(self) -> int: ...

    @property
    def unanswered_objects(self) -> int: ...
