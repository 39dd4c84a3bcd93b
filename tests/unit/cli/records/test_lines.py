# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

import click
import pytest

from strandline.cli.errors import CommandRefused
from strandline.cli.records.lines import LineFormatter, LineReader
from strandline.client.core.completed_fetch import ConsumerRecord

RECORD = ConsumerRecord("t", 2, 7, 1000, b"k", b"v", (("h", b"1"), ("g", None)), 3, 0)


def test_a_line_is_a_value():
    assert LineReader({}).parse("a\tb", 1) == (None, b"a\tb", ())


def test_keys_headers_and_nulls():
    reader = LineReader({"parse.key": "true", "parse.headers": "true", "headers.delimiter": ";", "null.marker": "NULL"})
    assert reader.parse("h:1,g:NULL;k\tv", 1) == (b"k", b"v", (("h", b"1"), ("g", None)))
    assert reader.parse("NULL;NULL\tNULL", 1) == (None, None, ())


def test_a_missing_separator_is_refused_with_its_line_or_ignored():
    with pytest.raises(CommandRefused, match="No key separator found on line number 3: 'x'"):
        LineReader({"parse.key": "true"}).parse("x", 3)
    assert LineReader({"parse.key": "true", "ignore.error": "true"}).parse("x", 3) == (None, b"x", ())


def test_properties_are_checked():
    with pytest.raises(click.UsageError, match=r"'prse.key' is not a property"):
        LineReader({"prse.key": "true"})
    with pytest.raises(click.UsageError, match="may not be equal"):
        LineReader({"headers.delimiter": ",", "parse.headers": "true"})
    with pytest.raises(click.UsageError, match=r"'print.keys' is not a property"):
        LineFormatter({"print.keys": "true"})


def test_only_the_value_is_printed_by_default():
    assert LineFormatter({}).format(RECORD) == b"v\n"
    assert LineFormatter({}).format(RECORD._replace(value=None)) == b"null\n"


def test_everything_in_kafkas_order():
    names = ("timestamp", "partition", "offset", "epoch", "headers", "key", "value")
    formatter = LineFormatter({f"print.{name}": "true" for name in names} | {"key.separator": "|"})
    assert formatter.format(RECORD) == b"CreateTime:1000|Partition:2|Offset:7|Epoch:3|h:1,g:null|k|v\n"
    assert formatter.format(RECORD._replace(headers=(), timestamp_type=1)).startswith(b"LogAppendTime:1000|")
    assert b"|NO_HEADERS|" in formatter.format(RECORD._replace(headers=()))


def test_what_is_printed_is_read_back():
    formatter = LineFormatter({"print.key": "true", "key.separator": "§"})
    line = formatter.format(RECORD).decode().rstrip("\n")
    assert LineReader({"parse.key": "true", "key.separator": "§"}).parse(line, 1)[:2] == (b"k", b"v")
