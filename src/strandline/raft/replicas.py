"""What the leader knows of another replica: how far its log reaches, and when it last fetched.

Always true: times are of the leader's own clock; a replica is caught up at the moment of a Fetch if that began at the end of
the leader's log, or reached the end that the log had at the Fetch before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from strandline.raft.messages import Endpoints, ReplicaKey


@dataclass(slots=True)
class ReplicaState:
    key: ReplicaKey
    end_offset: int | None = None
    """Everything below is on its device (D8); None if it has not fetched in this epoch."""
    last_fetch_at: float | None = None
    last_caught_up_at: float | None = None
    _leader_end_at_last_fetch: int = -1

    def fetched(self, offset: int, leader_end_offset: int, now: float) -> None:
        if offset >= leader_end_offset:
            self.last_caught_up_at = now
        elif 0 <= self._leader_end_at_last_fetch <= offset and self.last_fetch_at is not None:
            # It took everything that was there at its last Fetch; what came since then is no lag.
            self.last_caught_up_at = max(self.last_caught_up_at or 0.0, self.last_fetch_at)
        self._leader_end_at_last_fetch = leader_end_offset
        self.last_fetch_at = now
        self.end_offset = offset


class ReplicaDescription(NamedTuple):
    """A line of DescribeQuorum."""

    key: ReplicaKey
    log_end_offset: int
    """-1 if it is not known."""
    last_fetch_at: float | None
    last_caught_up_at: float | None
    endpoints: Endpoints


class QuorumDescription(NamedTuple):
    leader_id: int
    epoch: int
    high_watermark: int
    """-1 if it is not known."""
    voters: tuple[ReplicaDescription, ...]
    observers: tuple[ReplicaDescription, ...]
