"""Progress as offsets of a group: what is committed when, and what a coordinator in trouble does to the query."""

# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

import logging

import pytest

from strandline.client.blocking import Admin
from strandline.client.core.group.offsets import OffsetAndMetadata
from strandline.errors import ErrorCode, KafkaError
from strandline.ids import ZERO_UUID
from strandline.spark.checkpointed_offsets import StreamOffsets
from strandline.spark.errors import OptionError
from strandline.spark.progress import REPEAT_AFTER_S, TRY_AGAIN_AFTER_S, GroupProgress


class Coordinator:
    """Takes commits, or answers with `error`."""

    def __init__(self) -> None:
        self.commits: list[dict[tuple[str, int], int]] = []
        self.error: KafkaError | None = None

    def alter_group_offsets(self, group_id, offsets: dict[tuple[str, int], OffsetAndMetadata]):
        assert group_id == "g"
        self.commits.append({key: committed.offset for key, committed in offsets.items()})
        return dict.fromkeys(offsets, self.error)


@pytest.fixture
def coordinator():
    return Coordinator()


@pytest.fixture
def clock():
    return [0.0]


@pytest.fixture
def progress(coordinator, clock):
    admin: Admin = coordinator
    return GroupProgress(admin, "g", lambda: clock[0])


def at(**offsets: int) -> StreamOffsets:
    """p0=5 is partition 0 at offset 5."""
    return StreamOffsets.of({"t": ZERO_UUID}, {("t", int(name[1:])): offset for name, offset in offsets.items()})


def test_only_what_changed_is_committed(progress, coordinator) -> None:
    progress.finished(at(p0=1, p1=1))
    progress.finished(at(p0=1, p1=1))
    progress.finished(at(p0=1, p1=2))
    assert coordinator.commits == [{("t", 0): 1, ("t", 1): 1}, {("t", 1): 2}]


def test_an_idle_query_tells_it_again_before_it_expires(progress, coordinator, clock) -> None:
    progress.finished(at(p0=1))
    clock[0] = REPEAT_AFTER_S
    progress.finished(at(p0=1))
    assert coordinator.commits == [{("t", 0): 1}] * 2


def test_a_commit_that_fails_is_tried_again_later_and_fails_nothing(
    progress, coordinator, clock, caplog: pytest.LogCaptureFixture
) -> None:
    coordinator.error = KafkaError(ErrorCode.NOT_COORDINATOR, "moved")
    with caplog.at_level(logging.WARNING, "strandline.spark"):
        progress.finished(at(p0=1))
        progress.finished(at(p0=2))
    assert len(coordinator.commits) == 1, "it rests"
    assert "group 'g' does not show this query's progress now: NOT_COORDINATOR: moved" in caplog.text
    clock[0], coordinator.error = TRY_AGAIN_AFTER_S, None
    progress.finished(at(p0=3))
    assert coordinator.commits[-1] == {("t", 0): 3}


def test_a_first_commit_that_can_never_succeed_is_a_wrong_option(progress, coordinator) -> None:
    coordinator.error = KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
    with pytest.raises(OptionError, match="option 'groupId': group 'g' has consumers of its own"):
        progress.finished(at(p0=1))


def test_later_ones_are_warnings(progress, coordinator, caplog: pytest.LogCaptureFixture) -> None:
    progress.finished(at(p0=1))
    coordinator.error = KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
    with caplog.at_level(logging.WARNING, "strandline.spark"):
        progress.finished(at(p0=2))
    assert "UNKNOWN_MEMBER_ID" in caplog.text
