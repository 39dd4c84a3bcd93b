"""Values from text and back, in Kafka's words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.config.errors import ConfigError
from strandline.config.types import (
    BOOLEAN,
    DOUBLE,
    INT,
    LIST,
    LONG,
    SHORT,
    STRING,
    ListOf,
    NumberRange,
    OneOf,
    Type,
    parse,
    show,
)


@pytest.mark.parametrize(
    ("type_", "text", "value"),
    [
        (BOOLEAN, " TRUE ", True),
        (INT, "+5", 5),
        (INT, "-2147483648", -(2**31)),
        (LONG, "9223372036854775807", 2**63 - 1),
        (SHORT, "32767", 32767),
        (DOUBLE, "1e3", 1000.0),
        (LIST, "a , b,c", ("a", "b", "c")),
        (LIST, "", ()),
        (STRING, "  spaced ", "spaced"),
    ],
)
def test_text_becomes_a_value(type_: Type, text: str, value: object) -> None:
    assert parse("k", type_, text) == value


@pytest.mark.parametrize(
    ("type_", "text", "why"),
    [
        (LONG, "x", "Not a number of type LONG"),
        (INT, "2147483648", "Not a number of type INT"),
        (SHORT, "32768", "Not a number of type SHORT"),
        (INT, "1_000", "Not a number of type INT"),
        (INT, "٣", "Not a number of type INT"),
        (INT, "", "Not a number of type INT"),
        (LONG, "9" * 100_000, "Not a number of type LONG"),
        (DOUBLE, "half", "Not a number of type DOUBLE"),
        (BOOLEAN, "yes", "Expected value to be either true or false"),
    ],
)
def test_what_kafka_refuses_is_refused_in_its_words(type_: Type, text: str, why: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse("retention.ms", type_, text)
    assert caught.value.message == f"Invalid value {text[:80]} for configuration retention.ms: {why}"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.5, "0.5"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (1e7, "1.0E7"),
        (1.0, "1.0"),
        (0.0001, "1.0E-4"),
    ],
)
def test_a_double_is_printed_as_java_prints_it(value: float, text: str) -> None:
    assert show(value) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_printed_double_reads_back_as_itself(value: float) -> None:
    text = show(value)
    assert text is not None
    assert parse("k", DOUBLE, text) == value


def test_bounds_are_told_as_kafka_tells_them() -> None:
    with pytest.raises(ConfigError, match=r"Invalid value -2 for configuration k: Value must be at least -1"):
        NumberRange(-1).check("k", -2)
    with pytest.raises(ConfigError, match=r"Invalid value 10 for configuration k: Value must be no more than 9"):
        NumberRange(1, 9, also=-1).check("k", 10)
    NumberRange(1, 9, also=-1).check("k", -1)


def test_a_string_must_be_one_of_a_few() -> None:
    with pytest.raises(
        ConfigError, match=r"Invalid value brotli for configuration k: String must be one of: gzip, lz4"
    ):
        OneOf(("gzip", "lz4")).check("k", "brotli")
    OneOf(("UPGRADE",), ignore_case=True).check("k", "upgrade")


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (("delete", "delete"), "Configuration 'k' values must not be duplicated."),
        (("delete", ""), "Configuration 'k' values must not be empty."),
        (("erase",), "Invalid value erase for configuration k: String must be one of: compact, delete"),
        ((), "Configuration 'k' must not be empty."),
    ],
)
def test_a_list_keeps_to_its_entries(value: tuple[str, ...], why: str) -> None:
    with pytest.raises(ConfigError) as caught:
        ListOf(("compact", "delete"), empty_allowed=False).check("k", value)
    assert caught.value.message == why
