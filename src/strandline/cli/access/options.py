"""The options that name a cluster: `--bootstrap-server` and `--command-config`.

Commands that controllers can answer by themselves also accept `--bootstrap-controller` instead of `--bootstrap-server`.

Always true: the command line wins over the file, the file over the environment, and that over the default. Kafka's tools have
neither environment nor default.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import NamedTuple, TypeVar

import click

F = TypeVar("F", bound=Callable[..., object])

DEFAULT_SERVER = "127.0.0.1:9092"
ENVIRONMENT = "STRANDLINE_BOOTSTRAP_SERVER"


class Access(NamedTuple):
    """The given addresses and file of a cluster; `fallback` is used if neither of them names a server."""

    bootstrap_server: str | None = None
    command_config: str | None = None
    fallback: str | None = None
    bootstrap_controller: str | None = None


def access_options(command: F) -> F:
    """The two options of our own commands, passed to the command as one argument `access`."""
    return _options(
        command,
        ("--bootstrap-server", "-b"),
        ("--command-config",),
        f"Brokers to ask first; ${ENVIRONMENT} if not given.  [default: {DEFAULT_SERVER}]",
        lambda: os.environ.get(ENVIRONMENT) or DEFAULT_SERVER,
    )


def kafka_access_options(*older_names: str, short: tuple[str, ...] = ()) -> Callable[[F], F]:
    """The two options of Kafka's tools; some accept older names of the file too, and some a letter for the servers."""

    def decorate(command: F) -> F:
        return _options(
            command,
            ("--bootstrap-server", "--boot-server", *short),
            ("--command-config", *older_names),
            "Brokers to ask first.  [required, here or in FILE]",
            lambda: None,
        )

    return decorate


def or_controllers(options: Callable[[F], F], *short: str) -> Callable[[F], F]:
    """The same options, and `--bootstrap-controller` as an alternative."""

    def decorate(command: F) -> F:
        @functools.wraps(command)
        def with_controllers(
            *arguments: object, access: Access, bootstrap_controller: str | None, **others: object
        ) -> object:
            if bootstrap_controller is not None and access.bootstrap_server is not None:
                raise click.UsageError("give --bootstrap-server or --bootstrap-controller, not both")
            return command(*arguments, access=access._replace(bootstrap_controller=bootstrap_controller), **others)

        option = click.option(
            "--bootstrap-controller", *short, metavar="HOST:PORT,…", help="Controllers to ask, instead of brokers."
        )
        return options(option(with_controllers))  # type: ignore[arg-type]

    return decorate


def _options(
    command: F, server: tuple[str, ...], file: tuple[str, ...], help_: str, fallback: Callable[[], str | None]
) -> F:
    @functools.wraps(command)
    def with_access(
        *arguments: object, bootstrap_server: str | None, command_config: str | None, **options: object
    ) -> object:
        return command(*arguments, access=Access(bootstrap_server, command_config, fallback()), **options)

    server_option = click.option(*server, "bootstrap_server", metavar="HOST:PORT,…", help=help_)
    return server_option(command_config_option(*file)(with_access))  # type: ignore[return-value]


def command_config_option(*names: str) -> Callable[[F], F]:
    return click.option(
        *names,
        "command_config",
        type=click.Path(exists=True, dir_okay=False),
        metavar="FILE",
        help="Client properties, by Kafka's names: security.protocol, ssl.truststore.location, …",
    )
