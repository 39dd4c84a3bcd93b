"""A record of a coordinator's topic: a key of some type, and a value or none.

The topics (`groups/records.py` has those of `__consumer_offsets`) declare their keys and values below these classes.

Always true: a key's type says what its values are; the version of a value is written before it.
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple


class CoordinatorValue:
    """What all values have. One that has had a single version states nothing."""

    __slots__ = ()
    VERSIONS: ClassVar[range] = range(1)
    FLEXIBLE: ClassVar[int] = 0
    GONE: ClassVar[dict[str, int]] = {}
    """Fields that versions from this one on no longer have."""

    @property
    def version_to_write(self) -> int:
        return self.VERSIONS[-1]


class CoordinatorKey:
    """What all keys have."""

    __slots__ = ()
    TYPE: ClassVar[int]
    VALUE: ClassVar[type[CoordinatorValue]]


class CoordinatorRecord(NamedTuple):
    key: CoordinatorKey
    value: CoordinatorValue | None
    """None: a tombstone."""
