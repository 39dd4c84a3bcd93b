from __future__ import annotations

from strandline.histories.compaction.history import FoundRecord, KeyedHistory
from strandline.histories.judges.compaction import last_value_survives


def wrote(*sends: tuple[str, str | None, int | None]) -> KeyedHistory:
    """Key, value (None: a tombstone) and the offset of the acknowledgement, if any."""
    history = KeyedHistory()
    for key, value, offset in sends:
        history.note_sent(key.encode(), None if value is None else value.encode()).offset = offset
    return history


def kept(*records: tuple[int, str, str | None]) -> list[FoundRecord]:
    return [FoundRecord(o, k.encode(), None if v is None else v.encode()) for o, k, v in records]


def found(history: KeyedHistory, records: list[FoundRecord]) -> list[str]:
    return list(last_value_survives.judge(history, "n1", records))


THREE = (("k", "a", 0), ("j", "b", 1), ("k", "c", 2))


def test_superseded_values_may_be_there_or_not() -> None:
    assert not found(wrote(*THREE), kept((0, "k", "a"), (1, "j", "b"), (2, "k", "c")))
    assert not found(wrote(*THREE), kept((1, "j", "b"), (2, "k", "c")))


def test_the_last_value_must_be_there() -> None:
    assert found(wrote(*THREE), kept((0, "k", "a"), (1, "j", "b")))
    assert found(wrote(*THREE), kept((2, "k", "c")))


def test_at_its_offset() -> None:
    assert found(wrote(*THREE), kept((1, "j", "b"), (3, "k", "c")))
    assert found(wrote(*THREE), kept((1, "j", "b"), (2, "k", "b")))


def test_what_nobody_wrote_is_not() -> None:
    assert found(wrote(*THREE), kept((1, "j", "b"), (2, "k", "c"), (3, "k", "?")))


def test_what_nobody_knows_of_may_be_the_last() -> None:
    history = wrote(*THREE, ("k", "d", None))
    assert not found(history, kept((1, "j", "b"), (2, "k", "c")))
    assert not found(history, kept((1, "j", "b"), (3, "k", "d")))


def test_what_was_deleted_does_not_come_back() -> None:
    history = wrote(("k", "a", 0), ("k", None, 1))
    assert not found(history, [])
    assert not found(history, kept((1, "k", None)))
    assert not found(history, kept((0, "k", "a"), (1, "k", None)))
    assert found(history, kept((0, "k", "a")))


def test_a_deleted_value_may_stay_where_the_tombstone_came_too_late() -> None:
    history = wrote(("k", "a", 0), ("k", None, 1), ("j", "b", 2), ("j", None, 3))
    records = kept((0, "k", "a"), (2, "j", "b"))
    assert len(list(last_value_survives.judge(history, "n1", records, {b"k"}))) == 1, "of the other key it was in time"
    assert not list(last_value_survives.judge(history, "n1", records, {b"k", b"j"}))
