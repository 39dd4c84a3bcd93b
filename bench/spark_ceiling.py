"""The ceiling: a source that yields one RecordBatch again and again, and a sink that drops what it is given.

What Spark itself takes for rows from and to Python. No source or sink written in Python can be faster.

Always true: the rows have the columns and sizes of those that the other contenders read; nothing is fetched, decoded or sent.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

NAME = "ceiling"
COLUMNS = "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, timestampType int"
PARTITIONS = 4
BATCH_ROWS_MAX, BATCH_BYTES_MAX = 10_000, 2 << 20
"""What the decoder of our source keeps to."""
TIMESTAMP_US = 1_700_000_000_000_000


class Ceiling(DataSource):
    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> str:
        return COLUMNS

    def reader(self, schema: StructType) -> DataSourceReader:
        return ConstantReader(int(self.options["rows"]), int(self.options["size"]))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return ConstantStreamReader(int(self.options["rows"]), int(self.options["size"]))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        return Dropping()


class ConstantReader(DataSourceReader):
    def __init__(self, rows: int, size: int) -> None:
        self._rows, self._size = rows, size

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(number) for number in range(PARTITIONS)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return _constant(partition.value, self._rows // PARTITIONS, self._size)


class ConstantStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, rows: int, size: int) -> None:
        self._rows, self._size = rows, size

    def prepareForTriggerAvailableNow(self) -> None:
        """There is always the same to read."""

    def initialOffset(self) -> dict[str, int]:
        return {"rows": 0}

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        return {"rows": self._rows}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        return [InputPartition(number) for number in range(PARTITIONS)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return _constant(partition.value, self._rows // PARTITIONS, self._size)

    def commit(self, end: dict[str, int]) -> None:
        """Nothing is kept."""


class Dropping(DataSourceArrowWriter):
    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        for _ in iterator:
            pass
        return WriterCommitMessage()


def _constant(partition: int, rows: int, size: int) -> Iterator[pa.RecordBatch]:
    batch_rows = max(1, min(BATCH_ROWS_MAX, BATCH_BYTES_MAX // size))
    batch = pa.RecordBatch.from_pydict(
        {
            "key": [b"%d" % row for row in range(batch_rows)],
            "value": [b"x" * size] * batch_rows,
            "topic": ["ceiling"] * batch_rows,
            "partition": [partition] * batch_rows,
            "offset": range(batch_rows),
            "timestamp": [TIMESTAMP_US] * batch_rows,
            "timestampType": [0] * batch_rows,
        },
        schema=pa.schema(
            [
                ("key", pa.binary()),
                ("value", pa.binary()),
                ("topic", pa.string()),
                ("partition", pa.int32()),
                ("offset", pa.int64()),
                ("timestamp", pa.timestamp("us", "UTC")),
                ("timestampType", pa.int32()),
            ]
        ),
    )
    for _ in range(rows // batch_rows):
        yield batch
    if rows % batch_rows:
        yield batch.slice(0, rows % batch_rows)
