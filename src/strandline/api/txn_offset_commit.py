"""TxnOffsetCommit (28), versions 0-5: how far a group has come, if the transaction commits.

v2 takes leader epochs and knows COORDINATOR_LOAD_IN_PROGRESS, for which older ones get COORDINATOR_NOT_AVAILABLE; v3 names the
member and is flexible; v4 knows TRANSACTION_ABORTABLE; v5 adds the group's partition to the transaction, for which older clients
have sent AddOffsetsToTxn (KIP-890). Before the first offsets of a transaction its coordinator is asked; that holds up the next
request of the connection, and what follows does not. The answer comes once the offsets are written as with acks=all.
Left out: v6, which names topics by id (KIP-1319).
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from strandline.api.access.groups import NotedQuestion
from strandline.api.context import RequestContext
from strandline.api.groups.coordination import coordinate
from strandline.api.requests.pending_reply import PendingReply
from strandline.api.requests.slices import answer
from strandline.errors import ErrorCode, KafkaError
from strandline.groups.caller import Caller
from strandline.groups.offsets.txn_offset_commit import names_partitions, refused, refused_in_slices
from strandline.groups.shard import GroupShard
from strandline.ids import TopicPartition
from strandline.log.verification_guards import NOT_REQUIRED, VerificationGuard
from strandline.sliced_work import Work
from strandline.transactions.metadata import ProducerIdAndEpoch
from strandline.transactions.verification import TXN_OFFSET_COMMIT_ADDS_PARTITIONS, offset_commit_code

if TYPE_CHECKING:
    from strandline.api.requests.pending_reply import MaybePending
    from strandline.coordinator.result import Answer, CoordinatorResult, Moment
    from strandline.wire.stubs.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse

KEY: Final = 28
VERSIONS = range(6)
OFFSETS_PER_REQUEST_MAX = 10_000
LOAD_IN_PROGRESS_SINCE: Final = 2

_Committed: TypeAlias = "PendingReply[TxnOffsetCommitResponse]"


class Verify(Protocol):
    """Asks the coordinator of a transaction: are these partitions part of it? Or, not `verify_only`, has them added."""

    async def __call__(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        partitions: frozenset[TopicPartition],
        *,
        verify_only: bool,
    ) -> Mapping[TopicPartition, ErrorCode]: ...


def handle(
    request: TxnOffsetCommitRequest, ctx: RequestContext
) -> MaybePending[TxnOffsetCommitResponse] | Awaitable[TxnOffsetCommitResponse | _Committed]:
    return commit(request, ctx, ctx.node.transactions.verify)


def commit(
    request: TxnOffsetCommitRequest, ctx: RequestContext, verify: Verify
) -> MaybePending[TxnOffsetCommitResponse] | Awaitable[TxnOffsetCommitResponse | _Committed]:
    why_not = _why_not(request)
    if why_not:
        return answer(_refused_in_slices(request, why_not, ctx.version), request, ctx)
    node = ctx.node
    if not names_partitions(request, node.metadata.image()):
        return _write(request, ctx, None)  # nothing will be written
    adds = ctx.version >= TXN_OFFSET_COMMIT_ADDS_PARTITIONS
    if not adds and not node.config.transaction_partition_verification_enable:
        return _write(request, ctx, NOT_REQUIRED)
    producer = ProducerIdAndEpoch(request.producer_id, request.producer_epoch)
    try:
        question = node.groups.note_question(request.group_id, producer, bumps_epoch=adds)
    except KafkaError as error:
        return answer(_refused_in_slices(request, error.code, ctx.version), request, ctx)
    if question.guard is None:
        return _write(request, ctx, None)
    return _ask(request, ctx, verify, question, producer)


def _why_not(request: TxnOffsetCommitRequest) -> ErrorCode:
    if sum(len(topic.partitions) for topic in request.topics) > OFFSETS_PER_REQUEST_MAX:
        return ErrorCode.INVALID_COMMIT_OFFSET_SIZE
    if not request.group_id:
        return ErrorCode.INVALID_GROUP_ID
    if request.producer_id < 0:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    return ErrorCode.INVALID_PRODUCER_EPOCH if request.producer_epoch < 0 else ErrorCode.NONE


async def _ask(
    request: TxnOffsetCommitRequest,
    ctx: RequestContext,
    verify: Verify,
    question: NotedQuestion,
    producer: ProducerIdAndEpoch,
) -> TxnOffsetCommitResponse | _Committed:
    """Ask the coordinator of the transaction first, then write: the group is looked at when the answer is there (TXN-T42)."""
    verify_only = ctx.version < TXN_OFFSET_COMMIT_ADDS_PARTITIONS
    partition = question.partition
    codes = await verify(request.transactional_id, producer, frozenset({partition}), verify_only=verify_only)
    code = offset_commit_code(codes.get(partition, ErrorCode.NETWORK_EXCEPTION), ctx.version)
    if code:
        return refused(request, _known_to(ctx.version, code))
    return _write(request, ctx, question.guard)


def _write(request: TxnOffsetCommitRequest, ctx: RequestContext, guard: VerificationGuard | None) -> _Committed:
    def operation(
        shard: GroupShard,
        request: TxnOffsetCommitRequest,
        caller: Caller,
        at: Moment,
        answer: Answer[TxnOffsetCommitResponse],
    ) -> CoordinatorResult | None:
        return shard.commit_txn_offsets(request, guard, caller, at, answer)

    return coordinate(
        ctx,
        request,
        operation,
        lambda code, message: refused(request, _known_to(ctx.version, code)),
        may_be_overtaken=True,
    )


def _refused_in_slices(
    request: TxnOffsetCommitRequest, code: ErrorCode, version: int
) -> Work[MaybePending[TxnOffsetCommitResponse]]:
    return (yield from refused_in_slices(request, _known_to(version, code)))


def _known_to(version: int, code: ErrorCode) -> ErrorCode:
    """Producers of old clients may crash on COORDINATOR_LOAD_IN_PROGRESS (TXN-T41, KAFKA-7296)."""
    if code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS and version < LOAD_IN_PROGRESS_SINCE:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    return code
