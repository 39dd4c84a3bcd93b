"""Requests of a transactional producer, and what their answers ask of it.

    InitProducerId (22)       the pair of producer id and epoch; fences who had the transactional id before
    AddPartitionsToTxn (24)   below transaction.version 2: before the first batch of a partition
    AddOffsetsToTxn (25)      below it: before the first offsets of a group
    TxnOffsetCommit (28)      offsets, to the group's coordinator
    EndTxn (26)               the decision; from version 2 on its answer has the next pair

From transaction.version 2 on leaders and group coordinators add to the transaction by themselves (KIP-890). Which
protocol is spoken decides the versions that may be used, whatever a broker advertises.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from strandline.client.core.batches import ProducerIdentity
from strandline.client.core.by_topic import by_topic
from strandline.client.core.group.member import GroupMetadata
from strandline.client.core.group.offsets import OffsetAndMetadata
from strandline.errors import RETRIABLE, ErrorCode, KafkaError, error_code
from strandline.ids import TopicPartition
from strandline.wire import messages

if TYPE_CHECKING:
    from strandline.wire.stubs.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
    from strandline.wire.stubs.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse
    from strandline.wire.stubs.end_txn import EndTxnRequest, EndTxnResponse
    from strandline.wire.stubs.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
    from strandline.wire.stubs.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse

    TransactionalRequest: TypeAlias = (
        InitProducerIdRequest
        | AddPartitionsToTxnRequest
        | AddOffsetsToTxnRequest
        | EndTxnRequest
        | TxnOffsetCommitRequest
    )
    TransactionalResponse: TypeAlias = (
        InitProducerIdResponse
        | AddPartitionsToTxnResponse
        | AddOffsetsToTxnResponse
        | EndTxnResponse
        | TxnOffsetCommitResponse
    )

INIT_PRODUCER_ID: Final = 22
ADD_PARTITIONS_TO_TXN: Final = 24
ADD_OFFSETS_TO_TXN: Final = 25
END_TXN: Final = 26
TXN_OFFSET_COMMIT: Final = 28
TWO_PHASE_VERSION: Final = 6
"""That of InitProducerId which can ask for two-phase commit (TXN-Q1)."""


class OffsetsToCommit:
    """Offsets on their way into a transaction."""

    __slots__ = ("error", "left", "stamp")

    def __init__(self, offsets: Mapping[TopicPartition, OffsetAndMetadata], stamp: GroupMetadata) -> None:
        self.left = dict(offsets)
        self.stamp = stamp
        self.error: KafkaError | None = None

    @property
    def is_over(self) -> bool:
        return not self.left or self.error is not None


class TransactionQuestion(NamedTuple):
    """One request to a coordinator."""

    api_key: int
    message: TransactionalRequest
    version_max: int
    group_id: str | None = None
    """Whose coordinator is asked; None: that of the transactional id."""
    version_min: int = 0
    """Older versions would not say all that the message says."""


class TransactionVerdict(enum.Enum):
    """In this order the first counts, if an answer has several codes."""

    FATAL = "this producer cannot go on"
    ABORTABLE = "the transaction can only be aborted"
    FIND = "again, after the coordinator was found again"
    AGAIN = "again, after a wait"
    DONE = "it is done"


_FATAL = frozenset(
    {
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.UNSUPPORTED_VERSION,
    }
)
_FATAL_TO_ITS_COORDINATOR = frozenset({ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.INVALID_TXN_STATE})
_GONE = frozenset({ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE})
SURELY_NOT_ADDED = frozenset({ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION})
"""Of the codes after which an addition is tried again, those after which it may be left out."""


def is_fatal(code: ErrorCode) -> bool:
    """Also to a record: no abort helps (TXN-TC5)."""
    return code in _FATAL


def judge(api_key: int, code: ErrorCode, *, is_abort: bool = False) -> TransactionVerdict:
    """What the answer to one of these requests means (TXN-TC5).

    A group's coordinator, like a leader, knows only that the epoch is not the newest: EndTxn will say who it was.
    """
    if code is ErrorCode.NONE:
        return TransactionVerdict.DONE
    if code in _FATAL or (code in _FATAL_TO_ITS_COORDINATOR and api_key != TXN_OFFSET_COMMIT):
        return TransactionVerdict.FATAL
    if code in _GONE or (code is ErrorCode.REQUEST_TIMED_OUT and api_key == TXN_OFFSET_COMMIT):
        return TransactionVerdict.FIND
    if code in RETRIABLE:
        return TransactionVerdict.AGAIN
    if api_key == INIT_PRODUCER_ID or (
        api_key == END_TXN and (is_abort or code is not ErrorCode.TRANSACTION_ABORTABLE)
    ):
        return TransactionVerdict.FATAL
    return TransactionVerdict.ABORTABLE


def first_that_counts(api_key: int, codes: Iterable[ErrorCode]) -> ErrorCode:
    order = list(TransactionVerdict)
    return min(codes, key=lambda code: order.index(judge(api_key, code)), default=ErrorCode.NONE)


class TransactionRequests:
    """Builds them for one transactional id."""

    def __init__(self, transactional_id: str, timeout_ms: int, *, is_two_phase: bool = False) -> None:
        self._transactional_id = transactional_id
        self._timeout_ms = timeout_ms
        self._is_two_phase = is_two_phase

    def init(self, expected: ProducerIdentity) -> TransactionQuestion:
        """For the next pair after the expected one; for any, if that is NO_IDENTITY."""
        message = messages.request(INIT_PRODUCER_ID)(
            transactional_id=self._transactional_id,
            transaction_timeout_ms=self._timeout_ms,
            producer_id=expected.producer_id,
            producer_epoch=expected.producer_epoch,
            enable2_pc=self._is_two_phase,
        )
        # Without two-phase commit no version that Kafka may still change, with it no older one, which would set a timeout.
        bounds = (TWO_PHASE_VERSION, TWO_PHASE_VERSION) if self._is_two_phase else (TWO_PHASE_VERSION - 1, 0)
        return TransactionQuestion(INIT_PRODUCER_ID, message, version_max=bounds[0], version_min=bounds[1])

    def add_partitions(self, identity: ProducerIdentity, partitions: Iterable[TopicPartition]) -> TransactionQuestion:
        Add = messages.request(ADD_PARTITIONS_TO_TXN)
        message = Add(
            v3_and_below_transactional_id=self._transactional_id,
            v3_and_below_producer_id=identity.producer_id,
            v3_and_below_producer_epoch=identity.producer_epoch,
            v3_and_below_topics=[
                Add.AddPartitionsToTxnTopic(name=topic, partitions=indexes)
                for topic, indexes in by_topic(sorted(partitions)).items()
            ],
        )
        return TransactionQuestion(ADD_PARTITIONS_TO_TXN, message, version_max=3)

    def add_offsets(self, identity: ProducerIdentity, group_id: str) -> TransactionQuestion:
        message = messages.request(ADD_OFFSETS_TO_TXN)(
            transactional_id=self._transactional_id,
            producer_id=identity.producer_id,
            producer_epoch=identity.producer_epoch,
            group_id=group_id,
        )
        return TransactionQuestion(ADD_OFFSETS_TO_TXN, message, version_max=4)

    def commit_offsets(
        self,
        identity: ProducerIdentity,
        stamp: GroupMetadata,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        *,
        is_v2: bool,
    ) -> TransactionQuestion:
        Commit = messages.request(TXN_OFFSET_COMMIT)
        message = Commit(
            transactional_id=self._transactional_id,
            group_id=stamp.group_id,
            producer_id=identity.producer_id,
            producer_epoch=identity.producer_epoch,
            generation_id=stamp.generation_id,
            member_id=stamp.member_id,
            group_instance_id=stamp.group_instance_id,
            topics=[
                Commit.TxnOffsetCommitRequestTopic(
                    name=topic,
                    partitions=[
                        Commit.TxnOffsetCommitRequestPartition(
                            partition_index=index,
                            committed_offset=offsets[topic, index].offset,
                            committed_leader_epoch=offsets[topic, index].leader_epoch,
                            committed_metadata=offsets[topic, index].metadata,
                        )
                        for index in indexes
                    ],
                )
                for topic, indexes in by_topic(sorted(offsets)).items()
            ],
        )
        return TransactionQuestion(TXN_OFFSET_COMMIT, message, 5 if is_v2 else 4, stamp.group_id)

    def end(self, identity: ProducerIdentity, *, committed: bool, is_v2: bool) -> TransactionQuestion:
        message = messages.request(END_TXN)(
            transactional_id=self._transactional_id,
            producer_id=identity.producer_id,
            producer_epoch=identity.producer_epoch,
            committed=committed,
        )
        return TransactionQuestion(END_TXN, message, 5 if is_v2 else 4)


def added(response: AddPartitionsToTxnResponse) -> ErrorCode:
    """NONE, or the first code that counts. All partitions are added or none."""
    return first_that_counts(
        ADD_PARTITIONS_TO_TXN,
        (
            error_code(p.partition_error_code)
            for topic in response.results_by_topic_v3_and_below
            for p in topic.results_by_partition
        ),
    )


def committed_offsets(response: TxnOffsetCommitResponse) -> dict[TopicPartition, ErrorCode]:
    return {
        (topic.name, p.partition_index): error_code(p.error_code) for topic in response.topics for p in topic.partitions
    }
