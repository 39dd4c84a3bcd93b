"""The queries that are timed: the same one for each contender, which differ in the format's name and in nothing else.

Always true: a query reads or writes all its rows, or fails; reads take all seven columns into Spark's noop sink.
"""

from __future__ import annotations

import tempfile
import time
from typing import Literal, NamedTuple

from pyspark.sql import DataFrame, SparkSession

from bench.spark_ceiling import NAME as CEILING
from bench.spark_ceiling import PARTITIONS

Contender = Literal["jvm", "ours", "ceiling"]
Kind = Literal["batch", "stream", "write"]
FORMATS: dict[Contender, str] = {"jvm": "kafka", "ours": "strandline", "ceiling": CEILING}


class Query(NamedTuple):
    kind: Kind
    contender: Contender
    bootstrap: str
    topic: str
    rows: int
    size: int
    """Bytes of a value."""


class Timed(NamedTuple):
    seconds: float
    """Of the whole query, as a user waits for it."""
    batch_seconds: float
    """Of a stream: of its batches alone, without starting and stopping it. Otherwise the same as `seconds`."""


class WrongRows(Exception):
    """A query did not do what it was asked to."""


def run(spark: SparkSession, query: Query) -> Timed:
    started = time.perf_counter()
    if query.kind == "stream":
        batch_seconds = _read_stream(spark, query)
        return Timed(time.perf_counter() - started, batch_seconds)
    if query.kind == "batch":
        read(spark, query).write.format("noop").mode("overwrite").save()
    else:
        _written(spark, query).write.format(FORMATS[query.contender]).options(**_sink(query)).mode("append").save()
    seconds = time.perf_counter() - started
    return Timed(seconds, seconds)


def read(spark: SparkSession, query: Query) -> DataFrame:
    return spark.read.format(FORMATS[query.contender]).options(**_source(query)).load()


def check(spark: SparkSession, query: Query) -> None:
    """Does this contender see every record once, whole, in its partition and at its offset?"""
    in_each = query.rows // PARTITIONS
    wanted = {
        "count(*)": query.rows,
        "sum(length(value))": query.rows * query.size,
        "count(distinct partition)": PARTITIONS,
        "sum(offset)": PARTITIONS * in_each * (in_each - 1) // 2,
    }
    if query.contender == "ceiling":
        del wanted["sum(offset)"]
    seen = read(spark, query).selectExpr(*wanted).first()
    if seen is None or tuple(seen) != tuple(wanted.values()):
        raise WrongRows(f"{query.contender}: {', '.join(wanted)} are {seen}, not {tuple(wanted.values())}")


def _read_stream(spark: SparkSession, query: Query) -> float:
    rows = spark.readStream.format(FORMATS[query.contender]).options(**_source(query)).load()
    with tempfile.TemporaryDirectory(prefix="strandline-bench-checkpoint-", ignore_cleanup_errors=True) as checkpoint:
        writing = rows.writeStream.format("noop").option("checkpointLocation", checkpoint)
        running = writing.trigger(availableNow=True).start()
        running.awaitTermination()
        progress = running.recentProgress
    count = sum(each.numInputRows for each in progress)
    if count != query.rows:
        raise WrongRows(f"{query.contender} streamed {count} rows of {query.rows}")
    return sum(each.durationMs["triggerExecution"] for each in progress) / 1000


def _written(spark: SparkSession, query: Query) -> DataFrame:
    columns = ("cast(cast(id as string) as binary) as key", f"cast(repeat('x', {query.size}) as binary) as value")
    return spark.range(0, query.rows, 1, PARTITIONS).selectExpr(*columns)


def _source(query: Query) -> dict[str, str]:
    if query.contender == "ceiling":
        return {"rows": str(query.rows), "size": str(query.size)}
    return {"kafka.bootstrap.servers": query.bootstrap, "subscribe": query.topic, "startingOffsets": "earliest"}


def _sink(query: Query) -> dict[str, str]:
    if query.contender == "ceiling":
        return {}
    return {"kafka.bootstrap.servers": query.bootstrap, "topic": query.topic}
