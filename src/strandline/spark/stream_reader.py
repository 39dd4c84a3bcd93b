"""A stream: what Spark asks of the driver at each trigger, in one Python process as long as the query runs.

Its offsets start in `bounds.py`, go as far as `limits.py` lets them, and become JSON in `checkpointed_offsets.py`.

Who calls what, as Spark 4.2 does (MicroBatchExecution, PythonMicroBatchStream):
    prepareForTriggerAvailableNow()  once and first, with Trigger.AvailableNow only; then getDefaultReadLimit(), once
    initialOffset()                  of a query without a checkpoint: before the first latestOffset() and again before the first
                                     partitions(); if that first batch did not finish, again after the restart
    latestOffset(start, limit)       at each trigger, also of an idle topic; `start` is where the last finished batch ended, so
                                     progress is committed here. Trigger.AvailableNow ends with one that brings nothing new
    reportLatestOffset()             after each latestOffset()
    commit(end)                      when the batch after it is in the checkpoint, so never of the last batch
    partitions(start, end)           of each batch; after a restart of an unfinished one without a latestOffset() before
    read(partition)                  on executors, in a copy of the reader
    stop()                           only if the driver's end of the connection is lost: a query that stops kills this process

Always true: an offset that was returned can be read again after a restart, from the checkpoint alone; with nothing new, `start` is
returned as it was given, for Spark compares texts.
"""

from __future__ import annotations

import dataclasses
import logging
import time
from collections.abc import Iterable, Iterator
from typing import NoReturn

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow

from strandline.client.blocking import Admin, Client
from strandline.ids import TopicPartition
from strandline.spark.bounds import Topics, carried_on, initial_offsets, partitions_of, selected, topic_ids
from strandline.spark.checkpointed_offsets import Json, StreamOffset, StreamOffsets, read_offset
from strandline.spark.cluster_view import ClientClusterView
from strandline.spark.connections import connect
from strandline.spark.data_loss import LostRecords, judge, settle, vanished, went_back
from strandline.spark.errors import SparkError
from strandline.spark.limits import (
    Offsets,
    TriggerLimits,
    TriggerPace,
    admitted,
    default_read_limit,
    under,
    within_target,
)
from strandline.spark.options import ReadOptions
from strandline.spark.plain_errors import hide_traceback, plain_errors
from strandline.spark.progress import TIMEOUT_MS, GroupProgress
from strandline.spark.reading import SplitReading
from strandline.spark.splits import bytes_per_offset, splits

SIZES_TTL_S = 10.0
"""How long bytes per offset are cached: they change slowly, and every broker is asked for them."""

_log = logging.getLogger("strandline.spark")


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._reading = SplitReading.of(options)
        self._limits = TriggerLimits.of(options)
        self._pace = TriggerPace()
        self._clients: list[Client] = []
        self._cluster_view: ClientClusterView | None = None
        self._progress_of_group: GroupProgress | None = None
        self._initial: StreamOffsets | None = None
        self._has_begun = False
        self._target: dict[TopicPartition, int] | None = None
        self._latest: StreamOffsets | None = None
        self._planned: StreamOffsets | None = None
        """What the last latestOffset() admitted, so it was there a moment ago."""
        self._lost: frozenset[TopicPartition] = frozenset()
        """Of what the last finished batch read, the partitions that are not there any more."""
        self._per_offset: dict[TopicPartition, float] = {}
        self._per_offset_until = 0.0

    # What Spark calls

    def prepareForTriggerAvailableNow(self) -> None:
        with plain_errors():
            topics = selected(self._options.selection, self._view)
            self._target = self._view.latest(partitions_of(topics))

    def getDefaultReadLimit(self) -> ReadLimit:
        return default_read_limit(self._limits)

    def initialOffset(self) -> Json:
        with plain_errors():
            if self._initial is None:
                self._initial = initial_offsets(self._options, self._view)
            return self._initial.to_json()

    def latestOffset(self, start: Json, limit: ReadLimit) -> Json:
        with plain_errors():
            known = read_offset(start)
            end = self._next_end(known, limit)
            self._planned = end
            # Spark runs the first batch even if there is nothing in it, so that its end is in the checkpoint, with its start.
            if not self._has_begun and known.offsets == self._initial:
                return StreamOffset(end, known.offsets).to_json()
            return start if end == known.offsets else StreamOffset(end).to_json()

    def reportLatestOffset(self) -> Json | None:
        return None if self._latest is None else self._latest.to_json()

    def partitions(self, start: Json, end: Json) -> list[InputPartition]:
        self._has_begun = True
        if start == end:
            return []
        with plain_errors():
            return self._partitions(read_offset(start), read_offset(end))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self._reading.read(partition)

    def commit(self, end: Json) -> None:
        with plain_errors():
            self._finished(read_offset(end).offsets)

    def stop(self) -> None:
        for client in self._clients:
            client.close()

    # How it is done

    def _next_end(self, known: StreamOffset, limit: ReadLimit) -> StreamOffsets:
        topics = self._topics(known.offsets)
        losses = vanished(known.offsets, topics)
        self._settle(losses)
        self._lost = frozenset(loss.topic_partition for loss in losses)
        self._finished(known.offsets)
        start = carried_on(known.offsets, topics, self._view)
        latest = self._latest_of(start.offsets)
        self._latest = StreamOffsets.of(topic_ids(topics), latest)
        if self._target is not None:
            # A query that starts at latest starts after the target, if records came in between.
            latest = {
                partition: max(end, min(latest[partition], start.offsets.get(partition, 0)))
                for partition, end in within_target(latest, self._target).items()
            }
        limits = under(self._limits, limit)
        now_ms = int(time.monotonic() * 1000)
        if self._pace.waits(limits, start.offsets, latest, now_ms, available_now=self._target is not None):
            return known.offsets
        per_offset = {} if limits.bytes_max is None else self._bytes_per_offset(latest)
        ends = admitted(limits, start.offsets, latest, per_offset)
        # A partition of which nothing is read now is still one that the query has.
        kept = {partition: offset for partition, offset in start.offsets.items() if partition in known.offsets.offsets}
        return StreamOffsets.of(topic_ids(topics), kept | ends)

    def _partitions(self, start: StreamOffset, end: StreamOffset) -> list[InputPartition]:
        begins = start.offsets
        if start.first_start is None and end.first_start is not None:
            begins = end.first_start  # the first batch: initialOffset() may say something else by now
        topics = self._topics(end.offsets)
        there = [partition for partition in partitions_of(topics) if partition in end.offsets.offsets]
        earliest = self._view.earliest(there)
        latest = end.offsets.offsets if end.offsets == self._planned else self._latest_of(end.offsets.offsets, topics)
        judged = judge(begins, end.offsets, topics, earliest, latest)
        self._settle(judged.losses)
        per_offset = {} if self._options.partitions_min is None else self._bytes_per_offset(latest)
        parts = splits(
            judged.ranges,
            per_offset,
            partitions_min=self._options.partitions_min,
            records_per_partition_max=self._options.records_per_partition_max,
        )
        return [InputPartition(split) for split in parts]

    def _topics(self, known: StreamOffsets) -> Topics:
        """If one is missing, a broker that has just started may not know it yet, and is asked again."""
        topics = selected(self._options.selection, self._view)
        for _ in range(self._options.offset_attempts_max):
            if not vanished(known, topics):
                break
            time.sleep(self._options.offset_retry_ms / 1000)
            self._view.forget_topics()
            topics = selected(self._options.selection, self._view)
        return topics

    def _latest_of(self, known: Offsets, topics: Topics | None = None) -> dict[TopicPartition, int]:
        """If one is before what was read already, a new leader may not know its high watermark yet, and is asked again."""
        wanted = list(known) if topics is None else [key for key in partitions_of(topics) if key in known]
        latest = self._view.latest(wanted)
        for _ in range(self._options.offset_attempts_max):
            if not went_back(known, latest):
                break
            time.sleep(self._options.offset_retry_ms / 1000)
            latest = self._view.latest(wanted)
        return latest

    def _bytes_per_offset(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, float]:
        now, wanted = time.monotonic(), set(partitions)
        if now >= self._per_offset_until or not wanted <= self._per_offset.keys():
            # Not up to where a batch ends, but of the whole log: that is what the size is of.
            ends = self._view.earliest(wanted), self._view.latest(wanted)
            self._per_offset = bytes_per_offset(self._view.sizes_bytes(wanted), *ends)
            self._per_offset_until = now + SIZES_TTL_S
        return self._per_offset

    def _settle(self, losses: list[LostRecords]) -> None:
        for warning in settle(losses, fail_on_data_loss=self._options.fail_on_data_loss):
            _log.warning("%s", warning)

    def _finished(self, offsets: StreamOffsets) -> None:
        """Every record below these offsets has been processed."""
        if self._options.group_id is None:
            return
        # Groups know topics by name only: an offset of a topic that is gone must not become one of its successor.
        kept = {partition: offset for partition, offset in offsets.offsets.items() if partition not in self._lost}
        self._progress.finished(StreamOffsets.of(offsets.topic_ids, kept))

    # Clients, connected when first needed, in this process only: the copies of the reader on executors have none

    @property
    def _view(self) -> ClientClusterView:
        if self._cluster_view is None:
            client = connect(self._options.cluster)
            self._clients.append(client)
            self._cluster_view = ClientClusterView(
                client,
                read_committed=self._options.consumer.is_read_committed,
                metadata_ttl_ms=self._options.metadata_ttl_ms,
            )
        return self._cluster_view

    @property
    def _progress(self) -> GroupProgress:
        if self._progress_of_group is None:
            assert self._options.group_id is not None
            cluster = self._options.cluster
            hasty = min(TIMEOUT_MS, cluster.config.default_api_timeout_ms)
            config = dataclasses.replace(cluster.config, default_api_timeout_ms=hasty)
            client = connect(dataclasses.replace(cluster, config=config))
            self._clients.append(client)
            self._progress_of_group = GroupProgress(Admin(client), self._options.group_id)
        return self._progress_of_group


class RefusedStream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """In place of a reader whose options are wrong.

    If streamReader() itself raised, PySpark's runner would fail on a variable of its own that was never set. So the reason is
    raised by the method that Spark calls first.
    """

    def __init__(self, why: SparkError) -> None:
        self._why = why

    def prepareForTriggerAvailableNow(self) -> None:
        self._refuse()

    def getDefaultReadLimit(self) -> ReadLimit:
        self._refuse()

    def latestOffset(self, start: Json, limit: ReadLimit) -> Json:
        self._refuse()

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        self._refuse()

    def _refuse(self) -> NoReturn:
        hide_traceback()
        raise self._why
