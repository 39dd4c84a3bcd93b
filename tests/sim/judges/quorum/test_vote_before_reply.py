from __future__ import annotations

from strandline.histories.judges.quorum.vote_before_reply import VoteBeforeReply

from .stage import broken, stage


def test_a_vote_is_on_disk_when_its_reply_leaves() -> None:
    story = stage(VoteBeforeReply)
    story.save(3, 5, voted_id=1)
    story.vote(3, 1, 5)
    story.vote(3, 2, 6, pre_vote=True)
    with broken(VoteBeforeReply):
        story.vote(3, 2, 6)
    with broken(VoteBeforeReply):
        story.vote(3, 2, 5)
