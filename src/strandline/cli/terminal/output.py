"""The output of commands: tables, JSON and notes.

Always true: results go to stdout, and are plain (no colour, no frame, tabs between columns) unless that is a terminal, where
untrusted text is escaped (`escaping.py`); JSON is ASCII; progress and advice go to stderr; rich is imported only to draw on a
terminal.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import click

from strandline.cli.terminal.escaping import echo, is_terminal
from strandline.escaping import escaped

__all__ = ["example", "is_terminal", "json_option", "note", "print_json", "print_table"]

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")


def print_json(value: object) -> None:
    click.echo(json.dumps(value, indent=2 if is_terminal() else None))


def print_table(columns: Sequence[str], rows: Sequence[Sequence[object]], *, empty: str = "") -> None:
    """Print rows under their headings; without rows, print `empty` on stderr."""
    if not rows:
        if empty:
            note(empty)
        return
    if not is_terminal():
        for row in (columns, *rows):
            echo("\t".join(map(_cell, row)))
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(Text(escaped(_cell(value)), style=_style(value)) for value in row))
    Console().print(table)


def _cell(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (list, tuple)):
        return ",".join(map(str, value))
    return str(value)


_STYLES = {"ok": "green", "yes": "green", "warn": "yellow", "fail": "red", "no": "red"}


def _style(value: object) -> str:
    return _STYLES.get(_cell(value), "")


def note(text: str) -> None:
    """Print a message for the user on stderr; never part of the output."""
    echo(text, err=True)


def example(*lines: str) -> str:
    """The end of a command's help."""
    return "\b\n" + "\n".join(("Example:" if len(lines) == 1 else "Examples:", *(f"  {line}" for line in lines)))
