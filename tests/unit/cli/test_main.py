# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

import errno
import io
import subprocess
import sys

import click
import pytest

from strandline.cli import main as entrance
from strandline.cli.errors import CommandRefused
from strandline.cli.main import COMMANDS, CommandEntry, strandline
from strandline.errors import ErrorCode, KafkaError

NAMES = [name for entries in COMMANDS.values() for name in entries]


def test_help_lists_every_command_in_its_section(call):
    ran = call("--help")
    assert ran.code == 0
    assert all(f"  {name} " in ran.out for name in NAMES)
    assert ran.out.index("A cluster:") < ran.out.index("  up ") < ran.out.index("Kafka's own tools:")


def test_help_imports_no_command_and_nothing_heavy():
    imported = modules_after("--help")
    ours = {name for name in imported if name.split(".")[0] == "strandline"}
    assert ours == {"strandline", "strandline.cli", "strandline.cli.main"}
    heavy = {
        "rich",
        "asyncio",
        "structlog",
        "kio",
        "uvloop",
        "msgspec",
        "javaproperties",
        "cramjam",
        "ssl",
        "subprocess",
    }
    assert not heavy & imported


@pytest.mark.parametrize("name", NAMES)
def test_the_help_of_a_command_imports_no_client_and_no_node(name):
    imported = modules_after(name, "--help")
    heavy = {"rich", "asyncio", "structlog", "kio", "uvloop", "msgspec", "javaproperties", "cramjam", "ssl"}
    layers = {"node", "api", "client", "wire", "records", "log", "runtime", "config"}
    assert not imported & (heavy | {f"strandline.{layer}" for layer in layers})


def modules_after(*arguments: str) -> set[str]:
    """What a fresh interpreter has imported after a call."""
    code = f"""
import sys
from strandline.cli.main import run
code = run({list(arguments)!r})
sys.stderr.write("\\n".join(sys.modules))
sys.exit(code)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return set(done.stderr.splitlines())


@pytest.mark.parametrize("name", NAMES)
def test_every_command_has_help_with_an_example(call, name):
    ran = call(name, "--help")
    assert ran.code == 0
    assert "Example" in ran.out
    assert f"strandline {name}" in ran.out


def test_every_subcommand_has_help_with_an_example(call):
    context = click.Context(strandline)
    for name in NAMES:
        command = strandline.get_command(context, name)
        for child in getattr(command, "commands", {}):
            ran = call(name, child, "--help")
            assert ran.code == 0
            assert "Example" in ran.out, f"{name} {child}"


def test_a_wrong_name_is_wrong_usage_and_names_the_right_one(call):
    ran = call("topic")
    assert ran.code == 2
    assert "did you mean 'topics'?" in ran.err


def test_a_command_may_be_written_as_kafkas_script(call):
    assert call("/usr/local/kafka/bin/kafka-dump-log.sh", "--help").code == 0


def test_version(call):
    assert call("--version").out.startswith("strandline ")


def test_an_unexpected_failure_is_one_line(call, monkeypatch):
    @click.command()
    def broken() -> None:
        raise ZeroDivisionError("two\nlines")

    monkeypatch.setattr(entrance, "broken", broken, raising=False)
    monkeypatch.setitem(COMMANDS["A cluster"], "broken", CommandEntry("main", ""))
    ran = call("broken")
    assert ran.code == 1
    assert ran.out == ""
    assert ran.err.count("\n") == 1
    assert ran.err.startswith("strandline: unexpected ZeroDivisionError: two lines (test_main.py:")


def test_the_exit_code_of_a_command_is_that_of_the_process(call, monkeypatch):
    @click.command()
    def three() -> int:
        return 3

    monkeypatch.setattr(entrance, "three", three, raising=False)
    monkeypatch.setitem(COMMANDS["A cluster"], "three", CommandEntry("main", ""))
    assert call("three").code == 3


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


HOSTILE = "\x1b]0;owned\x07\u202e"
SHOWN = r"\x1b]0;owned\x07\u202e"


@pytest.mark.parametrize(
    "error",
    [
        KafkaError(ErrorCode.INVALID_REQUEST, HOSTILE),
        OSError(errno.ENOENT, "No such file", HOSTILE),
        ZeroDivisionError(HOSTILE),
        CommandRefused(HOSTILE),
        click.ClickException(HOSTILE),
        click.UsageError(HOSTILE),
        click.BadParameter(HOSTILE),
        click.FileError(HOSTILE, HOSTILE),
    ],
    ids=lambda error: type(error).__name__,
)
def test_what_an_error_says_does_not_reach_a_terminal_as_control_characters(monkeypatch, error):
    """SEC-H3: what a server answered, or a file is called."""

    @click.command()
    def broken() -> None:
        raise error

    monkeypatch.setattr(entrance, "broken", broken, raising=False)
    monkeypatch.setitem(COMMANDS["A cluster"], "broken", CommandEntry("main", ""))
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    assert entrance.run(["broken"])
    assert SHOWN in terminal.getvalue()
    assert not {"\x1b", "\x07", "\u202e"} & set(terminal.getvalue())


def test_an_error_in_a_pipe_is_left_as_it_is(call):
    ran = call(HOSTILE)
    assert ran.code == 2
    assert f"no command '{HOSTILE}'" in ran.err
