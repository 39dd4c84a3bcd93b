"""Reading one split on an executor: raw record batches from the leader, decoded, as Arrow batches.

While Spark takes in one batch the next bytes are on their way; nothing here touches a row.

Always true: every record of start <= offset < end that the log has is yielded once, in the order of the log. If the log has lost
some, failOnDataLoss decides: an error that names partition and offsets, or a warning in the same words, and on with the rest.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from strandline.client.config import ConsumerConfig
from strandline.client.errors import LogTruncated, OffsetOutOfRange, TopicRecreated
from strandline.errors import ErrorCode, KafkaError
from strandline.ids import ZERO_UUID
from strandline.spark.connections import client_of
from strandline.spark.errors import DataLoss
from strandline.spark.options import ReadOptions
from strandline.spark.options.kafka import ClusterOptions
from strandline.spark.plain_errors import plain_errors
from strandline.spark.splits import Split

_log = logging.getLogger("strandline.spark")


@dataclasses.dataclass(frozen=True, slots=True)
class SplitReading:
    """How to read any split; it is sent with every task, so it is small."""

    cluster: ClusterOptions
    consumer: ConsumerConfig
    columns: tuple[str, ...]
    fail_on_data_loss: bool
    timeout_s: float

    @classmethod
    def of(cls, options: ReadOptions) -> SplitReading:
        return cls(
            options.cluster,
            options.consumer,
            options.columns,
            options.fail_on_data_loss,
            options.fetch_timeout_ms / 1000,
        )

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """`partition` holds a Split, or None: Spark makes one partition where we have planned none."""
        if partition.value is not None:
            yield from self._read(partition.value)

    def _read(self, split: Split) -> Iterator[pa.RecordBatch]:
        # Not above: the driver plans without them, and the kernels alone take a second to load.
        from strandline.client.bulk import PartitionFetcher
        from strandline.columnar.decoding import Decoder

        decoder = Decoder(split.topic, split.partition, self.columns, check_crcs=self.consumer.check_crcs)
        offset = split.start
        with plain_errors():
            client = client_of(self.cluster)
            while offset < split.end:
                fetcher = PartitionFetcher(
                    client,
                    split.topic,
                    split.partition,
                    offset,
                    split.end,
                    self.consumer,
                    topic_id=None if split.topic_id == ZERO_UUID else split.topic_id,
                    timeout_s=self.timeout_s,
                )
                try:
                    for fetched in fetcher:
                        yield from decoder.decode(fetched.data, offset, split.end, fetched.aborted)
                        offset = fetched.next_offset
                    return
                except KafkaError as error:
                    offset = self._behind_the_gap(split, offset, error)

    def _behind_the_gap(self, split: Split, offset: int, error: KafkaError) -> int:
        """Where to continue after lost records; raises the error if nothing was lost, DataLoss if no loss is allowed."""
        goes_on = split.end
        match error:
            case OffsetOutOfRange(log_start_offset=int() as log_start_offset, log_end_offset=int() as log_end_offset):
                why = f"the log goes from {log_start_offset} to {log_end_offset}"
                if log_start_offset > offset:
                    goes_on = min(log_start_offset, split.end)
            case LogTruncated():
                why, goes_on = error.message, offset
            case TopicRecreated() | KafkaError(code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
                why = error.message
            case _:
                raise error
        what = (
            f"offsets {offset} to {goes_on - 1}"
            if goes_on > offset
            else f"records before offset {offset}, read already,"
        )
        lost = f"{what} of {split.topic}-{split.partition} are gone: {why}"
        if self.fail_on_data_loss:
            raise DataLoss(f"{lost}; set the option 'failOnDataLoss' to false to go on without them") from None
        _log.warning("%s; going on without them, since 'failOnDataLoss' is false", lost)
        return goes_on
