from __future__ import annotations

import pytest

from strandline.histories.groups.observation import GroupObservation
from strandline.histories.judges.groups.answers_committed import AnswersCommitted

from ..replication.stage import KEY
from .stage import broken, stage
from .test_acknowledged_is_logged import write


@pytest.fixture(autouse=True)
def offsets_are_in_t(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GroupObservation, "offsets_key", KEY)


def test_what_is_committed_may_be_told() -> None:
    story = stage(AnswersCommitted)
    write(story, 5)
    story.replicas.commit(1, 1)
    write(story, 6)
    story.fetch(5)


def test_what_is_not_may_not() -> None:
    story = stage(AnswersCommitted)
    write(story, 5)
    story.replicas.commit(1, 1)
    write(story, 6)
    with broken(AnswersCommitted):
        story.fetch(6)


def test_the_same_offset_may_be_committed_twice() -> None:
    story = stage(AnswersCommitted)
    write(story, 5)
    story.replicas.commit(1, 1)
    write(story, 5)
    story.fetch(5)
