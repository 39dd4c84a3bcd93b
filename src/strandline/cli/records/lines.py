"""Conversion between records and lines of text, with the properties of Kafka's console tools.

Always true: what `LineFormatter` prints with a separator that no key or value contains, `LineReader` reads back the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import click

from strandline.cli.errors import CommandRefused
from strandline.escaping import escaped_bytes

if TYPE_CHECKING:
    from strandline.client.core.completed_fetch import ConsumerRecord

Headers = tuple[tuple[str, bytes | None], ...]
TIMESTAMP_TYPES = ("CreateTime", "LogAppendTime")


class ParsedRecord(NamedTuple):
    """The key, value and headers in a line of input."""

    key: bytes | None
    value: bytes | None
    headers: Headers


READER_PROPERTIES = {
    "parse.key": "false",
    "key.separator": "\t",
    "parse.headers": "false",
    "headers.delimiter": "\t",
    "headers.separator": ",",
    "headers.key.separator": ":",
    "ignore.error": "false",
    "null.marker": "",
}
FORMATTER_PROPERTIES = {
    "print.timestamp": "false",
    "print.key": "false",
    "print.value": "true",
    "print.partition": "false",
    "print.offset": "false",
    "print.delivery": "false",
    "print.epoch": "false",
    "print.headers": "false",
    "key.separator": "\t",
    "line.separator": "\n",
    "headers.separator": ",",
    "null.literal": "null",
}


def _settled(given: Mapping[str, str], defaults: Mapping[str, str], what: str) -> dict[str, str]:
    for name in given:
        if name not in defaults:
            raise click.UsageError(f"'{name}' is not a property of the {what}; these are: {', '.join(defaults)}")
    return {**defaults, **given}


def _is_true(text: str) -> bool:
    return text.strip().lower() == "true"


class LineReader:
    """A parser of lines into records. `properties` are those of Kafka's default line reader."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        settled = _settled(properties, READER_PROPERTIES, "line reader")
        self._parse_key = _is_true(settled["parse.key"])
        self._parse_headers = _is_true(settled["parse.headers"])
        self._ignore_error = _is_true(settled["ignore.error"])
        self._key_separator = settled["key.separator"]
        self._headers_delimiter = settled["headers.delimiter"]
        self._headers_separator = settled["headers.separator"]
        self._headers_key_separator = settled["headers.key.separator"]
        self._null_marker = settled["null.marker"] if "null.marker" in properties else None
        self._check_distinct(settled)

    def _check_distinct(self, settled: Mapping[str, str]) -> None:
        names = ("headers.delimiter", "headers.separator", "headers.key.separator")
        pairs = [(one, other) for i, one in enumerate(names) for other in names[i + 1 :]]
        if self._null_marker is not None:
            pairs += [("null.marker", other) for other in ("key.separator", *names)]
        for one, other in pairs:
            if settled[one] == settled[other]:
                raise click.UsageError(f"{one} and {other} may not be equal")

    def parse(self, line: str, number: int) -> ParsedRecord:
        """The record in a line; CommandRefused if a required separator is missing."""
        headers: Headers = ()
        key: bytes | None = None
        if self._parse_headers:
            text, line = self._split(line, self._headers_delimiter, "headers delimiter", number)
            headers = self._headers(text, number) if text is not None and text != self._null_marker else ()
        if self._parse_key:
            text, line = self._split(line, self._key_separator, "key separator", number)
            key = self._bytes(text)
        return ParsedRecord(key, self._bytes(line), headers)

    def _split(self, line: str, separator: str, name: str, number: int) -> tuple[str | None, str]:
        before, found, after = line.partition(separator)
        if not found:
            if self._ignore_error:
                return None, line
            raise CommandRefused(f"No {name} found on line number {number}: '{line}'")
        return before, after

    def _headers(self, text: str, number: int) -> Headers:
        headers = []
        for pair in text.split(self._headers_separator):
            key, found, value = pair.partition(self._headers_key_separator)
            if not found and not self._ignore_error:
                raise CommandRefused(f"No header key separator found in pair '{pair}' on line number {number}")
            if key == self._null_marker:
                raise CommandRefused(f"a header's key cannot be the null marker '{key}', on line number {number}")
            headers.append((key, self._bytes(value) if found else None))
        return tuple(headers)

    def _bytes(self, text: str | None) -> bytes | None:
        return None if text is None or text == self._null_marker else text.encode(errors="surrogateescape")


class LineFormatter:
    """A formatter of records as lines. `properties` are those of Kafka's default one. For a terminal, records are escaped."""

    def __init__(self, properties: Mapping[str, str], *, for_terminal: bool = False) -> None:
        settled = _settled(properties, FORMATTER_PROPERTIES, "formatter")
        self._for_terminal = for_terminal
        self._columns = [column for name, column in _COLUMNS.items() if _is_true(settled[f"print.{name}"])]
        self._separator = settled["key.separator"].encode()
        self._end = settled["line.separator"].encode()
        self._headers_separator = settled["headers.separator"].encode()
        self._null = settled["null.literal"].encode()

    def format(self, record: ConsumerRecord) -> bytes:
        """One record as Kafka's console consumer prints it."""
        columns = [column(self, record) for column in self._columns]
        return self._separator.join(columns) + self._end if columns else b""

    def _timestamp(self, record: ConsumerRecord) -> bytes:
        kind = TIMESTAMP_TYPES[record.timestamp_type]
        return f"{kind}:{record.timestamp}".encode()

    def _partition(self, record: ConsumerRecord) -> bytes:
        return f"Partition:{record.partition}".encode()

    def _offset(self, record: ConsumerRecord) -> bytes:
        return f"Offset:{record.offset}".encode()

    def _delivery(self, record: ConsumerRecord) -> bytes:
        return b"Delivery:NOT_PRESENT"

    def _epoch(self, record: ConsumerRecord) -> bytes:
        return f"Epoch:{record.leader_epoch}".encode()

    def _headers(self, record: ConsumerRecord) -> bytes:
        headers: Headers = record.headers
        if not headers:
            return b"NO_HEADERS"
        return self._headers_separator.join(
            self._text(key.encode()) + b":" + self._text(value) for key, value in headers
        )

    def _key(self, record: ConsumerRecord) -> bytes:
        return self._text(record.key)

    def _value(self, record: ConsumerRecord) -> bytes:
        return self._text(record.value)

    def _text(self, data: bytes | None) -> bytes:
        if data is None:
            return self._null
        return escaped_bytes(data) if self._for_terminal else data


_COLUMNS = {
    "timestamp": LineFormatter._timestamp,
    "partition": LineFormatter._partition,
    "offset": LineFormatter._offset,
    "delivery": LineFormatter._delivery,
    "epoch": LineFormatter._epoch,
    "headers": LineFormatter._headers,
    "key": LineFormatter._key,
    "value": LineFormatter._value,
}
