"""Schemas of frames that tests write, without a session to make them."""

from __future__ import annotations

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)


def headers_type(key: str = "key", value: str = "value", value_type: DataType | None = None) -> ArrayType:
    fields = [StructField(key, StringType()), StructField(value, value_type or BinaryType())]
    return ArrayType(StructType(fields))


TYPES: dict[str, DataType] = {
    "string": StringType(),
    "binary": BinaryType(),
    "int": IntegerType(),
    "bigint": LongType(),
    "timestamp": TimestampType(),
    "timestamp_ntz": TimestampNTZType(),
    "headers": headers_type(),
}


def schema(*columns: str) -> StructType:
    """Columns as "name type"."""
    return StructType([StructField(name, TYPES[kind]) for name, kind in (column.split() for column in columns)])
