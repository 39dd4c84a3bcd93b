"""How the tests are divided among processes (`pytest -n`), and where their time went.

Always true: the tests of a file in tests/system stay in one process, so that a cluster that belongs to the file is started once; of
all that start Spark only one runs at a time, which is what two cores can bear. All others go one by one to whoever is free.
"""

from __future__ import annotations

from typing import Any

import hypothesis
import pytest

from tests.durations import Durations

# How long one example takes is a matter of the machine, not of the code.
hypothesis.settings.register_profile("strandline", deadline=None)
hypothesis.settings.load_profile("strandline")

SYSTEM, SPARK = "tests/system/", "tests/system/test_spark"


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):  # a process of xdist reports to the one that shows the summary
        config.pluginmanager.register(Durations(), "durations-by-folder")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    from xdist.scheduler import LoadScopeScheduling

    class Scheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.partition("::")[0]
            if file.startswith(SPARK):
                return SPARK
            return file if file.startswith(SYSTEM) else nodeid

    return Scheduling(config, log)
