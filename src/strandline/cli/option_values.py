"""The values of command line options: `key=value` pairs, partitions, and options that are named at run time."""

from __future__ import annotations

from collections.abc import Mapping

import click

from strandline.cli.errors import CommandRefused
from strandline.ids import TopicPartition


def value_of_option(options: Mapping[str, object], name: str) -> object:
    """The value of an option whose name is known only at run time."""
    return options[name]


def required(value: str | None) -> str:
    """The value of an option that was checked to be given."""
    assert value is not None
    return value


def key_values(pairs: tuple[str, ...], flag: str) -> dict[str, str]:
    """Several `key=value` as a mapping; UsageError if one is not."""
    found: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise click.UsageError(f"{flag} {pair}: write it as key=value")
        found[key.strip()] = value
    return found


def topic_partition(text: str) -> TopicPartition:
    """`hello-0`; refused if it is not of that form."""
    topic, dash, partition = text.rpartition("-")
    if not dash or not topic or not (partition.isascii() and partition.isdigit()):
        raise CommandRefused(f"'{text}' is not a partition; write it as TOPIC-NUMBER, such as hello-0")
    return topic, int(partition)
