"""The data source `strandline`: from options and a schema to the readers and writers that Spark asks for.

Spark asks for the schema first, in load(), without saying whether the query streams. So what is wrong in either case is refused
there and then; what is wrong in this case only, when the query is planned or started.

Always true: a schema that the user gives picks columns, and can be nothing but columns of ours; only those are decoded.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from strandline.spark.errors import SparkError
from strandline.spark.options import ReadOptions, read_columns, read_options
from strandline.spark.options.read import COLUMNS, HEADERS
from strandline.spark.plain_errors import plain_errors

if TYPE_CHECKING:
    from pyspark.sql.datasource import (
        DataSourceReader,
        DataSourceStreamReader,
        DataSourceStreamWriter,
        DataSourceWriter,
    )

TYPES: Final[dict[str, DataType]] = {
    "key": BinaryType(),
    "value": BinaryType(),
    "topic": StringType(),
    "partition": IntegerType(),
    "offset": LongType(),
    "timestamp": TimestampType(),
    "timestampType": IntegerType(),
    HEADERS: ArrayType(StructType([StructField("key", StringType()), StructField("value", BinaryType())])),
}
assert tuple(TYPES) == (*COLUMNS, HEADERS)

_log = logging.getLogger("strandline.spark")


def schema(options: Mapping[str, str]) -> StructType:
    with plain_errors():
        _refuse_if_wrong_either_way(options)
        return StructType([StructField(name, TYPES[name]) for name in read_columns(options)])


def batch_reader(options: Mapping[str, str], wanted: StructType) -> DataSourceReader:
    from strandline.spark.batch_reader import BatchReader, PushingBatchReader

    with plain_errors():
        parsed = _with_columns(read_options(options, streaming=False), wanted)
        _warn(parsed)
        return PushingBatchReader(parsed) if parsed.push_filters else BatchReader(parsed)


def stream_reader(options: Mapping[str, str], wanted: StructType) -> DataSourceStreamReader:
    from strandline.spark.stream_reader import RefusedStream, StreamReader

    try:
        parsed = _with_columns(read_options(options, streaming=True), wanted)
    except SparkError as error:
        return RefusedStream(error)
    _warn(parsed)
    return StreamReader(parsed)


def batch_writer(options: Mapping[str, str], given: StructType, overwrite: bool) -> DataSourceWriter:
    from strandline.spark.sink.writers import BatchWriter

    with plain_errors():
        return BatchWriter(options, given, overwrite)


def stream_writer(options: Mapping[str, str], given: StructType, overwrite: bool) -> DataSourceStreamWriter:
    from strandline.spark.sink.writers import StreamWriter

    with plain_errors():
        return StreamWriter(options, given, overwrite)


def _refuse_if_wrong_either_way(options: Mapping[str, str]) -> None:
    try:
        read_options(options, streaming=False)
    except SparkError:
        if any(name.lower().startswith("ending") for name in options):
            raise  # only a batch query has an end
        # If it would do for a stream, it is one, or a batch query whose planning will say what this would have said.
        read_options(options, streaming=True)


def _with_columns(options: ReadOptions, wanted: StructType) -> ReadOptions:
    for field in wanted.fields:
        if field.name not in TYPES:
            raise SparkError(f"the schema has a column '{field.name}'; this source has only {', '.join(TYPES)}")
        if field.dataType != TYPES[field.name] or not field.nullable:
            kind = TYPES[field.name].simpleString()
            raise SparkError(f"column '{field.name}' of the schema is a {kind} that may be null, and nothing else")
    return dataclasses.replace(options, columns=tuple(wanted.fieldNames()))


def _warn(options: ReadOptions) -> None:
    for warning in options.warnings:
        _log.warning("%s", warning)
