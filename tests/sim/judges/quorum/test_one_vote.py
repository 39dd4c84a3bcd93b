from __future__ import annotations

from strandline.histories.judges.quorum.one_vote import OneVote
from strandline.histories.wire import VOTE, QuorumMessage

from .stage import broken, stage


def test_a_voter_votes_once_in_an_epoch() -> None:
    story = stage(OneVote)
    story.vote(3, 1, 5)
    story.vote(3, 1, 5)
    story.vote(3, 2, 5, pre_vote=True)
    story.vote(3, 2, 6)
    with broken(OneVote):
        story.vote(3, 2, 5)


def test_a_candidate_has_voted_for_itself() -> None:
    story = stage(OneVote)
    story.observed.see_sent(QuorumMessage(1, VOTE, 5, candidate_id=1))
    with broken(OneVote):
        story.vote(1, 2, 5)
