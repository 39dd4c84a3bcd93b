"""Error messages of commands, one line each.

Always true: a message is one line; it says what happened and where, and, if that is known, what to do.
"""

from __future__ import annotations

import errno
import os

import click

from strandline.cli.terminal.escaping import echo


class CommandRefused(click.ClickException):
    """A command that does not do what was requested: exit code 1, and the reason in one line."""

    def show(self, file: object = None) -> None:
        echo(f"strandline: {one_line(self.message)}", err=True)


def one_line(text: str) -> str:
    return " ".join(text.split())


def explain(error: BaseException) -> str:
    """One line for any exception that reached the entry point."""
    from strandline.config.errors import ConfigError
    from strandline.errors import KafkaError

    if isinstance(error, KafkaError):
        return one_line(f"{error.message} ({error.code.name})")
    if isinstance(error, ConfigError):
        return one_line(str(error))
    if isinstance(error, OSError):
        return one_line(explain_os(error))
    return one_line(f"unexpected {type(error).__name__}: {error} ({_place(error)}); STRANDLINE_TRACEBACK=1 shows more")


def explain_os(error: OSError) -> str:
    where = f"{error.filename}: " if error.filename else ""
    reason = error.strerror or str(error)
    advice = {
        errno.ENOSPC: "; free some space, or name another directory",
        errno.EACCES: "; choose a path this user may use",
        errno.EMFILE: "; raise the limit of open files (ulimit -n)",
    }.get(error.errno or 0, "")
    return f"{where}{reason}{advice}"


def _place(error: BaseException) -> str:
    """The file and line where the error was raised."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return "nowhere"
    return f"{os.path.basename(trace.tb_frame.f_code.co_filename)}:{trace.tb_lineno}"
