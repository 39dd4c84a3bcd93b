from __future__ import annotations

from typing import Any

import pytest

from strandline.coordinator.record import CoordinatorRecord
from strandline.groups import framing
from strandline.groups.records import OffsetCommitKey, OffsetCommitValue
from strandline.histories.groups.observation import GroupObservation
from strandline.histories.judges.groups.acknowledged_is_logged import AcknowledgedIsLogged
from strandline.records.batch import BatchBuilder
from strandline.records.header import assign

from ..replication.stage import KEY
from .stage import GroupStage, broken, stage


@pytest.fixture(autouse=True)
def offsets_are_in_t(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one partition that the stage has."""
    monkeypatch.setattr(GroupObservation, "offsets_key", KEY)


def write(story: GroupStage, offset: int) -> None:
    """The coordinator appends a commit."""
    key = OffsetCommitKey(group="g", topic="t", partition=0)
    value = OffsetCommitValue(offset=offset, leader_epoch=-1, metadata="", commit_timestamp=1, expire_timestamp=-1)
    builder = BatchBuilder()
    builder.append(*framing.encode(CoordinatorRecord(key, value)), timestamp=1)
    log: Any = story.replicas.partition(1).log
    batch = builder.build()
    assign(batch, log.log_end_offset, 0)
    log.inode.data += batch
    log._ends.append(log.log_end_offset + 1)
    log._positions.append(len(log.inode.data))
    story.replicas.look(1)


def test_what_is_committed_may_be_acknowledged() -> None:
    story = stage(AcknowledgedIsLogged)
    write(story, 5)
    story.replicas.commit(1, 1)
    story.commit(5)


def test_what_is_not_committed_may_not() -> None:
    story = stage(AcknowledgedIsLogged)
    write(story, 5)
    with broken(AcknowledgedIsLogged):
        story.commit(5)


def test_what_was_not_written_may_not() -> None:
    story = stage(AcknowledgedIsLogged)
    write(story, 5)
    story.replicas.commit(1, 1)
    with broken(AcknowledgedIsLogged):
        story.commit(6)


def test_what_was_refused_need_not_be_there() -> None:
    stage(AcknowledgedIsLogged).commit(6, code=27)
