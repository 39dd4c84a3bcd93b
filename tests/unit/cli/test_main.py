from __future__ import annotations

import subprocess
import sys

import click
import pytest

from strandline.cli import main as entrance
from strandline.cli.main import COMMANDS, Entry, strandline

NAMES = [name for entries in COMMANDS.values() for name in entries]


def test_help_lists_every_command_in_its_section(call):
    ran = call("--help")
    assert ran.code == 0
    assert all(f"  {name} " in ran.out for name in NAMES)
    assert ran.out.index("A cluster:") < ran.out.index("  up ") < ran.out.index("Kafka's own tools:")


def test_help_imports_no_command_and_nothing_heavy():
    code = """
import sys
from strandline.cli.main import run
run(["--help"])
heavy = {"rich", "asyncio", "structlog", "kio", "uvloop", "strandline.config.node", "strandline.cli.up", "subprocess"}
sys.exit(", ".join(sorted(heavy & sys.modules.keys())) or 0)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


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
    monkeypatch.setitem(COMMANDS["A cluster"], "broken", Entry("main", "broken", ""))
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
    monkeypatch.setitem(COMMANDS["A cluster"], "three", Entry("main", "three", ""))
    assert call("three").code == 3
