"""`kafka-metadata-quorum`: the quorum of controllers with Kafka's flags and Kafka's output, byte for byte."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from strandline.cli.access.options import Access, kafka_access_options, or_controllers
from strandline.cli.errors import CommandRefused
from strandline.cli.kafka_tools.kafka_flags import KafkaCommand
from strandline.cli.kafka_tools.kafka_tables import table_lines
from strandline.cli.terminal.escaping import echo
from strandline.cli.terminal.output import example

if TYPE_CHECKING:
    from strandline.client.flow.descriptions import QuorumInfo

HEADINGS = ("NodeId", "DirectoryId", "LogEndOffset", "Lag", "LastFetchTimestamp", "LastCaughtUpTimestamp", "Status")


@click.group(epilog=example("strandline kafka-metadata-quorum --bootstrap-server 127.0.0.1:9092 describe --status"))
@or_controllers(kafka_access_options())
@click.pass_context
def kafka_metadata_quorum(context: click.Context, access: Access) -> None:
    """Show and change the quorum of controllers, with Kafka's flags and output."""
    context.obj = access


@kafka_metadata_quorum.command(
    cls=KafkaCommand,
    epilog=example("strandline kafka-metadata-quorum --bootstrap-server 127.0.0.1:9092 describe --replication"),
)
@click.option("--status", is_flag=True, help="A summary of the quorum.")
@click.option("--replication", is_flag=True, help="The log end and lag of each voter and observer.")
@click.option("--human-readable", is_flag=True, help="With --replication: ages instead of timestamps.")
@click.pass_obj
def describe(access: Access, status: bool, replication: bool, human_readable: bool) -> None:
    """Show the quorum."""
    if status and replication:
        raise CommandRefused("Only one of --status or --replication should be specified with describe sub-command")
    if not status and not replication:
        raise CommandRefused("One of --status or --replication must be specified with describe sub-command")
    if human_readable and status:
        raise CommandRefused("The option --human-readable is only supported along with --replication")
    from strandline.cli.access.connection import connect_admin

    with connect_admin(access) as admin:
        cluster_id = admin.describe_cluster().cluster_id if status else ""
        quorum = admin.describe_quorum()
    now_ms = time.time_ns() // 1_000_000
    for line in status_lines(quorum, cluster_id) if status else replication_lines(quorum, human_readable, now_ms):
        echo(line)


def status_lines(quorum: QuorumInfo, cluster_id: str) -> list[str]:
    from strandline.cli.quorum.quorum_admin import follower_lag, nodes_text

    lag, lag_ms = follower_lag(quorum)
    facts = {
        "ClusterId": cluster_id,
        "LeaderId": quorum.leader_id,
        "LeaderEpoch": quorum.leader_epoch,
        "HighWatermark": quorum.high_watermark,
        "MaxFollowerLag": lag,
        "MaxFollowerLagTimeMs": lag_ms,
        "CurrentVoters": nodes_text(quorum, quorum.voters),
        "CurrentObservers": nodes_text(quorum, quorum.observers),
    }
    return [f"{name + ':':<24}{value}" for name, value in facts.items()]


def replication_lines(quorum: QuorumInfo, human_readable: bool, now_ms: int) -> list[str]:
    from strandline.cli.quorum.quorum_admin import age, rows

    def when(timestamp_ms: int) -> str:
        return age(timestamp_ms, now_ms) if human_readable else str(timestamp_ms)

    table = [
        (
            str(row.replica.replica_id),
            str(row.replica.directory_id),
            str(row.replica.log_end_offset),
            str(row.lag),
            when(row.replica.last_fetch_ms),
            when(row.replica.last_caught_up_ms),
            row.status,
        )
        for row in rows(quorum)
    ]
    return table_lines(HEADINGS, table)


@kafka_metadata_quorum.command(
    "add-controller",
    cls=KafkaCommand,
    epilog=example(
        "strandline kafka-metadata-quorum --bootstrap-server 127.0.0.1:9092 --command-config controller.properties "
        "add-controller"
    ),
)
@click.option("--dry-run", is_flag=True, help="Show what would be done, and change nothing.")
@click.pass_obj
def add_controller(access: Access, dry_run: bool) -> None:
    """Add a controller to the voters; --command-config is its configuration."""
    if access.command_config is None:
        raise CommandRefused(
            "You must supply the configuration file of the controller you are adding when using add-controller."
        )
    from strandline.cli.access.connection import connect_admin
    from strandline.cli.quorum.quorum_admin import read_controller

    controller = read_controller(access.command_config)
    if not dry_run:
        # The file configures a node, not a client.
        with connect_admin(access._replace(command_config=None)) as admin:
            admin.add_raft_voter(*controller)
    echo(f"{'DRY RUN of adding' if dry_run else 'Added'} {controller}")


@kafka_metadata_quorum.command(
    "remove-controller",
    cls=KafkaCommand,
    epilog=example(
        "strandline kafka-metadata-quorum --bootstrap-server 127.0.0.1:9092 remove-controller --controller-id 103 "
        "--controller-directory-id qx1xTm0qSrWIyXeSJZTa1A"
    ),
)
@click.option("--controller-id", "-i", type=int, required=True, help="The controller.")
@click.option("--controller-directory-id", "-d", required=True, help="The id of its directory.")
@click.option("--dry-run", is_flag=True, help="Show what would be done, and change nothing.")
@click.pass_obj
def remove_controller(access: Access, controller_id: int, controller_directory_id: str, dry_run: bool) -> None:
    """Remove a controller from the voters."""
    from strandline.cli.access.connection import connect_admin
    from strandline.cli.quorum.quorum_admin import parse_directory_id

    if controller_id < 0:
        raise CommandRefused(f"Invalid negative --controller-id: {controller_id}")
    directory_id = parse_directory_id(controller_directory_id, "--controller-directory-id")
    if not dry_run:
        with connect_admin(access) as admin:
            admin.remove_raft_voter(controller_id, directory_id)
    done = "DRY RUN of removing " if dry_run else "Removed "
    echo(f"{done}KRaft controller {controller_id} with directory id {directory_id}")
