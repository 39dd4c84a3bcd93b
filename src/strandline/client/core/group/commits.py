"""Committed offsets on the wire: OffsetCommit (8), OffsetFetch (9), OffsetDelete (47), and what their answers ask of a
client.

Version 10 of the first two names topics by id, so that a commit that was meant for a topic that is gone is refused even
if another has its name by now. Ids are taken when a commit begins, not when it is tried again.

Always true: a verdict other than DONE and FAILED is worth another try, after what it names was seen to.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from strandline.client.core.by_topic import by_topic
from strandline.client.core.group.member import GroupMetadata
from strandline.client.core.group.offsets import OffsetAndMetadata
from strandline.errors import RETRIABLE, ErrorCode, KafkaError, error_code
from strandline.ids import ZERO_UUID, TopicPartition, Uuid
from strandline.wire import messages

if TYPE_CHECKING:
    from strandline.wire.stubs.offset_commit import OffsetCommitRequest, OffsetCommitResponse
    from strandline.wire.stubs.offset_fetch import OffsetFetchRequest, OffsetFetchResponse

OFFSET_COMMIT: Final = 8
OFFSET_FETCH: Final = 9
OFFSET_DELETE: Final = 47
BY_NAME_MAX = 9
"""The newest version of OffsetCommit and OffsetFetch that names topics."""
NO_OFFSET = -1
TopicIds = Mapping[str, Uuid]


class CommitVerdict(enum.Enum):
    DONE = "the offset is committed"
    AGAIN = "after a wait"
    FIND = "after the coordinator was found again"
    EPOCH = "after the member learnt its epoch"
    REBALANCE = "after the rebalance"
    FENCED = "the member has lost its place"
    FAILED = "never"


_VERDICTS = {
    ErrorCode.NONE: CommitVerdict.DONE,
    ErrorCode.NOT_COORDINATOR: CommitVerdict.FIND,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: CommitVerdict.FIND,
    ErrorCode.STALE_MEMBER_EPOCH: CommitVerdict.EPOCH,
    ErrorCode.REBALANCE_IN_PROGRESS: CommitVerdict.REBALANCE,
    ErrorCode.ILLEGAL_GENERATION: CommitVerdict.FENCED,
    ErrorCode.UNKNOWN_MEMBER_ID: CommitVerdict.FENCED,
    ErrorCode.FENCED_MEMBER_EPOCH: CommitVerdict.FENCED,
}


def judge(code: ErrorCode) -> CommitVerdict:
    verdict = _VERDICTS.get(code)
    if verdict is None:
        return CommitVerdict.AGAIN if code in RETRIABLE else CommitVerdict.FAILED
    return verdict


def version_max(topics: Iterable[str], ids: TopicIds) -> int | None:
    """None if all these topics can be named by their ids."""
    return BY_NAME_MAX if any(ids.get(topic, ZERO_UUID) == ZERO_UUID for topic in topics) else None


def commit_question(
    stamp: GroupMetadata, offsets: Mapping[TopicPartition, OffsetAndMetadata], ids: TopicIds
) -> OffsetCommitRequest:
    Commit = messages.request(OFFSET_COMMIT)
    topics: dict[str, OffsetCommitRequest.OffsetCommitRequestTopic] = {}
    for (topic, partition), committed in sorted(offsets.items()):
        if topic not in topics:
            topics[topic] = Commit.OffsetCommitRequestTopic(
                name=topic, topic_id=ids.get(topic, ZERO_UUID), partitions=[]
            )
        topics[topic].partitions.append(
            Commit.OffsetCommitRequestPartition(
                partition_index=partition,
                committed_offset=committed.offset,
                committed_leader_epoch=committed.leader_epoch,
                committed_metadata=committed.metadata,
            )
        )
    return Commit(
        group_id=stamp.group_id,
        generation_id_or_member_epoch=stamp.generation_id,
        member_id=stamp.member_id,
        group_instance_id=stamp.group_instance_id,
        topics=list(topics.values()),
    )


def commit_answers(response: OffsetCommitResponse, ids: TopicIds) -> dict[TopicPartition, ErrorCode]:
    names = _names(ids)
    return {
        (names.get(topic.topic_id, topic.name), p.partition_index): error_code(p.error_code)
        for topic in response.topics
        for p in topic.partitions
    }


def fetch_question(
    groups: Mapping[str, Iterable[TopicPartition] | None], ids: TopicIds, *, require_stable: bool
) -> OffsetFetchRequest:
    """None for a group: all that it has committed. Brokers before version 8 are asked for the first group only."""
    Fetch = messages.request(OFFSET_FETCH)
    entries = []
    for group_id, partitions in groups.items():
        topics = None
        if partitions is not None:
            topics = [
                Fetch.OffsetFetchRequestTopics(
                    name=topic, topic_id=ids.get(topic, ZERO_UUID), partition_indexes=indexes
                )
                for topic, indexes in by_topic(sorted(partitions)).items()
            ]
        entries.append(Fetch.OffsetFetchRequestGroup(group_id=group_id, topics=topics))
    first_id, first = next(iter(groups.items()))
    by_name = None
    if first is not None:
        by_name = [
            Fetch.OffsetFetchRequestTopic(name=topic, partition_indexes=indexes)
            for topic, indexes in by_topic(sorted(first)).items()
        ]
    return Fetch(groups=entries, require_stable=require_stable, group_id=first_id, topics=by_name)


def fetch_answers(
    response: OffsetFetchResponse, first_id: str, ids: TopicIds
) -> dict[str, dict[TopicPartition, OffsetAndMetadata | KafkaError | None] | KafkaError]:
    """By group and partition; None where nothing was committed."""
    names = _names(ids)
    answers: dict[str, dict[TopicPartition, OffsetAndMetadata | KafkaError | None] | KafkaError] = {}
    for group_id, group in {entry.group_id: entry for entry in response.groups}.items() or ((first_id, response),):
        code = error_code(group.error_code)
        if code is not ErrorCode.NONE:
            answers[group_id] = KafkaError(code, f"offsets of group '{group_id}'")
            continue
        answers[group_id] = {
            (name, p.partition_index): _committed(p, f"committed offset of {name}-{p.partition_index}")
            for topic in group.topics
            for name in [names.get(getattr(topic, "topic_id", None) or ZERO_UUID, topic.name)]
            for p in topic.partitions
        }
    return answers


def _committed(
    p: OffsetFetchResponse.OffsetFetchResponsePartitions | OffsetFetchResponse.OffsetFetchResponsePartition, what: str
) -> OffsetAndMetadata | KafkaError | None:
    if p.error_code != ErrorCode.NONE:
        return KafkaError(error_code(p.error_code), what)
    if p.committed_offset == NO_OFFSET:
        return None
    return OffsetAndMetadata(p.committed_offset, p.committed_leader_epoch, p.metadata or "")


def _names(ids: TopicIds) -> dict[bytes, str]:
    return {bytes(topic_id): topic for topic, topic_id in ids.items() if topic_id != ZERO_UUID}
