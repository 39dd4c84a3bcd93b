"""Who leads: one node in each epoch, one that has all that was committed before it, and not another one without need."""

from __future__ import annotations

from strandline.histories.sight import Checker, Seen, Sight, Violation
from strandline.raft.election_state import ElectionState
from strandline.raft.messages import NOBODY


class SingleLeader(Checker):
    """Election safety: whoever names a leader of an epoch, in memory or on disk, names the same one."""

    def __init__(self) -> None:
        self._leaders: dict[int, int] = {}

    def changed(self, sight: Sight, node_id: int, before: Seen | None, after: Seen) -> None:
        if after.leads and after.leader_id != node_id:
            raise Violation(f"leads in epoch {after.epoch} and says that {after.leader_id} does")
        self._name(after.epoch, after.leader_id)

    def persisted(self, sight: Sight, node_id: int, before: ElectionState | None, after: ElectionState) -> None:
        self._name(after.epoch, after.leader_id)

    def _name(self, epoch: int, leader_id: int) -> None:
        if leader_id == NOBODY:
            return
        known = self._leaders.setdefault(epoch, leader_id)
        if known != leader_id:
            raise Violation(f"epoch {epoch} has two leaders, {known} and {leader_id}")


class LeaderCompleteness(Checker):
    """Whoever becomes leader holds everything that was committed in earlier epochs (I1)."""

    def __init__(self) -> None:
        self._committed = (0, -1)
        """The greatest high watermark of a leader, and the epoch in which it was reached."""

    def changed(self, sight: Sight, node_id: int, before: Seen | None, after: Seen) -> None:
        if not after.leads:
            return
        committed, epoch = self._committed
        began = before is None or not before.leads or before.epoch != after.epoch or before.life != after.life
        if began and after.epoch > epoch and after.log_end_offset < committed:
            raise Violation(
                f"leads in epoch {after.epoch} with log end {after.log_end_offset}; {committed} was committed in epoch {epoch}"
            )
        if after.high_watermark is not None and after.high_watermark > committed:
            self._committed = (after.high_watermark, max(epoch, after.epoch))


class StableLeadership(Checker):
    """Once somebody leads, nobody else does: for scenarios in which the leader keeps its majority."""

    def __init__(self) -> None:
        self._leads: tuple[int, int] | None = None

    def changed(self, sight: Sight, node_id: int, before: Seen | None, after: Seen) -> None:
        if not after.leads:
            return
        leads = (after.epoch, node_id)
        if self._leads is None:
            self._leads = leads
        elif self._leads != leads:
            raise Violation(
                f"leads in epoch {after.epoch}, and {self._leads[1]} did in epoch {self._leads[0]} without need"
            )
