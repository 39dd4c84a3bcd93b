"""Spark's side of a stream without Spark: who calls what of a reader, in which order, and what a checkpoint remembers.

After MicroBatchExecution of Spark 4.2: offsets travel as JSON text, a batch is in the log of offsets before it runs and in the log
of commits after it, and each life of the query has a reader of its own, made anew from its pickled data source.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql.streaming.datasource import ReadAllAvailable
from pyspark.sql.types import StructType

from pyspark_strandline import DefaultSource


class Checkpoint:
    def __init__(self) -> None:
        self.planned: list[str] = []
        self.committed_count = 0


class Query:
    """One life of a streaming query."""

    def __init__(self, options: dict[str, str], checkpoint: Checkpoint, *, available_now: bool = False) -> None:
        self.source = cloudpickle.loads(cloudpickle.dumps(DefaultSource(options)))
        self.schema: StructType = self.source.schema()
        self.reader: Any = self.source.streamReader(self.schema)
        self.checkpoint = checkpoint
        if available_now:
            self.reader.prepareForTriggerAvailableNow()
        self.limit = self.reader.getDefaultReadLimit()
        self.latest: dict[str, Any] | None = None

    def trigger(self, *, dies: bool = False, once: bool = False) -> list[dict[str, Any]] | None:
        """The rows of one batch; None if there was nothing new. `dies`: in the middle of it, so that it is not finished."""
        log = self.checkpoint
        if log.committed_count == len(log.planned) and not self._plan(once):
            return None
        start = json.loads(log.planned[-2]) if len(log.planned) > 1 else self._initial()
        rows = self.rows(start, json.loads(log.planned[-1]))
        if not dies:
            log.committed_count = len(log.planned)
        return rows

    def all(self) -> list[dict[str, Any]]:
        """Of Trigger.AvailableNow: until nothing is new."""
        found = []
        while (rows := self.trigger()) is not None:
            found += rows
        return found

    def _plan(self, once: bool) -> bool:
        log = self.checkpoint
        before = log.planned[-1] if log.planned else None
        start = self._initial() if before is None else json.loads(before)
        end = json.dumps(self.reader.latestOffset(start, ReadAllAvailable() if once else self.limit))
        self.latest = self.reader.reportLatestOffset()
        if end == before:
            return False
        log.planned.append(end)
        if before is not None:
            self.reader.commit(json.loads(before))
        return True

    def _initial(self) -> dict[str, Any]:
        return dict(json.loads(json.dumps(self.reader.initialOffset())))

    def rows(self, start: dict[str, Any], end: dict[str, Any]) -> list[dict[str, Any]]:
        partitions = cloudpickle.loads(cloudpickle.dumps(self.reader.partitions(start, end)))
        # Executors get a copy of a reader that was made for that and never talked to anybody.
        on_executor = cloudpickle.loads(cloudpickle.dumps(self.source.streamReader(self.schema)))
        batches = [batch for partition in partitions for batch in on_executor.read(partition)]
        return [row for batch in batches for row in batch.to_pylist()]

    def stop(self) -> None:
        self.reader.stop()


@contextmanager
def life(options: dict[str, str], checkpoint: Checkpoint, *, available_now: bool = False) -> Iterator[Query]:
    query = Query(options, checkpoint, available_now=available_now)
    try:
        yield query
    finally:
        query.stop()


def values(rows: list[dict[str, Any]] | None) -> list[str]:
    assert rows is not None, "nothing was new"
    return [bytes(row["value"]).decode() for row in rows]


def batch_values(batches: Iterator[pa.RecordBatch]) -> list[str]:
    return [value.decode() for batch in batches for value in batch.column("value").to_pylist()]
