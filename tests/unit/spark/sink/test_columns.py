"""Columns are found by name and refused by type, before anything runs."""

# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

import pytest
from pyspark.sql.types import StringType, StructType

from strandline.spark.sink.columns import SinkColumns, sink_columns
from strandline.spark.sink.errors import ColumnError

from .schemas import headers_type, schema


def test_each_part_of_a_record_is_found_where_it_is() -> None:
    frame = schema(
        "offset bigint",
        "headers headers",
        "key string",
        "value binary",
        "topic string",
        "partition int",
        "timestamp timestamp",
    )
    assert sink_columns(frame, None) == SinkColumns(3, 2, 1, 4, 5, 6)


def test_only_a_value_is_needed_if_the_topic_is_an_option() -> None:
    assert sink_columns(schema("value string"), "t") == SinkColumns(0, None, None, None, None, None)


def test_the_option_wins_over_the_column_whatever_that_is() -> None:
    assert sink_columns(schema("topic int", "value string"), "t").topic is None


def test_the_case_of_names_does_not_matter() -> None:
    assert sink_columns(schema("VALUE string", "Key binary"), "t")[:2] == (0, 1)
    frame = schema("value string").add("headers", headers_type("Key", "Value"))
    assert sink_columns(frame, "t").headers == 1


def test_names_that_differ_in_case_only_are_one_too_many() -> None:
    with pytest.raises(ColumnError, match="column 'value' is there more than once: 'value', 'Value'"):
        sink_columns(schema("value string", "Value string"), "t")


def test_a_frame_without_a_value_is_refused_and_told_what_it_has() -> None:
    with pytest.raises(ColumnError, match="'value' is needed, of type string or binary; there are 'key', 'v'"):
        sink_columns(schema("key string", "v string"), "t")
    with pytest.raises(ColumnError, match="there are none"):
        sink_columns(StructType(), "t")


def test_without_a_topic_anywhere_both_ways_to_give_one_are_named() -> None:
    with pytest.raises(ColumnError, match="option 'topic', or have a column 'topic'"):
        sink_columns(schema("value string"), None)


@pytest.mark.parametrize(
    ("column", "said"),
    [
        ("value int", "'value' is of type int; it must be string or binary"),
        ("Key bigint", "'Key' is of type bigint; it must be string or binary"),
        ("topic binary", "'topic' is of type binary; it must be string"),
        ("partition bigint", "'partition' is of type bigint; it must be int"),
        ("timestamp bigint", "'timestamp' is of type bigint; it must be timestamp"),
        ("timestamp timestamp_ntz", "'timestamp' is of type timestamp_ntz; it must be timestamp"),
        ("headers string", "'headers' is of type string; it must be array<struct<key:string,value:binary>>"),
    ],
)
def test_a_type_that_cannot_be_written_is_named_with_those_that_can(column: str, said: str) -> None:
    others = [other for other in ("value string", "topic string") if other.split()[0] != column.split()[0].lower()]
    with pytest.raises(ColumnError, match=said):
        sink_columns(schema(column, *others), None)


@pytest.mark.parametrize(
    "kind", [headers_type("name"), headers_type("value", "key"), headers_type(value_type=StringType())]
)
def test_headers_are_a_key_and_a_value_in_that_order(kind) -> None:
    with pytest.raises(ColumnError, match=r"'headers' is of type array<struct<.*>>; it must be array"):
        sink_columns(schema("value string").add("headers", kind), "t")
