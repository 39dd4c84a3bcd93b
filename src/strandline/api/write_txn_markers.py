"""WriteTxnMarkers (27), versions 1-2: the ends of transactions, from their coordinators to the leaders of the partitions.

v2 brings the level of `transaction.version` at which the transaction was ended.
The answer for a partition comes once its marker is committed, and for `__consumer_offsets` once its offsets are visible.
Only brokers may send it. On a listener for clients an abort at level 0, as `kafka-transactions abort` sends it, is taken for a
transaction that is open for longer than `transaction.max.timeout.ms`: nobody else ends it. With
`transaction.two.phase.commit.enable` that is not so, and brokers alone may send one.
Left out: nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from strandline.api.context import RequestContext
from strandline.api.requests.pending_reply import MaybePending, PendingReply
from strandline.api.requests.slices import answer
from strandline.api.transactions.marker_writing import WritableMarker
from strandline.errors import ErrorCode
from strandline.ids import TopicPartition
from strandline.sliced_work import Work
from strandline.wire import messages

if TYPE_CHECKING:
    from strandline.wire.stubs.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse

KEY: Final = 27
VERSIONS = range(1, 3)


def handle(request: WriteTxnMarkersRequest, ctx: RequestContext) -> MaybePending[WriteTxnMarkersResponse]:
    return answer(_write_all(request, ctx), request, ctx)


def _write_all(request: WriteTxnMarkersRequest, ctx: RequestContext) -> Work[MaybePending[WriteTxnMarkersResponse]]:
    response = messages.response(KEY)
    reply = response()
    later: PendingReply[WriteTxnMarkersResponse] = PendingReply(may_be_overtaken=True)
    left = 1

    def settle() -> None:
        nonlocal left
        left -= 1
        if not left and not later.done:
            later.complete(reply)

    for asked in request.markers:
        marker = WritableMarker(
            (asked.producer_id, asked.producer_epoch),
            asked.transaction_result,
            asked.coordinator_epoch,
            asked.transaction_version,
        )
        result = response.WritableTxnMarkerResult(producer_id=asked.producer_id)
        reply.markers.append(result)
        for topic in asked.topics:
            of_topic = response.WritableTxnMarkerTopicResult(name=topic.name)
            result.topics.append(of_topic)
            for index in topic.partition_indexes:
                found = response.WritableTxnMarkerPartitionResult(partition_index=index)
                of_topic.partitions.append(found)
                left += 1

                def done(
                    code: ErrorCode, found: WriteTxnMarkersResponse.WritableTxnMarkerPartitionResult = found
                ) -> None:
                    found.error_code = code
                    settle()

                place = (topic.name, index)
                if ctx.may_act_as_broker or _is_hanging(place, marker, ctx):
                    ctx.node.markers.write(place, marker, done)
                else:
                    done(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
                yield 0
            yield 0
        yield 0
    settle()
    return later


def _is_hanging(place: TopicPartition, marker: WritableMarker, ctx: RequestContext) -> bool:
    """A person may abort a transaction that nobody else ends any more (TXN-T40). One of two-phase commit may be open for as
    long as it takes, and aborted at a single partition it would be torn (TXN-Q4)."""
    config = ctx.node.config
    partition = ctx.node.hosted.by_name.get(place)
    producer_id, epoch = marker.producer
    if partition is None or marker.commit or marker.transaction_version or config.transaction_two_phase_commit_enable:
        return False
    producers, leadership = partition.log.producers, partition.leadership
    if not producers.is_in_transaction(producer_id, epoch):
        return False
    # A newer epoch than its coordinator's would have that refused from then on, in every later transaction of the producer.
    if marker.coordinator_epoch != max(producers.by_id[producer_id].coordinator_epoch, 0):
        return False
    # What it found open when it began to lead may be as young as that, whatever its records say.
    if leadership is not None and leadership.age_ms <= ctx.node.config.transaction_max_timeout_ms:
        return False
    # Producers choose timestamps; what this node has let in is as old as it knows.
    last_ms = max(producers.by_id[producer_id].last_timestamp, partition.log.txn_began_ms.get(producer_id, 0))
    return ctx.now_ms - last_ms > config.transaction_max_timeout_ms
