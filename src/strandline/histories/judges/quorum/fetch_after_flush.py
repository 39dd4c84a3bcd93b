"""D8: the offset that a voter fetches from is one up to which it has flushed, because the leader counts it as
acknowledged."""

from __future__ import annotations

from strandline.histories.quorum_observation import QuorumJudge, QuorumObservation, Violation
from strandline.histories.wire import FETCH, QuorumMessage


class FetchAfterFlush(QuorumJudge):
    def sent(self, observed: QuorumObservation, sent: QuorumMessage) -> None:
        if sent.api_key != FETCH or sent.response:
            return
        durable_offset = observed.durable_offset.get(sent.source, 0)
        if sent.offset <= durable_offset:
            return
        seen = observed.nodes.get(sent.source)
        if seen is None or seen.voters.get(sent.source) is None:
            return
        if sent.epoch != seen.epoch or sent.offset > seen.log_end_offset:
            return
        if self._speaks_of_this_log(observed, sent):
            raise Violation(f"fetches from {sent.offset}, and its device holds {durable_offset}")

    @staticmethod
    def _speaks_of_this_log(observed: QuorumObservation, sent: QuorumMessage) -> bool:
        """A Fetch may leave late, after what it speaks of was flushed and then cut: by its last fetched epoch the
        leader finds that the two logs part, and counts nothing."""
        before = list(observed.members[sent.source].batches(max(sent.offset - 1, 0), sent.offset))
        return not before or before[-1].epoch == sent.last_fetched_epoch
