"""Snapshots (D11): a log that does not begin at 0 begins at the end of one, and a leader never loads one."""

from __future__ import annotations

from strandline.histories.sight import Checker, Seen, Sight, Violation
from strandline.histories.wire import FETCH_SNAPSHOT, Sent


class SnapshotAtLogStart(Checker):
    def changed(self, sight: Sight, node_id: int, before: Seen | None, after: Seen) -> None:
        start = after.log_start_offset
        if not start or (before is not None and before.log_start_offset == start and before.life == after.life):
            return
        at_start = [snapshot for snapshot in sight.storage[node_id].snapshots() if snapshot.offset == start]
        if not at_start:
            raise Violation(f"the log begins at {start}, and no snapshot ends there")
        if any(snapshot.epoch > after.epoch for snapshot in at_start):
            raise Violation(f"the snapshot at {start} is of epoch {at_start[0].epoch}, later than {after.epoch}")


class LeaderNeverLoadsSnapshot(Checker):
    """A leader's log only grows at its end, and it asks nobody for a snapshot."""

    def changed(self, sight: Sight, node_id: int, before: Seen | None, after: Seen) -> None:
        if before is None or not (before.leads and after.leads) or before.life != after.life:
            return
        if before.epoch == after.epoch and after.log_end_offset < before.log_end_offset:
            raise Violation(f"a leader cut its log from {before.log_end_offset} to {after.log_end_offset}")

    def sent(self, sight: Sight, sent: Sent) -> None:
        seen = sight.nodes.get(sent.source)
        if sent.api_key == FETCH_SNAPSHOT and seen is not None and seen.leads and sent.epoch >= seen.epoch:
            raise Violation(f"leads in epoch {seen.epoch} and asks for a snapshot")
