"""`configs`: show and change the configuration of topics, brokers and groups."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from strandline.cli.access.options import Access, access_options
from strandline.cli.option_values import key_values
from strandline.cli.terminal.escaping import echo
from strandline.cli.terminal.output import example, json_option, print_json, print_table

if TYPE_CHECKING:
    from strandline.client.flow.descriptions import ConfigResource


def target_options(command: Callable[..., object]) -> Callable[..., object]:
    """Exactly one resource, passed to the command as one argument `one`."""

    @functools.wraps(command)
    def with_target(
        *arguments: object, topic: str | None, broker: int | None, group: str | None, default: bool, **others: object
    ) -> object:
        return command(*arguments, one=_target(topic, broker, group, default), **others)

    target: Callable[..., object] = with_target
    for option in (
        click.option("--default", "default", is_flag=True, help="The default of all brokers."),
        click.option("--group", metavar="NAME", help="A group of the consumer protocol."),
        click.option("--broker", type=int, metavar="ID", help="A broker."),
        click.option("--topic", metavar="NAME", help="A topic."),
    ):
        target = option(target)
    return target


def _target(topic: str | None, broker: int | None, group: str | None, default: bool) -> ConfigResource:
    from strandline.cli.configs.config_admin import resource

    if sum(given is not None for given in (topic, broker, group)) + default != 1:
        raise click.UsageError("name one of --topic NAME, --broker ID, --group NAME and --default")
    if topic is not None:
        return resource("topics", topic)
    if group is not None:
        return resource("groups", group)
    return resource("brokers", "" if default else str(broker))


@click.group(
    epilog=example(
        "strandline configs describe --topic hello", "strandline configs set --topic hello retention.ms=60000"
    )
)
def configs() -> None:
    """Show and change the configuration of topics, brokers and groups."""


@configs.command(epilog=example("strandline configs describe --topic hello --all"))
@target_options
@access_options
@click.option("--all", "all_", is_flag=True, help="Also defaults that were not changed.")
@json_option
def describe(one: ConfigResource, access: Access, all_: bool, as_json: bool) -> None:
    """Show a configuration and the source of each value."""
    from strandline.cli.access.connection import connect_admin
    from strandline.cli.configs.config_admin import SOURCES, read

    with connect_admin(access) as admin:
        entries = read(admin, one, own_only=not all_)
    if as_json:
        print_json(
            [
                {
                    "name": entry.name,
                    "value": entry.value,
                    "source": SOURCES.get(entry.source, str(entry.source)),
                    "read_only": entry.read_only,
                    "sensitive": entry.is_sensitive,
                }
                for entry in entries
            ]
        )
        return
    rows = [(entry.name, entry.value, SOURCES.get(entry.source, entry.source), entry.read_only) for entry in entries]
    print_table(
        ("key", "value", "from", "read-only"), rows, empty="nothing is set here; --all shows the values in effect"
    )


@configs.command(
    "set", epilog=example("strandline configs set --topic hello retention.ms=60000 cleanup.policy=compact")
)
@click.argument("pairs", nargs=-1, required=True, metavar="KEY=VALUE…")
@target_options
@access_options
def set_(pairs: tuple[str, ...], one: ConfigResource, access: Access) -> None:
    """Set keys of a topic, a broker or a group. Other keys are not changed."""
    _change(one, access, key_values(pairs, "KEY=VALUE"), ())
    echo(f"Set {', '.join(pairs)}.")


@configs.command(epilog=example("strandline configs unset --topic hello retention.ms"))
@click.argument("keys", nargs=-1, required=True, metavar="KEY…")
@target_options
@access_options
def unset(keys: tuple[str, ...], one: ConfigResource, access: Access) -> None:
    """Reset keys of a topic, a broker or a group to their defaults."""
    _change(one, access, {}, keys)
    echo(f"Unset {', '.join(keys)}.")


def _change(one: ConfigResource, access: Access, to_set: dict[str, str], to_delete: tuple[str, ...]) -> None:
    from strandline.cli.access.connection import connect_admin
    from strandline.cli.configs.config_admin import change

    with connect_admin(access) as admin:
        change(admin, one, to_set, to_delete)
