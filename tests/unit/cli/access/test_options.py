# mypy: allow-incomplete-defs, allow-untyped-calls, allow-untyped-decorators, allow-untyped-defs

from __future__ import annotations

import click
import pytest

from strandline.cli.access.options import DEFAULT_SERVER, ENVIRONMENT, Access, access_options, kafka_access_options


def seen(decorate, *arguments):
    """The access that a command gets for these arguments."""
    found = []

    @click.command()
    @decorate
    @click.option("--other")
    def command(access: Access, other: str | None) -> None:
        found.append(access)

    command.main(list(arguments), standalone_mode=False)
    return found[0]


def test_our_own_commands_fall_back_to_the_environment_and_then_to_this_machine(monkeypatch):
    monkeypatch.delenv(ENVIRONMENT, raising=False)
    assert seen(access_options) == Access(None, None, DEFAULT_SERVER)
    assert seen(access_options, "-b", "h:1", "--other", "x").bootstrap_server == "h:1"
    monkeypatch.setenv(ENVIRONMENT, "there:2")
    assert seen(access_options).fallback == "there:2"


def test_kafkas_tools_fall_back_to_nothing_and_know_the_file_by_two_names(monkeypatch, tmp_path):
    monkeypatch.setenv(ENVIRONMENT, "there:2")
    path = tmp_path / "client.properties"
    path.touch()
    for name in ("--command-config", "--producer.config"):
        assert seen(kafka_access_options("--producer.config"), name, str(path)) == Access(None, str(path), None)


def test_a_file_that_is_not_there_is_wrong_usage(tmp_path):
    with pytest.raises(click.UsageError, match="does not exist"):
        seen(access_options, "--command-config", str(tmp_path / "none"))
