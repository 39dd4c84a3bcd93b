"""Where a Fetch may read: the partition it means, and whether its position fits the log.

Always true: an offset below the log start is out of range whatever the epochs say; a reader whose last epoch is unknown here, or
ended before its offset, is answered with the place where the logs part, and gets no records (rules A7, A8).
"""

from __future__ import annotations

from strandline.api.context import NodeContext
from strandline.api.fetching.fetch_sessions import Place
from strandline.errors import ErrorCode, KafkaError
from strandline.replica.partition import Partition
from strandline.wire.fetch import FetchPartition


def find(node: NodeContext, place: Place) -> Partition | None:
    topic, index = place
    if isinstance(topic, str):
        return node.hosted.by_name.get((topic, index))
    return node.hosted.by_id.get((topic, index))


def absence(node: NodeContext, place: Place) -> ErrorCode:
    """Why there is no such partition here."""
    topic, index = place
    found = node.metadata.image().topic(topic)
    if found is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if isinstance(topic, str) else ErrorCode.UNKNOWN_TOPIC_ID
    return node.absence_of(found.name, index)


def diverging(partition: Partition, wanted: FetchPartition) -> tuple[int, int] | None:
    """Epoch and end offset where the reader's log parts from ours, if it does; KafkaError if it reads where we have nothing."""
    log = partition.log
    offset = wanted.fetch_offset
    if offset < log.log_start_offset:
        raise _out_of_range(partition, offset)
    last_epoch = wanted.last_fetched_epoch
    if last_epoch >= 0:
        epoch, end_offset = log.epochs.end_offset_for(last_epoch, log.log_end_offset)
        if epoch < 0 or end_offset < 0:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, f"epoch {last_epoch} is unknown in {partition}")
        if epoch < last_epoch or end_offset < offset:
            return epoch, end_offset
    if offset > log.log_end_offset:
        raise _out_of_range(partition, offset)
    return None


def _out_of_range(partition: Partition, offset: int) -> KafkaError:
    log = partition.log
    return KafkaError(
        ErrorCode.OFFSET_OUT_OF_RANGE,
        f"offset {offset} of {partition} is not in {log.log_start_offset} to {log.log_end_offset}",
    )
