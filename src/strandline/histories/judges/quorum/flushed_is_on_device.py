"""D8, D9: what a metadata log says to be flushed would survive a power loss: its bytes, and the names of its files."""

from __future__ import annotations

from strandline.histories.sight import Judge, Seen, Sight, Violation


class FlushedIsOnDevice(Judge):
    def changed(self, sight: Sight, node_id: int, before: Seen | None, after: Seen) -> None:
        flushed_offset = after.flushed_offset
        if before is not None and before.flushed_offset == flushed_offset and before.life == after.life:
            return
        durable_end = sight.storage[node_id].durable_end()
        if durable_end < flushed_offset:
            raise Violation(f"says that {flushed_offset} is flushed, and its device holds {durable_end}")
