"""B2: a follower that lacks what its leader had long ago does not stay in the ISR: the leader proposes an ISR without
it.

What a follower lacks is taken from its log; how long ago, from when the leader's log was seen to grow. A leader has its
time to look, from when it leads, and from when it runs; a follower has its time from when it joined.
"""

from __future__ import annotations

from collections import deque

from strandline.histories.quorum_observation import Violation
from strandline.histories.replica_observation import Key, ReplicaJudge, ReplicaObservation, ReplicaStatus

LAGS = 1.5
"""A leader looks every half of the lag, so a follower is out after so many at most."""
GRACE_S = 3.0


class _Leading:
    def __init__(self, now: float) -> None:
        self.since = now
        self.ends: deque[tuple[float, int]] = deque()
        """When its log ended where, the newest last; the first one is old enough to count."""
        self.joined: dict[int, float] = {}
        """By follower in the ISR: since when it is there."""
        self.late: dict[int, float] = {}
        """By follower: since when it should be out."""


class BehindLeavesIsr(ReplicaJudge):
    def __init__(self) -> None:
        self._leading: dict[tuple[int, Key, int, int], _Leading] = {}
        """By replica, its life and its leader epoch."""

    def changed(
        self, observed: ReplicaObservation, node_id: int, key: Key, before: ReplicaStatus | None, after: ReplicaStatus
    ) -> None:
        if not after.leads:
            return
        now, lag_s = observed.now, observed.lag_time_max_s(node_id)
        whose = (node_id, key, after.life, after.leader_epoch)
        leading = self._leading.get(whose)
        if leading is None:
            leading = self._leading[whose] = _Leading(now)
        leading.joined = {follower: leading.joined.get(follower, now) for follower in after.isr}
        ends = leading.ends
        if not ends or ends[-1][1] < after.log_end_offset:
            ends.append((now, after.log_end_offset))
        long_ago = now - LAGS * lag_s - GRACE_S
        while len(ends) > 1 and ends[1][0] < long_ago:
            ends.popleft()
        if after.proposed_isr is not None or leading.since > long_ago or ends[0][0] > long_ago or not after.is_online:
            leading.late.clear()
            return
        for follower in after.isr:
            replica = observed.replicas.get((follower, key))
            is_new = leading.joined[follower] > long_ago
            if follower == node_id or is_new or replica is None or replica.log_end_offset >= ends[0][1]:
                leading.late.pop(follower, None)
            elif now - leading.late.setdefault(follower, now) > max(GRACE_S, lag_s / 2) and observed.is_settled(
                node_id
            ):
                raise Violation(
                    f"keeps {follower} in the ISR, which has {replica.log_end_offset} of the {ends[0][1]} "
                    f"of {now - ends[0][0]:.1f} s ago"
                )
