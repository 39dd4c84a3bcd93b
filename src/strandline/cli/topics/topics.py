"""`topics`: list, create, describe, alter and delete topics.

Always true: `describe` says for each topic whether it can lose acknowledged records, and names the rule.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from strandline.cli.access.options import Access, access_options
from strandline.cli.errors import CommandRefused
from strandline.cli.option_values import key_values
from strandline.cli.terminal.escaping import echo, shown
from strandline.cli.terminal.output import example, is_terminal, json_option, note, print_json, print_table

if TYPE_CHECKING:
    from strandline.cli.topics.topic_admin import TopicView

SHORT_MAX = 32767


@click.group(epilog=example("strandline topics create hello --partitions 3", "strandline topics describe hello"))
def topics() -> None:
    """List, create, describe, alter and delete topics."""


@topics.command("list", epilog=example("strandline topics list"))
@access_options
@click.option("--internal", is_flag=True, help="Also the cluster's own topics.")
@json_option
def list_(access: Access, internal: bool, as_json: bool) -> None:
    """List the topics."""
    from strandline.cli.access.connection import connect_admin
    from strandline.cli.topics import topic_admin

    with connect_admin(access) as admin:
        views = topic_admin.describe(admin, topic_admin.find(admin, None, exclude_internal=not internal))
    if as_json:
        print_json([_summary(view) for view in views])
        return
    rows = [(view.topic.name, len(view.topic.partitions), view.replication_factor) for view in views]
    print_table(
        ("topic", "partitions", "replicas"), rows, empty="no topics; `strandline topics create NAME` creates one"
    )


@topics.command(epilog=example("strandline topics create hello --partitions 3 --config retention.ms=3600000"))
@click.argument("name")
@access_options
@click.option("--partitions", "-p", type=click.IntRange(1), help="How many partitions.  [default: the cluster's]")
@click.option(
    "--replication-factor",
    "-r",
    type=click.IntRange(1, SHORT_MAX),
    help="How many replicas of each.  [default: the cluster's]",
)
@click.option("--config", multiple=True, metavar="KEY=VALUE", help="A configuration of the topic.")
@click.option("--if-not-exists", is_flag=True, help="Succeed if the topic already exists.")
def create(
    name: str,
    access: Access,
    partitions: int | None,
    replication_factor: int | None,
    config: tuple[str, ...],
    if_not_exists: bool,
) -> None:
    """Create a topic."""
    from strandline.cli.access.connection import connect_admin
    from strandline.cli.configs.config_admin import note_without_effect
    from strandline.client.flow.descriptions import NewTopic
    from strandline.config.key import Where
    from strandline.errors import ErrorCode, KafkaError

    topic = NewTopic(name, partitions or -1, replication_factor or -1, configs=key_values(config, "--config"))
    with connect_admin(access) as admin:
        made = admin.create_topics([topic])[name]
    if not isinstance(made, KafkaError):
        counts = f"{_count(made.num_partitions, 'partition')}, {_count(made.replication_factor, 'replica')} of each"
        echo(f"Created topic {name}: {counts}.")
        note_without_effect(Where.TOPIC, topic.configs)
    elif made.code is ErrorCode.TOPIC_ALREADY_EXISTS and if_not_exists:
        echo(f"Topic {name} already exists.")
    else:
        raise made


@topics.command(
    epilog=example(
        "strandline topics describe hello",
        "strandline topics describe --json",
        "strandline topics describe --under-replicated --unavailable",
    )
)
@click.argument("names", nargs=-1)
@access_options
@click.option("--under-replicated", is_flag=True, help="Only partitions with replicas out of sync.")
@click.option("--unavailable", is_flag=True, help="Only partitions without a leader.")
@click.option("--under-min-isr", is_flag=True, help="Only partitions below min.insync.replicas, which refuse acks=all.")
@click.option("--at-min-isr", is_flag=True, help="Only partitions at min.insync.replicas.")
@json_option
def describe(names: tuple[str, ...], access: Access, as_json: bool, **only: bool) -> None:
    """Show topics, their partitions, and whether they can lose data.

    Without a NAME, all topics. Whether data can be lost assumes producers with acks=all. With several of the options that
    begin with Only, a partition is shown if one of them matches; topics without such partitions are left out.
    """
    from strandline.cli.access.connection import connect_admin
    from strandline.cli.topics import topic_admin

    with connect_admin(access) as admin:
        views = topic_admin.describe(admin, names or topic_admin.find(admin, None, exclude_internal=True))
    _require(names, [view.topic.name for view in views])
    if any(only.values()):
        views = _narrow(views, only)
        if not views:
            note("no partition matches")
    if as_json:
        print_json([_details(view) for view in views])
        return
    for number, view in enumerate(views):
        _print(view, first=number == 0)


def _narrow(views: list[TopicView], only: dict[str, bool]) -> list[TopicView]:
    """The topics with matching partitions, and only those partitions."""
    from strandline.cli.topics import topic_admin

    found = []
    for view in views:
        least = view.min_insync_replicas
        kept = tuple(
            partition
            for partition in view.topic.partitions
            if (only["under_replicated"] and topic_admin.is_under_replicated(partition))
            or (only["unavailable"] and not topic_admin.has_leader(partition))
            or (only["under_min_isr"] and topic_admin.is_under_min_isr(partition, least))
            or (only["at_min_isr"] and topic_admin.is_at_min_isr(partition, least))
        )
        if kept:
            found.append(view._replace(topic=view.topic._replace(partitions=kept)))
    return found


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _require(names: tuple[str, ...], found: list[str]) -> None:
    for name in names:
        if name not in found:
            raise CommandRefused(f"there is no topic '{name}'; `strandline topics list` lists the existing ones")


@topics.command(epilog=example("strandline topics delete hello"))
@click.argument("names", nargs=-1, required=True)
@access_options
@click.option("--if-exists", is_flag=True, help="Succeed if a topic does not exist.")
def delete(names: tuple[str, ...], access: Access, if_exists: bool) -> None:
    """Delete topics and all their records."""
    from strandline.cli.access.connection import connect_admin
    from strandline.errors import ErrorCode, KafkaError

    with connect_admin(access) as admin:
        answers = admin.delete_topics(names)
    failed: list[KafkaError] = []
    for name, error in answers.items():
        if error is None:
            echo(f"Deleted topic {name}.")
        elif error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and not if_exists:
            failed.append(KafkaError(error.code, f"there is no topic '{name}'"))
        elif error.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            failed.append(error)
    if failed:
        raise failed[0]


@topics.command(epilog=example("strandline topics alter hello --partitions 6"))
@click.argument("name")
@access_options
@click.option("--partitions", "-p", type=click.IntRange(1), required=True, help="The new total number of partitions.")
def alter(name: str, access: Access, partitions: int) -> None:
    """Add partitions to a topic. Afterwards keys may be sent to other partitions than before."""
    from strandline.cli.access.connection import connect_admin, value_of

    with connect_admin(access) as admin:
        value_of(admin.create_partitions({name: partitions})[name])
    echo(f"Topic {name} has {partitions} partitions.")


def _summary(view: TopicView) -> dict[str, object]:
    return {
        "name": view.topic.name,
        "topic_id": str(view.topic.topic_id),
        "internal": view.topic.is_internal,
        "partitions": len(view.topic.partitions),
        "replication_factor": view.replication_factor,
    }


def _details(view: TopicView) -> dict[str, object]:
    return {
        **_summary(view),
        "partitions": [
            {
                "partition": partition.partition,
                "leader": partition.leader if partition.leader >= 0 else None,
                "leader_epoch": partition.leader_epoch,
                "replicas": partition.replicas,
                "isr": partition.isr,
                "elr": partition.elr,
                "offline": partition.offline,
            }
            for partition in view.topic.partitions
        ],
        "configs": {entry.name: entry.value for entry in view.overrides},
        "can_lose_data": view.verdict.can_lose,
        "rule": view.verdict.rule,
        "advice": view.verdict.advice,
    }


def _print(view: TopicView, *, first: bool) -> None:
    if not first:
        echo()
    mark = {"ok": "✓", "warn": "!"}[view.verdict.level]
    title = shown(f"{view.topic.name}  {view.topic.topic_id}")
    click.echo(click.style(title, bold=True) if is_terminal() else title)
    colour = {"ok": "green", "warn": "yellow"}[view.verdict.level] if is_terminal() else None
    advice = f"; {view.verdict.advice}" if view.verdict.advice else ""
    click.echo(click.style(f"{mark} {view.verdict.sentence} (with acks=all){advice}", fg=colour))
    if view.overrides:
        echo("configs: " + ", ".join(shown(f"{entry.name}={entry.value}") for entry in view.overrides))
    print_table(
        ("partition", "leader", "epoch", "replicas", "isr", "out of sync"),
        [
            (
                partition.partition,
                partition.leader if partition.leader >= 0 else "none",
                partition.leader_epoch,
                partition.replicas,
                partition.isr,
                sorted(set(partition.replicas) - set(partition.isr)) or None,
            )
            for partition in view.topic.partitions
        ],
    )
