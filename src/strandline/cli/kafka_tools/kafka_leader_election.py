"""`kafka-leader-election`: elections with Kafka's flags and Kafka's output."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict, Unpack

import click

from strandline.cli.access.options import Access, kafka_access_options
from strandline.cli.errors import CommandRefused
from strandline.cli.kafka_tools.kafka_flags import kafka_command
from strandline.cli.option_values import required
from strandline.cli.terminal.escaping import echo
from strandline.cli.terminal.output import example

if TYPE_CHECKING:
    from strandline.cli.elections.election_admin import ElectionResults, Partitions

TYPES = ("preferred", "unclean")


class KafkaLeaderElectionOptions(TypedDict):
    """The options of `kafka-leader-election` that name partitions."""

    all_topic_partitions: bool
    topic: str | None
    partition: int | None
    path_to_json_file: str | None


@kafka_command(
    epilog=example(
        "strandline kafka-leader-election --bootstrap-server 127.0.0.1:9092 --election-type preferred "
        "--all-topic-partitions"
    )
)
@kafka_access_options("--admin.config")
@click.option(
    "--election-type",
    type=click.Choice(TYPES, case_sensitive=False),
    required=True,
    help="preferred: the first replica becomes leader; unclean: any replica, for partitions without a leader.",
)
@click.option("--all-topic-partitions", is_flag=True, help="Every partition that needs it.")
@click.option("--topic", help="The topic of one partition.")
@click.option("--partition", type=click.IntRange(0), help="With --topic: its partition.")
@click.option("--path-to-json-file", type=click.Path(exists=True, dir_okay=False), help="A file of partitions.")
def kafka_leader_election(access: Access, election_type: str, **options: Unpack[KafkaLeaderElectionOptions]) -> int:
    """Elect leaders of partitions, with Kafka's flags and output."""
    partitions = _partitions(options)
    from strandline.cli.elections import election_admin

    elected = election_admin.elect(access, election_type.lower() == "unclean", partitions)
    for line in lines(elected, election_type.upper()):
        echo(line)
    if elected.failed:
        raise CommandRefused(f"{len(elected.failed)} replica(s) could not be elected")
    return 0


def _partitions(options: KafkaLeaderElectionOptions) -> Partitions | None:
    ways = (options["topic"] is not None, options["all_topic_partitions"], options["path_to_json_file"] is not None)
    if sum(ways) != 1:
        raise click.UsageError(
            "One and only one of the following options is required: topic, all-topic-partitions, path-to-json-file"
        )
    topic, partition = options["topic"], options["partition"]
    if topic is not None and partition is None:
        raise click.UsageError("Missing required option(s): partition")
    if topic is None and partition is not None:
        raise click.UsageError("Option partition is only allowed if topic is used")
    if options["all_topic_partitions"]:
        return None
    if topic is not None and partition is not None:
        return [(topic, partition)]
    from strandline.cli.elections.election_admin import read_partitions

    return read_partitions(required(options["path_to_json_file"]))


def lines(elected: ElectionResults, kind: str) -> list[str]:
    from strandline.cli.elections.election_admin import names

    found = []
    if elected.done:
        found.append(f"Successfully completed leader election ({kind}) for partitions {names(elected.done)}")
    if elected.not_needed:
        found.append(f"Valid replica already elected for partitions {names(elected.not_needed)}")
    found += [
        f"Error completing leader election ({kind}) for partition: {topic}-{partition}: {why}"
        for (topic, partition), why in elected.failed.items()
    ]
    return found
