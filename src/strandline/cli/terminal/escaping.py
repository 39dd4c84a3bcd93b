r"""What strangers wrote, on somebody's terminal (SEC-H3).

A group id, a client id, a header or a record's value is whatever its writer made it. A terminal obeys the control characters in it:
it would change its title, its colours, or what the lines before seem to say. So they are shown as what they are: `\x1b`.

Always true: on a terminal no control character that was not ours arrives; what goes into a pipe or a file is left as it is.
"""

from __future__ import annotations

import sys
from typing import Any

import click

from strandline.escaping import escaped, escaped_text


def is_terminal(stream: Any = None) -> bool:
    return bool((sys.stdout if stream is None else stream).isatty())


def shown(text: str, *, err: bool = False) -> str:
    """A name or a value on its way to stdout, or stderr: escaped if that is a terminal."""
    return escaped(text) if is_terminal(sys.stderr if err else sys.stdout) else text


def echo(text: object = "", *, err: bool = False, nl: bool = True) -> None:
    """A line that may hold what strangers wrote. What is styled goes to `click.echo`, each part of it escaped before."""
    stream = sys.stderr if err else sys.stdout
    if is_terminal(stream):
        click.echo(escaped_text(str(text)), err=err, nl=nl)
    else:
        # With `color` click leaves the text alone.
        click.echo(str(text), err=err, nl=nl, color=True)
