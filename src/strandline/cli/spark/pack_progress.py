"""The progress of packing.

Always true: it is shown on stderr, as a bar on a terminal and as one line for each step elsewhere.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from strandline.cli.terminal.output import is_terminal, note


@contextmanager
def display() -> Iterator[Callable[[str, int, int], None]]:
    """A callback for packing: the step, how much of it is done, and its total."""
    if not is_terminal(sys.stderr):
        yield PackingLines().show
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("packing", total=1)
        yield lambda what, done, total: bar.update(task, description=what, completed=done, total=total)


class PackingLines:
    """Without a terminal: lines."""

    def __init__(self) -> None:
        self._step = ""

    def show(self, what: str, done: int, total: int) -> None:
        if what != self._step:
            self._step = what
            note(f"packing: {what}")
