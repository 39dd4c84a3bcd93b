"""One follower, as its leader sees it: how far it is, and when it last had all there was.

Always true: nothing is known of a follower until it has fetched in this leader's time (`UNKNOWN`); what it has is what the offset
of its newest fetch says, because a follower asks for what it lacks (there is no other acknowledgement).
"""

from __future__ import annotations

UNKNOWN = -1
NEVER = float("-inf")


class FollowerProgress:
    __slots__ = (
        "broker_epoch",
        "caught_up_at",
        "fetched_at",
        "leader_end_at_fetch",
        "log_end_offset",
        "log_start_offset",
        "replica_id",
    )

    def __init__(self, replica_id: int, *, caught_up_at: float = NEVER) -> None:
        self.replica_id = replica_id
        self.log_start_offset = UNKNOWN
        self.log_end_offset = UNKNOWN
        self.broker_epoch = UNKNOWN
        """As which incarnation of its broker it fetches (KIP-903)."""
        self.caught_up_at = caught_up_at
        """When it last had everything that the leader then had, or joined the ISR."""
        self.fetched_at = NEVER
        self.leader_end_at_fetch = UNKNOWN

    def begin_epoch(self, leader_end: int, now: float, *, in_sync: bool) -> None:
        """The same leader goes on in a new epoch: what the follower has is known, its clock starts anew."""
        self.leader_end_at_fetch = leader_end
        self.fetched_at = self.caught_up_at = now if in_sync else NEVER

    def joined(self, now: float) -> None:
        """It is in the ISR now, and may never have had everything: what is committed is enough to join."""
        self.caught_up_at = max(self.caught_up_at, now)

    def fetched(self, offset: int, log_start: int, leader_end: int, broker_epoch: int, now: float) -> None:
        """It asked for `offset` while the leader's log ended at `leader_end`, before anything was read for it (rule A15).

        One that always lags by what is written during a fetch is not behind: having what there was at its last fetch counts
        as caught up then.
        """
        if offset >= leader_end:
            self.caught_up_at = max(self.caught_up_at, now)
        elif offset >= self.leader_end_at_fetch > UNKNOWN:
            self.caught_up_at = max(self.caught_up_at, self.fetched_at)
        self.log_end_offset = offset
        self.log_start_offset = log_start
        self.broker_epoch = broker_epoch
        self.leader_end_at_fetch = leader_end
        self.fetched_at = now

    def was_caught_up(self, at: float) -> None:
        """It fetched at that time and there was nothing new for it, which in a fetch session is not said again."""
        if at > self.fetched_at:
            self.fetched_at = at
            self.leader_end_at_fetch = self.log_end_offset
            self.caught_up_at = max(self.caught_up_at, at)

    def is_caught_up(self, leader_end: int, now: float, lag_time_max_s: float) -> bool:
        return self.log_end_offset == leader_end or now - self.caught_up_at <= lag_time_max_s
