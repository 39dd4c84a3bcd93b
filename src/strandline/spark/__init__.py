"""Topics as Spark sources and sinks, through PySpark: `format("strandline")`.

Always true: importing this package imports neither PySpark nor numba; each name is loaded when it is first asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from strandline.spark.behind import offsets_behind_latest
    from strandline.spark.starting import session

__all__ = ["offsets_behind_latest", "session"]

# No module here has the name of one of these: importing it would put the module in its place.
_HOMES = {"offsets_behind_latest": "behind", "session": "starting"}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
