from __future__ import annotations

from typing import Any

import pytest

from strandline.coordinator.record import CoordinatorRecord
from strandline.groups import framing
from strandline.groups.records import OffsetCommitKey
from strandline.histories.groups.observation import GroupObservation
from strandline.histories.judges.groups.deleted_is_tombstoned import DeletedIsTombstoned
from strandline.records.batch import BatchBuilder
from strandline.records.header import assign

from ..replication.stage import KEY
from .stage import GroupStage, broken, stage
from .test_acknowledged_is_logged import write


@pytest.fixture(autouse=True)
def offsets_are_in_t(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GroupObservation, "offsets_key", KEY)


def bury(story: GroupStage) -> None:
    """The coordinator appends a tombstone of what `write` wrote."""
    builder = BatchBuilder()
    key, _ = framing.encode(CoordinatorRecord(OffsetCommitKey(group="g", topic="t", partition=0), None))
    builder.append(key, None, timestamp=1)
    log: Any = story.replicas.partition(1).log
    batch = builder.build()
    assign(batch, log.log_end_offset, 0)
    log.inode.data += batch
    log._ends.append(log.log_end_offset + 1)
    log._positions.append(len(log.inode.data))
    story.replicas.look(1)


def test_what_is_deleted_is_buried() -> None:
    story = stage(DeletedIsTombstoned)
    write(story, 5)
    bury(story)
    story.delete()


def test_what_is_left_is_seen() -> None:
    story = stage(DeletedIsTombstoned)
    write(story, 5)
    bury(story)
    write(story, 6)
    with broken(DeletedIsTombstoned):
        story.delete()


def test_a_deletion_that_was_refused_buries_nothing() -> None:
    story = stage(DeletedIsTombstoned)
    write(story, 5)
    story.delete(code=68)
