"""How far packing is, while it runs.

Always true: it is drawn on stderr, as a bar on a terminal and as one line for each step elsewhere.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from strandline.cli.terminal.output import is_terminal, note


@contextmanager
def display() -> Iterator[Callable[[str, int, int], None]]:
    """What packing is to call with a step, how much of it is done, and how much there is."""
    if not is_terminal(sys.stderr):
        yield Lines().show
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("packing", total=1)
        yield lambda what, done, total: bar.update(task, description=what, completed=done, total=total)


class Lines:
    """Where nobody watches."""

    def __init__(self) -> None:
        self._step = ""

    def show(self, what: str, done: int, total: int) -> None:
        if what != self._step:
            self._step = what
            note(f"packing: {what}")
