"""Which column of a frame becomes which part of a record, decided on the driver before anything runs.

The names and types are those of Spark's own Kafka sink, plus `timestamp`. Columns of other names are left alone.
Always true: a column that is there has a type that can be written; `value` is there, and a topic is known for every row that
has one in its column.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from strandline.spark.sink.errors import ColumnError

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

TYPES: Final[Mapping[str, tuple[str, ...]]] = {
    "value": ("string", "binary"),
    "key": ("string", "binary"),
    "headers": ("array<struct<key:string,value:binary>>",),
    "topic": ("string",),
    "partition": ("int",),
    "timestamp": ("timestamp",),
}
"""What each part of a record may be, as Spark writes types."""


class SinkColumns(NamedTuple):
    """Where in a row each part is; None: nowhere."""

    value: int
    key: int | None
    headers: int | None
    topic: int | None
    partition: int | None
    timestamp: int | None


def sink_columns(schema: StructType, topic: str | None) -> SinkColumns:
    """`topic` is the option, which wins over the column."""
    found = {name: _find(schema, name) for name in TYPES if name != "topic" or topic is None}
    value = found["value"]
    if value is None:
        raise ColumnError(f"a column 'value' is needed, of type {_either('value')}; there are {_names(schema)}")
    if topic is None and found["topic"] is None:
        raise ColumnError("no topic to write to: set the option 'topic', or have a column 'topic' of type string")
    return SinkColumns(
        value, found["key"], found["headers"], found.get("topic"), found["partition"], found["timestamp"]
    )


def _find(schema: StructType, name: str) -> int | None:
    """As Spark resolves names: their case does not matter, and two of the same name are one too many."""
    positions = [index for index, field in enumerate(schema.fields) if field.name.lower() == name]
    if len(positions) > 1:
        same = ", ".join(f"'{schema.fields[index].name}'" for index in positions)
        raise ColumnError(f"column '{name}' is there more than once: {same}")
    if not positions:
        return None
    field = schema.fields[positions[0]]
    # Names inside the headers' struct are resolved in the same way.
    if field.dataType.simpleString().lower() not in TYPES[name]:
        raise ColumnError(
            f"column '{field.name}' is of type {field.dataType.simpleString()}; it must be {_either(name)}"
        )
    return positions[0]


def _either(name: str) -> str:
    return " or ".join(TYPES[name])


def _names(schema: StructType) -> str:
    return ", ".join(f"'{field.name}'" for field in schema.fields) or "none"
