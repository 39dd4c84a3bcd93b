# mypy: allow-incomplete-defs, allow-untyped-defs, disable-error-code="arg-type"

from __future__ import annotations

import click
import pytest

from strandline.cli.kafka_tools.kafka_flags import KafkaCommand, comma_pairs


@pytest.fixture
def command():
    options = [
        click.Option(["--bootstrap-server", "--boot-server"]),
        click.Option(["--partition"]),
        click.Option(["--partitions"]),
        click.Option(["--print-data-log"], is_flag=True),
    ]
    return KafkaCommand("tool", params=options)


def test_options_may_be_shortened_while_they_are_unambiguous(command):
    assert command.expand(["--boot", "h:1", "--print"]) == ["--bootstrap-server", "h:1", "--print-data-log"]
    assert command.expand(["--boots=h:1"]) == ["--bootstrap-server=h:1"]
    assert command.expand(["--part", "1"]) == ["--part", "1"]
    assert command.expand(["--partition", "1"]) == ["--partition", "1"]


def test_a_value_is_never_taken_for_an_option(command):
    assert command.expand(["--partition", "--print", "--", "--boot"]) == ["--partition", "--print", "--", "--boot"]


def test_brackets_keep_commas_together():
    text = "cleanup.policy=[compact,delete],retention.ms=5"
    assert comma_pairs(text, "--add-config") == {"cleanup.policy": "compact,delete", "retention.ms": "5"}
