"""Shared values: equal ones become one, and the caches stay bounded."""

# mypy: disable-error-code="func-returns-value, redundant-expr"

from __future__ import annotations

import pytest

from strandline.metadata import sharing
from strandline.metadata.image import PartitionImage
from strandline.metadata.sharing import Shared, tuples, unfrozen


def test_equal_tuples_become_one() -> None:
    first, second = tuple(range(3)), tuple(range(3))
    assert first is not second
    assert tuples[first] is tuples[second]


def test_a_full_cache_is_emptied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharing, "SHARED_MAX", 3)
    made: list[int] = []
    squares: Shared[int, int] = Shared(lambda key: made.append(key) or key * key)
    assert [squares[key] for key in (1, 2, 3, 3, 4, 1)] == [1, 4, 9, 9, 16, 1]
    assert made == [1, 2, 3, 4, 1]
    assert len(squares) == 2


def test_what_was_unfrozen_is_a_frozen_value_afterwards() -> None:
    draft = object.__new__(unfrozen(PartitionImage))
    wanted = PartitionImage((1,), (1,), 1, 2, 3)
    for name in PartitionImage.__slots__:
        setattr(draft, name, getattr(wanted, name))
    draft.__class__ = PartitionImage
    assert (draft, hash(draft)) == (wanted, hash(wanted))
    with pytest.raises(AttributeError):
        draft.leader = 5
