"""Groups that Apache Kafka wrote to its log dir are groups of ours: a node of ours starts on it, and members read on."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from bench.kafka_cluster import kafka_cluster
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from strandline.client.core.group.offsets import OffsetAndMetadata
from strandline.client.flow.group_descriptions import GroupDescription
from tests.judges.java import judge
from tests.system.group_members import QUICK, Group, group
from tests.system.server import eventually, running

pytestmark = pytest.mark.java

PARTITIONS = 4
BY_HAND = {("read", 0): OffsetAndMetadata(3, 0, "three"), ("read", 1): OffsetAndMetadata(0)}
SESSION_MS = 6000
"""Long enough for a node of ours to start on what members of Kafka's groups left before they expire."""
PROPERTIES = dict(each.split("=") for each in QUICK) | {"group.consumer.session.timeout.ms": str(SESSION_MS)}
KINDS = {"classic": "confluent range", "newer": "confluent consumer"}


class Here(NamedTuple):
    bootstrap: str
    directory: Path


class Left(NamedTuple):
    """What Kafka said of its groups before it stopped."""

    data: Path
    written: int
    described: dict[str, GroupDescription]


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> Left:
    """Members are in the middle of their work when Kafka stops; they die with it."""
    judge()
    directory = tmp_path_factory.mktemp("kafka-groups")
    with kafka_cluster(1, properties=PROPERTIES, directory=directory, heap="512m") as kafka:
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
        admin.create_topics([NewTopic("read", PARTITIONS, 1)])["read"].result(30)
        groups = [Group(kafka, "read", PARTITIONS, name) for name in KINDS]
        try:
            for found in groups:
                for instance in (None, "known"):
                    session = {} if found.name == "newer" else {"session.timeout.ms": SESSION_MS}
                    found.start(KINDS[found.name], instance, config=session)
            for found in groups:
                found.divided(2, 2)
            groups[0].write(20)
            groups[1].written = 20
            for found in groups:
                found.reads_all()
                found.committed_to_the_end()
            groups[0].admin.alter_group_offsets("by-hand", BY_HAND)
            groups[0].admin.alter_group_offsets("deleted", BY_HAND)
            assert groups[0].admin.delete_groups(["deleted"]) == {"deleted": None}
            described = {found.name: found.described() for found in groups}
        finally:
            for found in groups:
                found.close()
    return Left(directory / "data-1", 20, {name: each for name, each in described.items() if each is not None})


@pytest.fixture
def here(left: Left, tmp_path: Path) -> Iterator[Here]:
    with running(tmp_path, left.data, PROPERTIES) as server:
        yield Here(server.bootstrap, tmp_path)


def test_groups_go_on_where_kafka_left_them(left: Left, here: Here) -> None:
    with contextlib.ExitStack() as stack:
        groups = [stack.enter_context(group(here, "read", PARTITIONS, name)) for name in KINDS]
        admin = groups[0].admin
        for found in groups:
            assert_the_same(found.described(), left.described[found.name])
        assert {each.group_id for each in admin.list_groups()} == {"classic", "newer", "by-hand"}
        assert admin.list_group_offsets({"by-hand": None})["by-hand"] == BY_HAND
        for found in groups:
            assert found.offsets() == {("read", partition): left.written for partition in range(PARTITIONS)}
            eventually(functools.partial(nobody_is_in, found), "members that are gone expire", 30)
            found.began = found.written = left.written
            found.start(KINDS[found.name])
        for found in groups:
            found.divided(PARTITIONS)
        groups[0].write(5)
        groups[1].written += 5
        for found in groups:
            found.reads_all()
            found.committed_to_the_end()
            (member,) = found.members
            assert {offset for _, _, offset in member.seen()} == set(range(left.written, left.written + 5))
            member.close()


def assert_the_same(mine: GroupDescription | None, theirs: GroupDescription) -> None:
    assert mine is not None
    assert (mine.type, mine.assignor, mine.group_epoch) == (theirs.type, theirs.assignor, theirs.group_epoch)
    assert mine.assignment_epoch == theirs.assignment_epoch
    assert mine.state == theirs.state == "Stable"
    assert sorted(mine.members, key=str) == sorted(theirs.members, key=str)


def nobody_is_in(found: Group) -> bool:
    described = found.described()
    return described is not None and not described.members
