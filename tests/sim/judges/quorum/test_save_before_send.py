from __future__ import annotations

from strandline.histories.judges.quorum.save_before_send import SaveBeforeSend
from strandline.histories.wire import FETCH, VOTE, QuorumMessage

from .stage import broken, stage


def test_no_request_speaks_of_an_epoch_that_is_not_on_disk() -> None:
    story = stage(SaveBeforeSend)
    story.save(1, 4)
    story.observed.see_sent(QuorumMessage(1, FETCH, 4))
    story.observed.see_sent(QuorumMessage(1, VOTE, 5, pre_vote=True))
    with broken(SaveBeforeSend):
        story.observed.see_sent(QuorumMessage(1, VOTE, 5))
