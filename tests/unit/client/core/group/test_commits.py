"""Commits and committed offsets on the wire: by id where ids are known, by name where not, in every version."""

# mypy: allow-incomplete-defs, allow-untyped-defs, disable-error-code="arg-type, attr-defined, union-attr"

from __future__ import annotations

import pytest

from strandline.client.core.group import commits
from strandline.client.core.group.commits import CommitVerdict, judge
from strandline.client.core.group.member import GroupMetadata
from strandline.client.core.group.offsets import OffsetAndMetadata
from strandline.errors import ErrorCode, KafkaError
from strandline.ids import ZERO_UUID
from strandline.wire import messages

from ..broker import TOPIC_ID

STAMP = GroupMetadata("g", 5, "m", "i")
IDS = {"t": TOPIC_ID}
Commit, Fetch = messages.response(8), messages.response(9)


def over_the_wire(api_key: int, version: int, request: object) -> object:
    return messages.decode_request(api_key, version, messages.encode_request(api_key, version, request))


@pytest.mark.parametrize("version", range(2, 11))
def test_a_commit_carries_who_commits_what(version):
    offsets = {("t", 1): OffsetAndMetadata(7, 3, "note"), ("t", 0): OffsetAndMetadata(5)}
    sent = over_the_wire(8, version, commits.commit_question(STAMP, offsets, IDS))
    assert (sent.group_id, sent.generation_id_or_member_epoch, sent.member_id) == ("g", 5, "m")
    assert sent.group_instance_id == ("i" if version >= 7 else None)
    (topic,) = sent.topics
    assert (topic.name, topic.topic_id) == (("t", ZERO_UUID) if version < 10 else ("", TOPIC_ID))
    assert [(p.partition_index, p.committed_offset, p.committed_metadata) for p in topic.partitions] == [
        (0, 5, ""),
        (1, 7, "note"),
    ]
    assert topic.partitions[1].committed_leader_epoch == (3 if version >= 6 else -1)


def test_answers_are_found_by_id_or_name():
    partition = Commit.OffsetCommitResponsePartition(partition_index=1, error_code=ErrorCode.REBALANCE_IN_PROGRESS)
    for topic in ({"topic_id": TOPIC_ID}, {"name": "t"}):
        response = Commit(topics=[Commit.OffsetCommitResponseTopic(partitions=[partition], **topic)])
        assert commits.commit_answers(response, IDS) == {("t", 1): ErrorCode.REBALANCE_IN_PROGRESS}


def test_a_topic_without_an_id_makes_the_request_name_topics():
    assert commits.version_max(["t"], IDS) is None
    assert commits.version_max(["t", "u"], IDS) == 9
    assert commits.version_max(["t"], {"t": ZERO_UUID}) == 9


@pytest.mark.parametrize("version", range(1, 11))
def test_committed_offsets_are_asked_for_and_read_in_every_version(version):
    question = commits.fetch_question({"g": [("t", 0), ("t", 1)]}, IDS, require_stable=True)
    sent = over_the_wire(9, version, question)
    (group,) = sent.groups if version >= 8 else [sent]
    assert group.group_id == "g"
    assert sent.require_stable is (version >= 7)
    assert [t.partition_indexes for t in group.topics] == [[0, 1]]
    make = Fetch.OffsetFetchResponsePartitions if version >= 8 else Fetch.OffsetFetchResponsePartition
    partitions = [
        make(partition_index=0, committed_offset=9, committed_leader_epoch=2, metadata="m"),
        make(partition_index=1, committed_offset=-1),
        make(partition_index=2, error_code=ErrorCode.UNSTABLE_OFFSET_COMMIT),
    ]
    if version >= 8:
        topics = [Fetch.OffsetFetchResponseTopics(name="t", topic_id=TOPIC_ID, partitions=partitions)]
        response = Fetch(groups=[Fetch.OffsetFetchResponseGroup(group_id="g", topics=topics)])
    else:
        response = Fetch(topics=[Fetch.OffsetFetchResponseTopic(name="t", partitions=partitions)])
    read = messages.decode_response(9, version, messages.encode_response(9, version, response))
    offsets = commits.fetch_answers(read, "g", IDS)["g"]
    assert isinstance(offsets, dict)
    assert offsets["t", 0] == OffsetAndMetadata(9, 2 if version >= 5 else -1, "m")
    assert offsets["t", 1] is None
    assert isinstance(offsets["t", 2], KafkaError)


def test_several_groups_and_all_their_offsets_at_once():
    question = commits.fetch_question({"g": None, "h": [("t", 0)]}, {}, require_stable=False)
    sent = over_the_wire(9, 9, question)
    assert [(g.group_id, g.topics and g.topics[0].name) for g in sent.groups] == [("g", None), ("h", "t")]
    response = Fetch(
        groups=[
            Fetch.OffsetFetchResponseGroup(group_id="g", error_code=ErrorCode.NOT_COORDINATOR),
            Fetch.OffsetFetchResponseGroup(group_id="h"),
        ]
    )
    answers = commits.fetch_answers(response, "g", {})
    assert isinstance(answers["g"], KafkaError)
    assert answers["h"] == {}


def test_what_an_answer_asks_for():
    assert judge(ErrorCode.NONE) is CommitVerdict.DONE
    assert judge(ErrorCode.NOT_COORDINATOR) is CommitVerdict.FIND
    assert judge(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS) is CommitVerdict.AGAIN
    assert judge(ErrorCode.STALE_MEMBER_EPOCH) is CommitVerdict.EPOCH
    assert judge(ErrorCode.ILLEGAL_GENERATION) is CommitVerdict.FENCED
    assert judge(ErrorCode.OFFSET_METADATA_TOO_LARGE) is CommitVerdict.FAILED
    assert judge(ErrorCode.FENCED_INSTANCE_ID) is CommitVerdict.FAILED
