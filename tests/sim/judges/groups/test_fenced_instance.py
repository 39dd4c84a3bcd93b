from __future__ import annotations

from strandline.errors import ErrorCode
from strandline.histories.exchanges import JOIN_GROUP, OFFSET_COMMIT
from strandline.histories.judges.groups.fenced_instance import FencedInstance
from strandline.wire import messages

from .stage import GroupStage, T, broken, stage


def join(story: GroupStage, member_id: str) -> None:
    """Under the instance id `i`."""
    request = messages.request(JOIN_GROUP)(group_id="g", member_id="", group_instance_id="i")
    story._answer(story._ask(JOIN_GROUP, request, 1, member_id), messages.response(JOIN_GROUP)(member_id=member_id))


def commit(story: GroupStage, member_id: str, code: int = 0) -> None:
    Commit = messages.request(OFFSET_COMMIT)
    topic = Commit.OffsetCommitRequestTopic(name=T, partitions=[Commit.OffsetCommitRequestPartition(partition_index=0)])
    request = Commit(group_id="g", member_id=member_id, group_instance_id="i", topics=[topic])
    story.answer_commit(story._ask(OFFSET_COMMIT, request, 1, member_id), code)


def test_the_newest_of_an_instance_id_commits_and_the_one_before_does_not() -> None:
    story = stage(FencedInstance)
    join(story, "a")
    commit(story, "a")
    join(story, "b")
    commit(story, "b")
    commit(story, "a", ErrorCode.FENCED_INSTANCE_ID)
    with broken(FencedInstance):
        commit(story, "a")
