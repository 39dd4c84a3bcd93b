"""`kafka-topics`: topics with Kafka's flags and Kafka's output, byte for byte."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypedDict, Unpack

import click

from strandline.cli.access.options import Access, kafka_access_options
from strandline.cli.kafka_tools.kafka_flags import kafka_command
from strandline.cli.option_values import key_values, required, value_of_option
from strandline.cli.terminal.escaping import echo
from strandline.cli.terminal.output import example

if TYPE_CHECKING:
    from collections.abc import Callable

    from strandline.cli.topics.topic_admin import TopicView
    from strandline.client.blocking import Admin, Client
    from strandline.client.flow.descriptions import PartitionDescription

ACTIONS = ("create", "list", "describe", "alter", "delete")
REPORTS = ("under_replicated_partitions", "unavailable_partitions", "under_min_isr_partitions", "at_min_isr_partitions")
SHORT_MAX = 32767
CREATE_PARTITIONS: Final = 37
COLLISION = (
    "WARNING: Due to limitations in metric names, topics with a period ('.') or underscore ('_') could collide. "
    "To avoid issues it is best to use either, but not both."
)


class KafkaTopicsOptions(TypedDict):
    """The options of `kafka-topics` beside those of the cluster."""

    create: bool
    list: bool
    describe: bool
    alter: bool
    delete: bool
    topic: str | None
    topic_id: str | None
    partitions: int | None
    replication_factor: int | None
    replica_assignment: str | None
    config: tuple[str, ...]
    if_exists: bool
    if_not_exists: bool
    under_replicated_partitions: bool
    unavailable_partitions: bool
    under_min_isr_partitions: bool
    at_min_isr_partitions: bool
    topics_with_overrides: bool
    exclude_internal: bool


@kafka_command(
    epilog=example(
        "strandline kafka-topics --bootstrap-server 127.0.0.1:9092 --create --topic peter-test01 --partitions 1",
        "strandline kafka-topics --bootstrap-server 127.0.0.1:9092 --describe --topic peter-test01",
    )
)
@kafka_access_options()
@click.option("--create", is_flag=True, help="Create a topic.")
@click.option("--list", is_flag=True, help="List the topics.")
@click.option("--describe", is_flag=True, help="Show topics and their partitions.")
@click.option("--alter", is_flag=True, help="Add partitions to topics.")
@click.option("--delete", is_flag=True, help="Delete topics.")
@click.option("--topic", help="The topic; a regular expression except with --create.")
@click.option("--topic-id", help="The topic to describe, by its id.")
@click.option("--partitions", type=int, help="How many partitions.  [default for a new topic: the cluster's]")
@click.option("--replication-factor", type=int, help="How many replicas of each partition.  [default: the cluster's]")
@click.option("--replica-assignment", metavar="1:2,2:3,…", help="The brokers of each partition.")
@click.option("--config", multiple=True, metavar="NAME=VALUE", help="A configuration of the new topic.")
@click.option("--if-exists", is_flag=True, help="Do nothing if there is no such topic.")
@click.option("--if-not-exists", is_flag=True, help="Do nothing if the topic exists.")
@click.option("--under-replicated-partitions", is_flag=True, help="Describe only those with replicas out of sync.")
@click.option("--unavailable-partitions", is_flag=True, help="Describe only those without a leader.")
@click.option("--under-min-isr-partitions", is_flag=True, help="Describe only those below min.insync.replicas.")
@click.option("--at-min-isr-partitions", is_flag=True, help="Describe only those at min.insync.replicas.")
@click.option("--topics-with-overrides", is_flag=True, help="Describe only topics with a configuration of their own.")
@click.option("--exclude-internal", is_flag=True, help="Leave out internal topics.")
def kafka_topics(access: Access, **options: Unpack[KafkaTopicsOptions]) -> int:
    """Create, list, describe, alter and delete topics, with Kafka's flags and output."""
    _check(options)
    from strandline.errors import KafkaError

    try:
        _act(access, options)
    except (KafkaError, _TopicCommandFailed) as error:
        message = error.message if isinstance(error, KafkaError) else str(error)
        echo(f"Error while executing topic command : {' '.join(message.split())}")
        return 1
    return 0


class _TopicCommandFailed(Exception):
    """An error that Kafka's tool prints itself, without one from a broker."""


def _check(options: KafkaTopicsOptions) -> None:
    """Raise UsageError for options that exclude each other."""
    given = [action for action in ACTIONS if value_of_option(options, action)]
    if len(given) != 1:
        raise click.UsageError(
            "Command must include exactly one action: --list, --describe, --create, --alter or --delete"
        )
    (action,) = given
    if action in ("create", "alter", "delete") and options["topic"] is None:
        raise click.UsageError(f"--{action} needs --topic")
    if action == "alter" and options["partitions"] is None:
        raise click.UsageError("--alter needs --partitions (configurations are altered with kafka-configs)")
    allowed = {
        "config": ("create",),
        "partitions": ("create", "alter"),
        "replication_factor": ("create",),
        "replica_assignment": ("create", "alter"),
        "if_exists": ("alter", "delete", "describe"),
        "if_not_exists": ("create",),
        "exclude_internal": ("list", "describe"),
        "topic_id": ("describe",),
        "topics_with_overrides": ("describe",),
        **dict.fromkeys(REPORTS, ("describe",)),
    }
    for name, actions in allowed.items():
        if value_of_option(options, name) and action not in actions:
            raise click.UsageError(f'Option "{_flag(name)}" can\'t be used with option "--{action}"')
    if action == "create" and options["replica_assignment"]:
        for name in ("partitions", "replication_factor"):
            if value_of_option(options, name) is not None:
                raise click.UsageError(f'Option "{_flag(name)}" can\'t be used with option "--replica-assignment"')
    if options["topics_with_overrides"] and any(value_of_option(options, name) for name in REPORTS):
        raise click.UsageError("--topics-with-overrides can't be used with a report about partitions")


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _act(access: Access, options: KafkaTopicsOptions) -> None:
    from strandline.cli.access.client_properties import connection_settings
    from strandline.cli.access.connection import connect
    from strandline.client.blocking import Admin

    with connect(connection_settings(access)) as client:
        if options["alter"] and options["replica_assignment"]:
            _alter_with_assignment(client, options)
            return
        action = next(action for action in ACTIONS if value_of_option(options, action))
        _DO[action](Admin(client), options)


def _create(admin: Admin, options: KafkaTopicsOptions) -> None:
    from strandline.cli.access.connection import value_of
    from strandline.client.flow.descriptions import NewTopic
    from strandline.errors import ErrorCode, KafkaError

    name, partitions, replicas = required(options["topic"]), options["partitions"], options["replication_factor"]
    if "." in name or "_" in name:
        echo(COLLISION)
    if replicas is not None and not 1 <= replicas <= SHORT_MAX:
        raise _TopicCommandFailed(f"The replication factor must be between 1 and {SHORT_MAX} inclusive")
    if partitions is not None and partitions < 1:
        raise _TopicCommandFailed("The partitions must be greater than 0")
    topic = NewTopic(
        name,
        -1 if partitions is None else partitions,
        -1 if replicas is None else replicas,
        configs=key_values(options["config"], "--config"),
        assignments=parse_assignment(options["replica_assignment"]),
    )
    try:
        value_of(admin.create_topics([topic])[name])
    except KafkaError as error:
        if error.code is ErrorCode.TOPIC_ALREADY_EXISTS and options["if_not_exists"]:
            return
        raise
    echo(f"Created topic {name}.")


def parse_assignment(text: str | None) -> dict[int, list[int]]:
    """`1:2,2:3` gives partition 0 the replicas 1 and 2, partition 1 the replicas 2 and 3."""
    assignment: dict[int, list[int]] = {}
    for index, part in enumerate((text or "").split(",") if text else []):
        try:
            brokers = [int(broker) for broker in part.split(":")]
        except ValueError:
            raise click.UsageError(
                f"--replica-assignment {text}: '{part}' is not a list of broker ids like 1:2:3"
            ) from None
        repeated = sorted({broker for broker in brokers if brokers.count(broker) > 1})
        if repeated:
            raise click.UsageError(
                f"Partition replica lists may not contain duplicate entries: {','.join(map(str, repeated))}"
            )
        if assignment and len(brokers) != len(assignment[0]):
            raise click.UsageError(f"Partition {index} has different replication factor: {brokers}")
        assignment[index] = brokers
    return assignment


def _matching(admin: Admin, options: KafkaTopicsOptions) -> list[str]:
    from strandline.cli.topics import topic_admin

    names = topic_admin.find(admin, options["topic"], exclude_internal=options["exclude_internal"])
    if options["topic"] and not names and not options["if_exists"]:
        raise _TopicCommandFailed(f"Topic '{options['topic']}' does not exist as expected")
    return names


def _list(admin: Admin, options: KafkaTopicsOptions) -> None:
    from strandline.cli.topics import topic_admin

    names = topic_admin.find(admin, options["topic"], exclude_internal=options["exclude_internal"])
    echo("\n".join(names))


def _alter(admin: Admin, options: KafkaTopicsOptions) -> None:
    from strandline.cli.access.connection import value_of

    names, partitions = _matching(admin, options), options["partitions"]
    if names and partitions is not None:
        for answer in admin.create_partitions(dict.fromkeys(names, partitions)).values():
            value_of(answer)


def _alter_with_assignment(client: Client, options: KafkaTopicsOptions) -> None:
    """Add partitions with a replica assignment, of which the entries after the existing partitions count."""
    from strandline.cli.access.connection import value_of
    from strandline.client.blocking import Admin
    from strandline.client.flow.retry import check
    from strandline.wire import messages

    admin = Admin(client)
    names, count = _matching(admin, options), options["partitions"]
    assert count is not None, "checked with the options"
    assignment = parse_assignment(options["replica_assignment"])
    request = messages.request(CREATE_PARTITIONS)
    described = admin.describe_topics(names)
    topics = []
    for name in names:
        present = len(value_of(described[name]).partitions)
        new = [request.CreatePartitionsAssignment(broker_ids=assignment[i]) for i in sorted(assignment) if i >= present]
        topics.append(request.CreatePartitionsTopic(name=name, count=count, assignments=new))
    message = request(topics=topics, timeout_ms=30_000, validate_only=False)
    response = client.request(None, CREATE_PARTITIONS, message)
    for result in response.results:
        check(result.error_code, result.error_message)


def _delete(admin: Admin, options: KafkaTopicsOptions) -> None:
    from strandline.cli.access.connection import value_of

    names = _matching(admin, options)
    if names:
        for answer in admin.delete_topics(names).values():
            value_of(answer)


def _describe(admin: Admin, options: KafkaTopicsOptions) -> None:
    from strandline.cli.topics import topic_admin

    if options["topic_id"]:
        listings = admin.list_topics(include_internal=not options["exclude_internal"])
        names = [listing.name for listing in listings if str(listing.topic_id) == options["topic_id"]]
        if not names and not options["if_exists"]:
            raise _TopicCommandFailed(f"TopicId '{options['topic_id']}' does not exist as expected")
    else:
        names = _matching(admin, options)
    views = topic_admin.describe(admin, names, with_reassignments=True)
    live = {broker.node_id for broker in admin.describe_cluster().brokers}
    for line in describe_lines(views, options, live):
        echo(line)


def describe_lines(views: list[TopicView], options: KafkaTopicsOptions, live: set[int]) -> list[str]:
    """The lines of --describe, with the requested reports."""
    reports = _reports(options, live)
    lines = []
    for view in views:
        if not reports and (not options["topics_with_overrides"] or view.overrides):
            lines.append(topic_line(view))
        if not options["topics_with_overrides"]:
            lines += [
                partition_line(view, partition)
                for partition in view.topic.partitions
                if not reports or any(shows(view, partition) for shows in reports)
            ]
    return lines


def _reports(options: KafkaTopicsOptions, live: set[int]) -> list[Callable[[TopicView, PartitionDescription], bool]]:
    from strandline.cli.topics import topic_admin

    reports: dict[str, Callable[[TopicView, PartitionDescription], bool]] = {
        "under_replicated_partitions": lambda view, partition: topic_admin.is_under_replicated(
            partition, view.reassignments.get(partition.partition)
        ),
        "unavailable_partitions": lambda view, partition: partition.leader not in live,
        "under_min_isr_partitions": lambda view, partition: topic_admin.is_under_min_isr(
            partition, view.min_insync_replicas
        ),
        "at_min_isr_partitions": lambda view, partition: topic_admin.is_at_min_isr(partition, view.min_insync_replicas),
    }
    return [shows for name, shows in reports.items() if value_of_option(options, name)]


def topic_line(view: TopicView) -> str:
    configs = ",".join(f"{entry.name}={entry.value}" for entry in view.overrides)
    return (
        f"Topic: {view.topic.name}\tTopicId: {view.topic.topic_id}\tPartitionCount: {len(view.topic.partitions)}"
        f"\tReplicationFactor: {view.replication_factor}\tConfigs: {configs}"
    )


def partition_line(view: TopicView, partition: PartitionDescription) -> str:
    leader = partition.leader if partition.leader >= 0 else "none"
    moving = view.reassignments.get(partition.partition)
    moves = f"\tAdding Replicas: {_ids(moving.adding)}\tRemoving Replicas: {_ids(moving.removing)}" if moving else ""
    return (
        f"\tTopic: {view.topic.name}\tPartition: {partition.partition}\tLeader: {leader}"
        f"\tReplicas: {_ids(partition.replicas)}\tIsr: {_ids(partition.isr)}{moves}"
        f"\tElr: {_ids(partition.elr)}\tLastKnownElr: {_ids(partition.last_known_elr)}"
    )


def _ids(ids: tuple[int, ...] | None) -> str:
    return "N/A" if ids is None else ",".join(map(str, ids))


_DO = {"create": _create, "list": _list, "describe": _describe, "alter": _alter, "delete": _delete}
