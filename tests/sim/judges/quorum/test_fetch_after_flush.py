from __future__ import annotations

from strandline.histories.judges.quorum.fetch_after_flush import FetchAfterFlush
from strandline.histories.wire import FETCH, QuorumMessage

from .stage import broken, stage


def test_a_voter_fetches_from_where_it_has_flushed() -> None:
    story = stage(FetchAfterFlush)
    story.see(2, log_end_offset=10, flushed_offset=7)
    story.observed.see_sent(QuorumMessage(2, FETCH, 1, offset=7))
    with broken(FetchAfterFlush):
        story.observed.see_sent(QuorumMessage(2, FETCH, 1, offset=10))
