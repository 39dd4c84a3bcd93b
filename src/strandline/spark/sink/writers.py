"""What Spark makes on the driver, sends to the executors, and asks on the driver again to commit.

Always true: a frame that cannot be written is refused when the writer is made, before anything runs. Records are in the log when
`write` returns (at least once: a task that is run again writes its rows again), so there is nothing left to do for `commit`,
and nothing that `abort` could take back.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter

from strandline.spark.options.write import WriteOptions, write_options
from strandline.spark.plain_errors import plain_errors
from strandline.spark.sink.columns import sink_columns
from strandline.spark.sink.errors import ModeError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from strandline.spark.sink.columns import SinkColumns
    from strandline.spark.sink.commits import TaskCommit

_log = logging.getLogger("strandline.spark")


class BatchWriter(DataSourceArrowWriter):
    """`df.write.format("strandline").mode("append")`. Spark itself refuses the modes ignore and errorifexists."""

    def __init__(self, options: Mapping[str, str], schema: StructType, overwrite: bool) -> None:
        if overwrite:
            raise ModeError(
                "save mode 'overwrite' is not supported: a topic can only be appended to; use mode('append')"
            )
        self.options = _with_warnings_logged(write_options(options, streaming=False))
        self.columns = sink_columns(schema, self.options.topic)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskCommit:
        return _write(self.options, self.columns, iterator)


class StreamWriter(DataSourceStreamArrowWriter):
    """`df.writeStream.format("strandline")`, append or complete: the whole result is then written again in every batch.

    Spark says `overwrite` in complete mode; as in its own Kafka sink, that deletes nothing.
    """

    def __init__(self, options: Mapping[str, str], schema: StructType, overwrite: bool) -> None:
        self.options = _with_warnings_logged(write_options(options, streaming=True))
        self.columns = sink_columns(schema, self.options.topic)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskCommit:
        return _write(self.options, self.columns, iterator)


def _with_warnings_logged(options: WriteOptions) -> WriteOptions:
    for warning in options.warnings:
        _log.warning("%s", warning)
    return options


def _write(options: WriteOptions, columns: SinkColumns, batches: Iterator[pa.RecordBatch]) -> TaskCommit:
    from strandline.spark.sink.writing import write  # not on the driver: it loads Arrow, numpy and the client

    with plain_errors():
        return write(options, columns, batches)
