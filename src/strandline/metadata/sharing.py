"""Values that many partitions have in common, kept once; and how a frozen value of theirs is made quickly.

A cluster has few sets of replicas and many partitions: tuples that are equal become one tuple, which makes an image several
times smaller and spares building it again.

Always true: only values that never change are shared; a full cache is emptied, so that it stays as small as its bound.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

K = TypeVar("K")
T = TypeVar("T")

SHARED_MAX = 16_384
"""Different values that one cache keeps: the sets of replicas of a large cluster."""


class Shared(dict[K, T]):
    """What `make` returns for a key, made once: `shared[key]`."""

    __slots__ = ("_make",)

    def __init__(self, make: Callable[[K], T]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, key: K) -> T:
        if len(self) >= SHARED_MAX:
            self.clear()
        value = self[key] = self._make(key)
        return value


tuples: Shared[tuple[Any, ...], tuple[Any, ...]] = Shared(lambda values: values)
"""`tuples[values]` is the one tuple that equals `values`."""


def unfrozen(cls: type) -> Any:
    """A class with the slots of this frozen dataclass whose instances may still be written.

    Such an instance becomes a frozen one when its `__class__` is set to `cls`. A frozen dataclass fills itself field by field
    through `object.__setattr__`, which takes eight times as long: too long for what a node makes once per partition.
    """
    return type(f"Unfrozen{cls.__name__}", cls.__bases__, {"__slots__": cls.__slots__})  # type: ignore[attr-defined]
