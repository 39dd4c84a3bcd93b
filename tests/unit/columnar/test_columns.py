"""Columns as Spark expects them."""

from __future__ import annotations

import pytest
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructType,
    TimestampType,
)

from strandline.columnar.columns import COLUMNS, arrow_schema, clamp_milliseconds

HEADERS = ArrayType(StructType().add("key", StringType()).add("value", BinaryType()))
SPARK: dict[str, DataType] = {
    "key": BinaryType(),
    "value": BinaryType(),
    "topic": StringType(),
    "partition": IntegerType(),
    "offset": LongType(),
    "timestamp": TimestampType(),
    "timestampType": IntegerType(),
    "headers": HEADERS,
}


def test_the_schema_is_the_one_that_spark_makes() -> None:
    assert tuple(SPARK)[:-1] == COLUMNS
    for names in (COLUMNS, tuple(SPARK), ("value",), ("headers", "offset")):
        wanted = StructType()
        for name in names:
            wanted.add(name, SPARK[name])
        assert arrow_schema(names).equals(to_arrow_schema(wanted, timezone="UTC"), check_metadata=True)


def test_a_column_that_is_none() -> None:
    with pytest.raises(ValueError, match="no column 'Key'"):
        arrow_schema(["value", "Key"])


def test_milliseconds_stay_within_what_microseconds_can_tell() -> None:
    for timestamp in (0, -1, 1_700_000_000_000, 9_223_372_036_854_775, -9_223_372_036_854_775):
        assert clamp_milliseconds(timestamp) == timestamp
    assert clamp_milliseconds(9_223_372_036_854_776) == 9_223_372_036_854_775
    assert clamp_milliseconds(-(1 << 63)) == -9_223_372_036_854_775
