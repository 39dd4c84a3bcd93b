r"""Escaping of untrusted text on a terminal (SEC-H3).

A group id, a client id, a header or a record's value may hold any bytes. A terminal would obey control characters in them: change
its title or its colours, or overwrite the lines before. They are printed escaped instead: `\x1b`.

Always true: untrusted text sends no control character to a terminal; output to a pipe or a file is not changed.
"""

from __future__ import annotations

import sys
from typing import TextIO

import click

from strandline.escaping import escaped, escaped_text


def is_terminal(stream: TextIO | None = None) -> bool:
    return bool((sys.stdout if stream is None else stream).isatty())


def shown(text: str, *, err: bool = False) -> str:
    """A name or a value for stdout, or stderr: escaped if that is a terminal."""
    return escaped(text) if is_terminal(sys.stderr if err else sys.stdout) else text


def echo(text: object = "", *, err: bool = False, nl: bool = True) -> None:
    """Print a line that may hold untrusted text. Styled text goes to `click.echo` instead, after each part was escaped."""
    stream = sys.stderr if err else sys.stdout
    if is_terminal(stream):
        click.echo(escaped_text(str(text)), err=err, nl=nl)
    else:
        # With `color`, click does not change the text.
        click.echo(str(text), err=err, nl=nl, color=True)
