"""One task attempt's producer, from its first record to the commit message, or to its end without one.

    with Delivery(options) as delivery:      # begin
        delivery.send(...)
        return delivery.prepare()            # all is acknowledged; without it, nothing more is sent

At least once: records are in the log, and visible, when `prepare` returns, whether or not the driver commits. This is the one
place that would change for a transaction per task: it would begin here, be left open by `prepare`, which would send its id to
the driver, and be aborted if the block is left by an error.

Always true: a producer id belongs to one attempt, so what a dead attempt still has on the wire is never mistaken for this one's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from strandline.client.bulk_producer import BatchProducer
from strandline.errors import KafkaError
from strandline.spark.connections import client_of
from strandline.spark.sink.commits import PartitionWritten, TaskCommit, this_attempt
from strandline.spark.sink.errors import WriteFailed

if TYPE_CHECKING:
    from strandline.records.ready import ReadyBatch
    from strandline.spark.options.write import WriteOptions


class TaskProducer:
    def __init__(self, options: WriteOptions) -> None:
        self._producer = BatchProducer(client_of(options.cluster), options.producer)

    def __enter__(self) -> TaskProducer:
        self._producer.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        self._producer.__exit__(kind, *rest)

    def partitions_count(self, topic: str) -> int:
        """As it is now, not as an earlier task of this process saw it."""
        try:
            return self._producer.partitions_count(topic)
        except KafkaError as error:
            raise WriteFailed(f"cannot write to topic '{topic}': {error}") from error

    def send(self, topic: str, partition: int, batch: ReadyBatch) -> None:
        """Returns when the batch is in the producer's buffer. An error may be about an earlier batch."""
        try:
            self._producer.send(topic, partition, batch)
        except KafkaError as error:
            raise WriteFailed(f"not written: {error}") from error

    def prepare(self) -> TaskCommit:
        try:
            self._producer.flush()
        except KafkaError as error:
            raise WriteFailed(f"not written: {error}") from error
        written = tuple(
            PartitionWritten(topic, partition, each.first_offset, each.next_offset, each.records_count, each.bytes)
            for (topic, partition), each in sorted(self._producer.written().items())
        )
        return TaskCommit(this_attempt(), written)
