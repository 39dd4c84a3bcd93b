"""How the tests are divided among processes (`pytest -n`), and where their time went.

Always true: the tests of a file stay in one process, so that a cluster that belongs to the file is started once; those that start
Spark, which share one, stay in one process too. Histories and mutants, which have nothing in common, go one by one to a process
that is free. What takes long begins first, so that at the end no process works alone.
"""

from __future__ import annotations

from typing import Any

import hypothesis
import pytest

from tests.durations import Durations

# How long one example takes is a matter of the machine, not of the code.
hypothesis.settings.register_profile("strandline", deadline=None)
hypothesis.settings.load_profile("strandline")

SYSTEM, SPARK = "tests/system/", "tests/system/spark/"


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):  # a process of xdist reports to the one that shows the summary
        config.pluginmanager.register(Durations(), "durations-by-folder")


ONE_BY_ONE = ("tests/mutants/", "tests/sim/")
ORDER = (SPARK, SYSTEM, *ONE_BY_ONE)
"""What begins first; all other folders follow."""


def scope_of(nodeid: str) -> str:
    """What stays together in one process."""
    if nodeid.startswith(SPARK):
        return SPARK
    return nodeid if nodeid.startswith(ONE_BY_ONE) else nodeid.partition("::")[0]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    def place(item: pytest.Item) -> int:
        return next((n for n, folder in enumerate(ORDER) if item.nodeid.startswith(folder)), len(ORDER))

    items.sort(key=place)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    from xdist.scheduler import LoadScopeScheduling

    class Scheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return scope_of(nodeid)

    config.option.loadscopereorder = False  # it would put those with the most tests first
    return Scheduling(config, log)
