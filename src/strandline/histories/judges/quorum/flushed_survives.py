"""D8: only what was not flushed is lost: a node comes back with all of the metadata log that was ever on its device."""

from __future__ import annotations

from strandline.histories.sight import Judge, Seen, Sight, Violation


class FlushedSurvives(Judge):
    def changed(self, sight: Sight, node_id: int, before: Seen | None, after: Seen) -> None:
        if before is not None and before.life != after.life and after.log_end_offset < sight.safe_before:
            raise Violation(
                f"comes back with {after.log_end_offset} of the {sight.safe_before} that were on its device"
            )
