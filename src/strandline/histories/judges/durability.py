"""What counts is on a device: the leader's own log before it counts itself (D9), a voter's before it fetches on (D8)."""

from __future__ import annotations

from strandline.histories.sight import Checker, Seen, Sight, Violation
from strandline.histories.wire import FETCH, Sent


class MajorityReachedHighWatermark(Checker):
    """When a leader moves its high watermark, a majority of the voters has everything below it on their devices."""

    def changed(self, sight: Sight, node_id: int, before: Seen | None, after: Seen) -> None:
        high_watermark = after.high_watermark
        if not after.leads or not high_watermark or (before is not None and before.high_watermark == high_watermark):
            return
        ends = {voter_id: sight.durable_offset.get(voter_id, 0) for voter_id in after.voters.ids}
        reached = sum(end >= high_watermark for end in ends.values())
        if reached < after.voters.majority:
            raise Violation(f"high watermark {high_watermark}, and the voters' devices hold only {ends}")


class FetchAfterFlush(Checker):
    """The offset that a voter fetches from is one up to which it has flushed: the leader counts it as acknowledged."""

    def sent(self, sight: Sight, sent: Sent) -> None:
        if sent.api_key != FETCH or sent.response:
            return
        seen = sight.nodes.get(sent.source)
        if seen is None or sent.source not in seen.voters.ids:
            return
        if sent.epoch != seen.epoch or sent.offset > seen.log_end_offset:
            return
        if sent.offset > sight.durable_offset.get(sent.source, 0) and self._speaks_of_this_log(sight, sent):
            raise Violation(f"fetches from {sent.offset}, and its device holds {sight.durable_offset.get(sent.source)}")

    @staticmethod
    def _speaks_of_this_log(sight: Sight, sent: Sent) -> bool:
        """A Fetch may leave late, after what it speaks of was flushed and then cut: by its last fetched epoch the leader finds
        that the two logs part, and counts nothing."""
        before = list(sight.storage[sent.source].batches(max(sent.offset - 1, 0), sent.offset))
        return not before or before[-1].epoch == sent.last_fetched_epoch


class FlushedIsOnDevice(Checker):
    """What a log says to be flushed would survive a power loss: its bytes, and the names of its files."""

    def changed(self, sight: Sight, node_id: int, before: Seen | None, after: Seen) -> None:
        flushed_offset = after.flushed_offset
        if before is not None and before.flushed_offset == flushed_offset and before.life == after.life:
            return
        durable_end = sight.storage[node_id].durable_end()
        if durable_end < flushed_offset:
            raise Violation(f"says that {flushed_offset} is flushed, and its device holds {durable_end}")
