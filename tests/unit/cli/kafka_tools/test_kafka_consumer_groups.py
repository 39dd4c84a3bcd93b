"""`kafka-consumer-groups` keeps Kafka's words where our own command has others."""

# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

import pytest

from strandline.cli.access import connection
from strandline.client import blocking
from tests.unit.cli.groups.in_memory_groups import InMemoryGroups

A = ("hello", 0)


@pytest.fixture
def reset(monkeypatch: pytest.MonkeyPatch, call):
    found = InMemoryGroups({A: 10})
    found.add("readers", {A: 4})
    monkeypatch.setattr(connection, "connect", found.connect)
    monkeypatch.setattr(blocking, "Admin", lambda client: client)
    common = ("--bootstrap-server", "127.0.0.1:1", "--group", "readers", "--reset-offsets", "--dry-run")
    return lambda *arguments: call("kafka-consumer-groups", *common, *arguments)


def test_a_topic_that_is_not_there(reset):
    done = reset("--topic", "nosuch", "--to-earliest")
    assert done.code == 1
    assert done.out == (
        "\nError: Executing consumer group command failed due to This server does not host this topic-partition.\n"
    )


def test_a_time_after_the_last_record_and_one_to_come(reset):
    said = "\nWarn: Partition 0 from topic hello is empty. Falling back to latest known offset.\n"
    for when in (("--to-datetime", "2040-01-01T00:00:00.000"), ("--by-duration", "-PT5M")):
        done = reset("--topic", "hello", *when)
        assert (done.code, done.err) == (0, said)
        assert done.out.splitlines()[-1].split() == ["readers", "hello", "0", "10"]
