"""TxnOffsetCommit: offsets that count once a producer's transaction is committed.

    result = commit(shard, request, guard, caller, at, answer)

Its coordinator is asked about the transaction before; the group is looked at after that, in the same step that writes,
so that a rebalance in between is seen (TXN-T42, KAFKA-15784).

Always true: a partition that is refused for itself (unknown, metadata too large) stops no other; a member that may not
commit commits nothing. A producer that names no member is taken: it may know nothing of its group (TXN-T43).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from strandline.coordinator.record import CoordinatorRecord
from strandline.coordinator.result import Answer, CoordinatorResult, Moment, coordinator_error
from strandline.errors import ErrorCode, KafkaError
from strandline.groups.caller import Caller
from strandline.groups.group import CommitPartitionValidator
from strandline.groups.records import OffsetCommitKey, OffsetCommitValue
from strandline.log.verification_guards import VerificationGuard
from strandline.metadata.image import MetadataImage
from strandline.sliced_work import Work, finished
from strandline.wire import messages

if TYPE_CHECKING:
    from strandline.groups.shard import GroupShard
    from strandline.wire.stubs.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse

TXN_OFFSET_COMMIT: Final = 28
GROUP_ERRORS_SINCE: Final = 6
"""The first version that may say GROUP_ID_NOT_FOUND and STALE_MEMBER_EPOCH; older ones get ILLEGAL_GENERATION (TXN-T44)."""
_NOT_KNOWN_BEFORE: Final = frozenset({ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.STALE_MEMBER_EPOCH})


def commit(
    shard: GroupShard,
    request: TxnOffsetCommitRequest,
    guard: VerificationGuard | None,
    caller: Caller,
    at: Moment,
    answer: Answer[TxnOffsetCommitResponse],
) -> CoordinatorResult | None:
    """KafkaError if the member may not commit."""
    try:
        found = _Commit(shard, request, caller, at)
    except KafkaError as error:
        if error.code in _NOT_KNOWN_BEFORE and caller.version < GROUP_ERRORS_SINCE:
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION, error.message) from None
        raise
    response = found.response
    if not found.records:
        answer(response)
        return None

    def done(code: ErrorCode, at: Moment) -> None:
        answer(refused(request, coordinator_error(code)) if code else response)

    producer = request.producer_id, request.producer_epoch
    return CoordinatorResult(found.records, done, producer=producer, guard=guard)


def names_partitions(request: TxnOffsetCommitRequest, image: MetadataImage) -> bool:
    """Whether anything that the request names exists, so that something may be written."""
    return any(
        image.partition(topic.name, partition.partition_index) is not None
        for topic in request.topics
        for partition in topic.partitions
    )


def refused(request: TxnOffsetCommitRequest, code: ErrorCode) -> TxnOffsetCommitResponse:
    """The response that says this of every partition."""
    return finished(refused_in_slices(request, code))


def refused_in_slices(request: TxnOffsetCommitRequest, code: ErrorCode) -> Work[TxnOffsetCommitResponse]:
    """The same, pausing after each partition."""
    response_class = messages.response(TXN_OFFSET_COMMIT)
    response = response_class()
    for topic in request.topics:
        answered = response_class.TxnOffsetCommitResponseTopic(name=topic.name)
        for partition in topic.partitions:
            answered.partitions.append(
                response_class.TxnOffsetCommitResponsePartition(
                    partition_index=partition.partition_index, error_code=code
                )
            )
            yield 0
        response.topics.append(answered)
    return response


class _Commit:
    """The records that a request comes to, and the answer once they are committed."""

    def __init__(self, shard: GroupShard, request: TxnOffsetCommitRequest, caller: Caller, at: Moment) -> None:
        self.records: list[CoordinatorRecord] = []
        self._request = request
        self._image = shard.dependencies.image
        self._metadata_max = shard.dependencies.config.offset_metadata_max_bytes
        self._wall_ms = at.wall_ms
        self._may_commit = None
        if names_partitions(request, self._image):
            # A request of which nothing can be committed says nothing about its sender.
            self._may_commit = _validated(shard, request, caller.version)
        response_class = messages.response(TXN_OFFSET_COMMIT)
        self.response = response_class()
        for topic in request.topics:
            answers = [
                response_class.TxnOffsetCommitResponsePartition(
                    partition_index=partition.partition_index, error_code=self._add(topic.name, partition)
                )
                for partition in topic.partitions
            ]
            self.response.topics.append(
                response_class.TxnOffsetCommitResponseTopic(name=topic.name, partitions=answers)
            )

    def _add(self, topic: str, partition: TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition) -> ErrorCode:
        """The record of one partition; or why it has none."""
        index, metadata = partition.partition_index, partition.committed_metadata or ""
        if self._image.partition(topic, index) is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if len(metadata) > self._metadata_max:
            return ErrorCode.OFFSET_METADATA_TOO_LARGE
        topic_id = self._image.topics[topic].topic_id
        if self._may_commit is not None:
            self._may_commit(topic, topic_id, index)
        value = OffsetCommitValue(
            offset=partition.committed_offset,
            leader_epoch=partition.committed_leader_epoch,
            metadata=metadata,
            commit_timestamp=self._wall_ms,
            topic_id=topic_id,
        )
        key = OffsetCommitKey(group=self._request.group_id, topic=topic, partition=index)
        self.records.append(CoordinatorRecord(key, value))
        return ErrorCode.NONE


def _validated(shard: GroupShard, request: TxnOffsetCommitRequest, version: int) -> CommitPartitionValidator | None:
    """Whether the member may commit (TXN-T43). Unlike OffsetCommit this is no heartbeat of a classic member."""
    group = shard.groups.get(request.group_id)
    if group is None:
        if request.generation_id < 0:
            return None
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {request.group_id} not found.")
    return group.validate_offset_commit(
        request.member_id,
        request.group_instance_id,
        request.generation_id,
        is_transactional=True,
        version=version,
    )
