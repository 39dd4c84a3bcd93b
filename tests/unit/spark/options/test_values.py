"""An option's text and what it means."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from strandline.spark.errors import OptionError
from strandline.spark.options import values


def whole(name: str, text: str) -> int:
    return values.whole(name, text, 1, 100)


@pytest.mark.parametrize(
    ("read", "text", "expected"),
    [
        (whole, "7", 7),
        (whole, " +7 ", 7),
        (values.yes, "TRUE", True),
        (values.yes, "false", False),
        (values.time_ms, "15m", 900_000),
        (values.time_ms, "15min", 900_000),
        (values.time_ms, "2 s", 2000),
        (values.time_ms, "250", 250),
        (values.time_ms, "1h", 3_600_000),
        (values.time_ms, "1D", 86_400_000),
        (values.size_bytes, "10", 10),
        (values.size_bytes, "10b", 10),
        (values.size_bytes, "1K", 1024),
        (values.size_bytes, "64mb", 64 << 20),
        (values.size_bytes, "2g", 2 << 30),
        (values.size_bytes, "1t", 1 << 40),
        (values.size_bytes, "1pb", 1 << 50),
        (values.partitions, '{"a":[0,1],"b":[2]}', {("a", 0), ("a", 1), ("b", 2)}),
        (values.offsets, '{"a":{"1":5,"0":-2},"b":{"0":-1}}', {("a", 0): -2, ("a", 1): 5, ("b", 0): -1}),
        (values.timestamps, '{"a":{"0":1700000000000}}', {("a", 0): 1_700_000_000_000}),
    ],
)
def test_what_is_understood(read: Callable[[str, str], Any], text: str, expected: Any) -> None:
    assert read("anOption", text) == expected


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (whole, "0"),
        (whole, "101"),
        (whole, "1.5"),
        (whole, ""),
        (whole, "１"),
        (whole, "9" * 5000),
        (values.yes, "yes"),
        (values.time_ms, "15x"),
        (values.time_ms, "-1s"),
        (values.time_ms, "1.5s"),
        (values.time_ms, ""),
        (values.size_bytes, "0"),
        (values.size_bytes, "1.5g"),
        (values.size_bytes, "9999999p"),
        (values.size_bytes, "x"),
        (values.partitions, "a"),
        (values.partitions, "{}"),
        (values.partitions, '{"a":[]}'),
        (values.partitions, '{"a":0}'),
        (values.partitions, '{"a":[-1]}'),
        (values.partitions, '{"a":["0"]}'),
        (values.partitions, '{"a":[true]}'),
        (values.partitions, '[["a",0]]'),
        (values.partitions, '{"a":[0],"a":[1]}'),
        (values.partitions, "[" * 100_000),
        (values.offsets, '{"a":[0]}'),
        (values.offsets, '{"a":{"x":0}}'),
        (values.offsets, '{"a":{"-1":0}}'),
        (values.offsets, '{"a":{"0":-3}}'),
        (values.offsets, '{"a":{"0":1.0}}'),
        (values.offsets, '{"a":{"0":"5"}}'),
        (values.offsets, '{"a":{"0":9223372036854775808}}'),
        (values.offsets, '{"a":{}}'),
        (values.offsets, '{"a":{"0":1,"0":2}}'),
        (values.timestamps, '{"a":{"0":-1}}'),
    ],
    ids=lambda value: value[:24] if isinstance(value, str) else None,
)
def test_what_is_not_is_refused_by_the_options_name(read: Callable[[str, str], Any], text: str) -> None:
    with pytest.raises(OptionError, match="option 'anOption'") as refused:
        read("anOption", text)
    assert "\n" not in str(refused.value)


def test_the_same_partition_written_twice_in_two_ways() -> None:
    with pytest.raises(OptionError, match="option 'anOption' has a-1 twice"):
        values.offsets("anOption", '{"a":{"1":5,"01":6}}')
