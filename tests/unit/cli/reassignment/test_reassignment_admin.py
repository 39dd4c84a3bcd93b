# mypy: allow-incomplete-defs, allow-untyped-defs, disable-error-code="arg-type"

from __future__ import annotations

from types import SimpleNamespace

import pytest

from strandline.cli.errors import CommandRefused
from strandline.cli.reassignment import reassignment_admin
from strandline.cli.reassignment.reassignment_admin import (
    PartitionMoveState,
    await_in_place,
    check_log_dirs,
    replica_log_dirs,
)
from strandline.cli.reassignment.reassignment_plan import ReassignmentPlan
from strandline.client.flow.descriptions import LogDirDescription, LogDirReplica


def log_dir(path: str, *partitions: int) -> LogDirDescription:
    return LogDirDescription(path, None, 0, 0, {("t", index): LogDirReplica(10, 0, False) for index in partitions})


DIRS = {1: [log_dir("/a", 0), log_dir("/b", 1)], 2: [log_dir("/only")]}


def named(index: int, broker: int, path: str) -> ReassignmentPlan:
    return ReassignmentPlan(((("t", index), (broker,)),), {("t", index, broker): path})


def test_where_replicas_are():
    assert replica_log_dirs(DIRS) == {("t", 0, 1): "/a", ("t", 1, 1): "/b"}


def test_a_log_dir_may_be_named_if_nothing_has_to_move_for_it():
    check_log_dirs(named(0, 1, "/a"), DIRS)
    check_log_dirs(named(0, 2, "/only"), DIRS)
    check_log_dirs(ReassignmentPlan(((("t", 0), (9,)),), {}), DIRS)


@pytest.mark.parametrize(
    ("plan", "reason"),
    [
        (named(0, 1, "/b"), "t-0 cannot be moved to log dir /b of broker 1 (it is in /a)"),
        (named(7, 1, "/b"), "t-7 cannot be moved to log dir /b of broker 1 (the broker chooses"),
        (named(0, 2, "/other"), "t-0 cannot be moved to log dir /other of broker 2"),
        (named(0, 3, "/a"), "t-0 cannot be moved to log dir /a of broker 3"),
    ],
)
def test_moves_between_log_dirs_are_refused(plan, reason):
    with pytest.raises(CommandRefused) as refused:
        check_log_dirs(plan, DIRS)
    assert refused.value.message.startswith(reason)
    assert "moves between the log dirs of one broker are not supported" in refused.value.message


def test_states():
    assert PartitionMoveState((1, 2), (1, 2), True).reached
    assert not PartitionMoveState((1, 2), (1, 2), False).reached
    assert not PartitionMoveState((2, 1), (1, 2), True).reached


class _LaggingAdmin:
    """A cluster whose controller has ended a move, and whose broker has not applied that yet."""

    def __init__(self, *replicas: tuple[int, ...]) -> None:
        self.described = list(replicas)

    def list_partition_reassignments(self) -> dict[object, object]:
        return {}

    def describe_topics(self, topics: set[str]) -> dict[str, object]:
        replicas = self.described.pop(0) if len(self.described) > 1 else self.described[0]
        return {"t": SimpleNamespace(partitions=[SimpleNamespace(partition=0, replicas=replicas)])}


def test_a_move_that_has_ended_is_in_place_once_the_asked_broker_knows_it(monkeypatch):
    monkeypatch.setattr(reassignment_admin, "METADATA_POLL_S", 0)
    admin = _LaggingAdmin((1, 2), (1, 2), (3, 4))
    await_in_place(admin, {("t", 0): (3, 4)})
    assert admin.described == [(3, 4)]


def test_a_partition_that_stays_elsewhere_is_not_waited_for_without_end(monkeypatch):
    monkeypatch.setattr(reassignment_admin, "METADATA_TIMEOUT_S", 0)
    await_in_place(_LaggingAdmin((1, 2)), {("t", 0): (3, 4)})
