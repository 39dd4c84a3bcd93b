"""`kafka-configs`: configuration with Kafka's flags and Kafka's output.

Left out: users, clients, groups, ips and client-metrics, which have no dynamic configuration here yet.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict, Unpack

import click

from strandline.cli.access.options import Access, kafka_access_options
from strandline.cli.errors import CommandRefused
from strandline.cli.kafka_tools.kafka_flags import comma_pairs, kafka_command
from strandline.cli.terminal.escaping import echo
from strandline.cli.terminal.output import example

if TYPE_CHECKING:
    from strandline.client.blocking import Admin
    from strandline.client.flow.descriptions import ConfigEntry

TYPES = ("topics", "brokers", "groups")


class KafkaConfigsOptions(TypedDict):
    """The options of `kafka-configs` that name the entity and the changes."""

    entity_type: str | None
    entity_name: str | None
    entity_default: bool
    topic: str | None
    broker: str | None
    group: str | None
    broker_defaults: bool
    add_config: str | None
    add_config_file: str | None
    delete_config: str | None


@kafka_command(
    epilog=example(
        "strandline kafka-configs --bootstrap-server 127.0.0.1:9092 --alter --entity-type topics --entity-name hello "
        "--add-config retention.ms=60000"
    )
)
@kafka_access_options()
@click.option("--describe", is_flag=True, help="Show the configuration.")
@click.option("--alter", is_flag=True, help="Change the configuration.")
@click.option("--entity-type", metavar="|".join(TYPES), help="What is configured.")
@click.option("--entity-name", help="Its name, or a broker's id.")
@click.option("--entity-default", is_flag=True, help="The default of all brokers.")
@click.option("--topic", help="Short for --entity-type topics --entity-name.")
@click.option("--broker", help="Short for --entity-type brokers --entity-name.")
@click.option("--group", help="Short for --entity-type groups --entity-name.")
@click.option("--broker-defaults", is_flag=True, help="Short for --entity-type brokers --entity-default.")
@click.option("--add-config", metavar="k1=v1,k2=[v1,v2]", help="Keys to set.")
@click.option("--add-config-file", type=click.Path(exists=True, dir_okay=False), help="A file of keys to set.")
@click.option("--delete-config", metavar="k1,k2", help="Keys to reset to their defaults.")
@click.option("--all", "all_", is_flag=True, help="Also defaults that were not changed.")
def kafka_configs(
    access: Access, describe: bool, alter: bool, all_: bool, **options: Unpack[KafkaConfigsOptions]
) -> None:
    """Show and change the configuration of topics, brokers and groups, with Kafka's flags and output."""
    if describe == alter:
        raise click.UsageError("Command must include exactly one action: --describe, --alter")
    kind, name = _entity(options)
    to_set = _to_set(options)
    to_delete = [key.strip() for key in (options["delete_config"] or "").split(",") if key.strip()]
    if describe and (to_set or to_delete):
        raise click.UsageError("--add-config and --delete-config go with --alter")
    if alter and not to_set and not to_delete:
        raise click.UsageError(
            "At least one of --add-config, --add-config-file, or --delete-config must be specified with --alter"
        )
    if alter and name is None:
        raise click.UsageError("an entity name must be specified with --alter of " + kind)
    if kind == "brokers" and name and not name.isdigit():
        raise CommandRefused(f"The entity name for brokers must be a valid integer broker id, found: {name}")
    from strandline.cli.access.connection import connect_admin

    with connect_admin(access) as admin:
        if describe:
            _describe(admin, kind, name, all_)
        else:
            _alter(admin, kind, name or "", to_set, to_delete)


def _entity(options: KafkaConfigsOptions) -> tuple[str, str | None]:
    """The type, and the name: None for all of that type, "" for the default."""
    given = [
        (kind, name)
        for kind, name, present in (
            ("topics", options["topic"], options["topic"] is not None),
            ("brokers", options["broker"], options["broker"] is not None),
            ("groups", options["group"], options["group"] is not None),
            ("brokers", "", options["broker_defaults"]),
            (options["entity_type"], options["entity_name"], options["entity_type"] is not None),
        )
        if present
    ]
    if len(given) != 1:
        raise click.UsageError(
            "Exactly one of --entity-type, --topic, --broker, --group and --broker-defaults must be specified"
        )
    kind, name = given[0]
    if kind not in TYPES:
        raise CommandRefused(f"Invalid entity type {kind}, the entity type must be one of {', '.join(TYPES)}")
    if options["entity_default"]:
        if kind != "brokers" or name is not None:
            raise click.UsageError("--entity-default goes with --entity-type brokers and without --entity-name")
        name = ""
    return kind, name


def _to_set(options: KafkaConfigsOptions) -> dict[str, str]:
    if options["add_config_file"] is None:
        return comma_pairs(options["add_config"] or "", "--add-config")
    if options["add_config"]:
        raise click.UsageError("Only one of --add-config or --add-config-file must be specified")
    from javaproperties import loads

    with open(options["add_config_file"], encoding="iso-8859-1") as file:
        found: dict[str, str] = loads(file.read())
    return found


def _describe(admin: Admin, kind: str, name: str | None, all_: bool) -> None:
    from strandline.cli.configs.config_admin import read, resource

    singular = kind[:-1]
    known = _names(admin, kind)
    if name and not all_ and name not in known and kind != "groups":
        echo(f"The {singular} '{name}' doesn't exist and doesn't have dynamic config.")
        return
    for one in known if name is None else [name]:
        if one == "":
            echo(f"Default configs for {kind} in the cluster are:")
        else:
            echo(f"{'All' if all_ else 'Dynamic'} configs for {singular} {one} are:")
        for entry in read(admin, resource(kind, one), own_only=not all_):
            echo(config_line(entry))


def _names(admin: Admin, kind: str) -> list[str]:
    if kind == "topics":
        return [listing.name for listing in admin.list_topics(include_internal=True)]
    if kind == "groups":
        return [listing.group_id for listing in admin.list_groups()]
    return [str(broker.node_id) for broker in admin.describe_cluster().brokers] + [""]


def config_line(entry: ConfigEntry) -> str:
    from strandline.cli.configs.config_admin import SOURCES

    synonyms = ", ".join(
        f"{SOURCES.get(source, source)}:{name}={_null(value)}" for name, value, source in entry.synonyms
    )
    sensitive = "true" if entry.is_sensitive else "false"
    return f"  {entry.name}={_null(entry.value)} sensitive={sensitive} synonyms={{{synonyms}}}"


def _null(value: str | None) -> str:
    return "null" if value is None else value


def _alter(admin: Admin, kind: str, name: str, to_set: dict[str, str], to_delete: list[str]) -> None:
    from strandline.cli.configs.config_admin import change, resource

    change(admin, resource(kind, name), to_set, to_delete)
    if name:
        echo(f"Completed updating config for {kind[:-1]} {name}.")
    else:
        echo(f"Completed updating default config for {kind} in the cluster.")
