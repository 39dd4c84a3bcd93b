"""A batch query: its start and end offsets are fixed when Spark plans it, and each split is read by a task.

Spark plans a DataFrame once: a second action on it reads the same offsets again, even if the log has grown since.

Always true: a reader holds nothing but its options and filters, so it can be pickled at any time. The client that plans is closed
when the plan is made.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition

from strandline.spark.bounds import batch_bounds, selected
from strandline.spark.cluster_view import ClientClusterView
from strandline.spark.connections import connect
from strandline.spark.data_loss import judge, settle
from strandline.spark.filters import Narrowing, narrowed, narrowing
from strandline.spark.options import ReadOptions
from strandline.spark.plain_errors import plain_errors
from strandline.spark.reading import SplitReading
from strandline.spark.splits import Split, bytes_per_offset, splits

_log = logging.getLogger("strandline.spark")


class BatchReader(DataSourceReader):
    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._reading = SplitReading.of(options)
        self._narrowing = Narrowing()

    def partitions(self) -> list[InputPartition]:
        with plain_errors(), connect(self._options.cluster) as client:
            view = ClientClusterView(client, read_committed=self._options.consumer.is_read_committed)
            return [InputPartition(split) for split in self._plan(view)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self._reading.read(partition)

    def _plan(self, view: ClientClusterView) -> list[Split]:
        options = self._options
        start, end = batch_bounds(options, view)
        topics = selected(options.selection, view)
        earliest, latest = view.earliest(end.offsets), view.latest(end.offsets)
        judged = judge(start, end, topics, earliest, latest)
        for warning in settle(judged.losses, fail_on_data_loss=options.fail_on_data_loss):
            _log.warning("%s", warning)
        ranges = narrowed(judged.ranges, self._narrowing, view)
        per_offset = {}
        if options.partitions_min is not None:
            per_offset = bytes_per_offset(view.sizes_bytes(r.topic_partition for r in ranges), earliest, latest)
        return splits(
            ranges,
            per_offset,
            partitions_min=options.partitions_min,
            records_per_partition_max=options.records_per_partition_max,
        )


class PushingBatchReader(BatchReader):
    """With the option pushFilters: what filters say of topic, partition, offset and timestamp narrows what is read.

    It is a class of its own because Spark refuses a reader that has pushFilters() while
    spark.sql.python.filterPushdown.enabled is false, with an error that says what to set. It is not the usual one
    because of what Spark 4.2 does with the plan: it keeps that of the filters that were pushed last, and uses it for
    every other query on the same load(). So df.where("partition = 0") first and df itself later read partition 0 both
    times, and rows are missing. A program that sets the option calls load() once for each set of filters.
    """

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        self._narrowing = narrowing(filters)
        # All of them: offsets and times are narrowed to where matching records may be, not to the records themselves.
        return filters
