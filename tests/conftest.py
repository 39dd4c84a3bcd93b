"""How the tests are divided among processes (`pytest -n`), and where their time went.

Always true: the tests of a file stay in one process, so that a cluster that belongs to the file is started once; those that share
a Spark stay in one process too, and so do those that start Sparks of their own, after the other system tests: more than two at once
are too many for two cores. Histories and mutants, which have nothing in common, go one by one to a process that is free. What takes
long begins first, so that at the end no process works alone.
"""

from __future__ import annotations

import gc
from collections.abc import Generator
from typing import Any

import hypothesis
import pytest

from tests.durations import Durations
from tests.soak import SOAK

# How long one example takes is a matter of the machine, not of the code.
hypothesis.settings.register_profile("strandline", deadline=None)
hypothesis.settings.load_profile("strandline")

SYSTEM, SPARK = "tests/system/", "tests/system/spark/"
OWN_SPARKS = tuple(f"{SPARK}{name}.py" for name in ("test_cluster", "test_kills", "test_walkthrough"))


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):  # a process of xdist reports to the one that shows the summary
        config.pluginmanager.register(Durations(), "durations-by-folder")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Without the garbage collector: finalizers that parse while pytest does make CPython 3.11 miscount (gh-106905)."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


ONE_BY_ONE = ("tests/mutants/", "tests/sim/")
ORDER: tuple[str | tuple[str, ...], ...] = (SPARK, SYSTEM, OWN_SPARKS, *ONE_BY_ONE)
"""What begins first; all other folders follow."""


def scope_of(nodeid: str) -> str:
    """What stays together in one process."""
    if nodeid.startswith(SPARK):
        return "Sparks of their own" if nodeid.startswith(OWN_SPARKS) else SPARK
    return nodeid if nodeid.startswith(ONE_BY_ONE) else nodeid.partition("::")[0]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    def place(item: pytest.Item) -> int:
        if item.nodeid.startswith(OWN_SPARKS):
            return ORDER.index(OWN_SPARKS)
        return next((n for n, folder in enumerate(ORDER) if item.nodeid.startswith(folder)), len(ORDER))

    items.sort(key=place)
    left_out = [] if SOAK else [item for item in items if item.get_closest_marker("soak")]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    from xdist.scheduler import LoadScopeScheduling

    class Scheduling(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            return scope_of(nodeid)

    config.option.loadscopereorder = False  # it would put those with the most tests first
    return Scheduling(config, log)
