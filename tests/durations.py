"""Where the time of a test run went: a line for each folder, then the files that took longest.

Always true: the sums count setup, call and teardown of every test once, in whichever process it ran.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import PurePosixPath

import pytest

FILES_SHOWN = 15
"""How many of the slowest files are listed."""
SHOWN_FROM_S = 5.0
"""A run that took less than this in all shows nothing."""


class Durations:
    """A plugin: collects the reports of all processes, and adds a section to the summary."""

    def __init__(self) -> None:
        self._seconds: Counter[str] = Counter()
        self._tests: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        file = report.nodeid.partition("::")[0]
        self._seconds[file] += report.duration  # type: ignore[assignment]
        self._tests[file] += report.when == "call"

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        total = sum(self._seconds.values())
        if total < SHOWN_FROM_S:
            return
        terminalreporter.section("time by folder, summed over all processes")
        for line in self.lines():
            terminalreporter.write_line(line)

    def lines(self) -> list[str]:
        folders: dict[str, float] = defaultdict(float)
        tests: Counter[str] = Counter()
        for file, seconds in self._seconds.items():
            folder = folder_of(file)
            folders[folder] += seconds
            tests[folder] += self._tests[file]
        slowest = sorted(folders.items(), key=lambda item: item[1], reverse=True)
        rows = [_row(folder, seconds, tests[folder]) for folder, seconds in slowest]
        rows.append("")
        rows += [_row(file, seconds, self._tests[file]) for file, seconds in self._seconds.most_common(FILES_SHOWN)]
        return rows


def folder_of(file: str) -> str:
    """`tests/system/test_kill.py` -> `tests/system`; of the unit tests the folder of the package they are about."""
    return str(PurePosixPath(*PurePosixPath(file).parent.parts[:3]))


def _row(name: str, seconds: float, tests: int) -> str:
    return f"{seconds:8.1f} s {tests:6} tests  {name}"
