"""One task: rows in, Arrow batch by Arrow batch; records out, acknowledged when it returns.

Arrow batches are collected until each partition they go to gets about half a batch's worth: ten thousand rows over a hundred
partitions would otherwise make a hundred small record batches.

Always true: rows of a partition keep their order. A task that fails sends nothing more, and says which column, or which topic
and partition, and why. What is held besides the producer's buffer.memory is bounded by HELD_BYTES_MAX and one Arrow batch.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

import pyarrow as pa

from strandline.columnar.encoding import Encoder
from strandline.spark.sink.routing import Router
from strandline.spark.sink.rows import table_of
from strandline.spark.sink.task_producer import TaskProducer

if TYPE_CHECKING:
    from strandline.spark.options.write import WriteOptions
    from strandline.spark.sink.columns import SinkColumns
    from strandline.spark.sink.commits import TaskCommit

HELD_BYTES_MAX = 16 << 20


def write(options: WriteOptions, columns: SinkColumns, batches: Iterable[pa.RecordBatch]) -> TaskCommit:
    with TaskProducer(options) as delivery:
        task = _Task(options, columns, delivery)
        for batch in batches:
            task.take(batch)
        task.send_held()
        return delivery.prepare()


class _Task:
    def __init__(self, options: WriteOptions, columns: SinkColumns, delivery: TaskProducer) -> None:
        producer = options.producer
        self._columns = columns
        self._delivery = delivery
        self._batch_bytes = producer.batch_size
        self._encoder = Encoder(
            compression=producer.compression_type,
            level=producer.compression_level,
            batch_bytes_max=producer.batch_size,
        )
        # A turn is a little less than a batch, for its sizes are estimates.
        turn_bytes = max(1, producer.batch_size - producer.batch_size // 16)
        self._router = Router(options.topic, delivery.partitions_count, turn_bytes, random.Random())
        self._held: list[pa.RecordBatch] = []
        self._held_bytes = 0
        self._destinations = 1
        """As many partitions as the last rows went to."""

    def take(self, batch: pa.RecordBatch) -> None:
        if not batch.num_rows:
            return
        self._held.append(batch)
        self._held_bytes += batch.nbytes
        if self._held_bytes >= min(HELD_BYTES_MAX, self._destinations * self._batch_bytes // 2):
            self.send_held()

    def send_held(self) -> None:
        if not self._held:
            return
        batch = self._held[0] if len(self._held) == 1 else pa.concat_batches(self._held)
        self._held.clear()
        self._held_bytes = 0
        table = table_of(batch, self._columns, now_ms=time.time_ns() // 1_000_000)
        self._destinations = 0
        for topic, partition, picked in self._router.route(table):
            self._destinations += 1
            for ready in self._encoder.encode(table.rows, picked):
                self._delivery.send(topic, partition, ready)
