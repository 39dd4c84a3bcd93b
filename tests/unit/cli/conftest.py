"""Calls of the command line in this process."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from strandline.cli.main import run


class Ran:
    """What a call left behind."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code = code
        self.out = out
        self.err = err


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """The command line with these arguments, as a process would run it."""

    def call(*arguments: str) -> Ran:
        code = run(list(arguments))
        captured = capsys.readouterr()
        return Ran(code, captured.out, captured.err)

    return call
