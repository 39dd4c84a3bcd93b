"""The progress of a search of histories: seeds, seeds per second, failures.

Always true: it is shown on stderr, as a bar on a terminal and as a line every half minute elsewhere.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Protocol

from strandline.cli.errors import one_line
from strandline.cli.terminal.output import is_terminal, note

if TYPE_CHECKING:
    from rich.progress import TaskID

    from strandline.histories.tally import Tally

LINE_EVERY_S = 30.0


class SearchDisplay(Protocol):
    """A display of the progress of a search."""

    def show(self, tally: Tally) -> None: ...

    def say(self, text: str) -> None:
        """Print a message at once."""

    def shrinking(self, seed: int, runs: int, runs_max: int, faults: int) -> None: ...

    def close(self) -> None: ...


def display(seeds: int | None, time_s: float | None) -> SearchDisplay:
    """The display of a search that ends after this many seeds, or seconds, or both."""
    return SearchBar(seeds, time_s) if is_terminal(sys.stderr) else SearchLines(seeds)


class SearchLines:
    """Without a terminal: lines."""

    def __init__(self, seeds: int | None) -> None:
        self._of = "" if seeds is None else f" of {seeds}"
        self._began = self._last_line_at = time.monotonic()

    def show(self, tally: Tally) -> None:
        now = time.monotonic()
        if now - self._last_line_at < LINE_EVERY_S:
            return
        self._last_line_at = now
        per_s = tally.seeds / (now - self._began)
        note(f"{tally.seeds}{self._of} seeds, {per_s:.1f} per second, {tally.failed} failed")

    def say(self, text: str) -> None:
        note(one_line(text))

    def shrinking(self, seed: int, runs: int, runs_max: int, faults: int) -> None:
        now = time.monotonic()
        if now - self._last_line_at >= LINE_EVERY_S:
            self._last_line_at = now
            note(f"seed {seed} with fewer faults: {faults} after {runs} runs")

    def close(self) -> None:
        pass


class SearchBar:
    """On a terminal: a bar."""

    def __init__(self, seeds: int | None, time_s: float | None) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

        self._seeds = seeds
        self._time_s = time_s
        self._began = time.monotonic()
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[remark]}"),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=Console(stderr=True),
        )
        self._search: TaskID | None = None
        self._shrinking: TaskID | None = None
        self._bar.start()

    def show(self, tally: Tally) -> None:
        if self._search is None:
            self._search = self._bar.add_task("seeds", total=1.0, remark="")
        elapsed_s = time.monotonic() - self._began
        by_seeds = 0.0 if self._seeds is None else tally.seeds / self._seeds
        by_time = 0.0 if self._time_s is None else min(elapsed_s / self._time_s, 1.0)
        colour = "red" if tally.failed else "green"
        of = "" if self._seeds is None else f"/{self._seeds}"
        remark = f"{tally.seeds}{of}  {tally.seeds / elapsed_s:.1f} per second  [{colour}]{tally.failed} failed[/]"
        self._bar.update(self._search, completed=max(by_seeds, by_time), remark=remark)

    def say(self, text: str) -> None:
        self._bar.console.print(one_line(text), markup=False, highlight=False)

    def shrinking(self, seed: int, runs: int, runs_max: int, faults: int) -> None:
        if self._shrinking is None:
            self._shrinking = self._bar.add_task("", total=runs_max, remark="")
        description = f"fewer faults for seed {seed}"
        remark = f"{faults} left after {runs} runs"
        self._bar.update(self._shrinking, description=description, completed=runs, remark=remark)

    def close(self) -> None:
        self._bar.stop()
