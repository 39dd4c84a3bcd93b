"""D10: no process cuts what it knows to be committed of the metadata log."""

from __future__ import annotations

from strandline.histories.sight import Judge, Seen, Sight, Violation


class CommittedIsKept(Judge):
    def changed(self, sight: Sight, node_id: int, before: Seen | None, after: Seen) -> None:
        if before is None or before.life != after.life or before.high_watermark is None:
            return
        if after.log_end_offset < min(before.log_end_offset, before.high_watermark):
            raise Violation(f"the log ends at {after.log_end_offset}, and {before.high_watermark} is committed")
