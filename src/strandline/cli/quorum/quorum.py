"""`quorum`: the leader of the controllers, the voters and observers and their lag; adding and removing voters."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from strandline.cli.access.options import Access, access_options, or_controllers
from strandline.cli.terminal.escaping import echo
from strandline.cli.terminal.output import example, json_option, print_json, print_table

if TYPE_CHECKING:
    from strandline.cli.quorum.quorum_admin import QuorumReplicaRow
    from strandline.client.flow.descriptions import QuorumInfo, QuorumReplicaState

quorum_options = or_controllers(access_options)


@click.group(epilog=example("strandline quorum describe", "strandline quorum describe --replication --human-readable"))
def quorum() -> None:
    """Show and change the quorum of controllers."""


@quorum.command(
    epilog=example("strandline quorum describe --status", "strandline quorum describe --replication --json")
)
@quorum_options
@click.option("--status", is_flag=True, help="The leader, the voters and the observers.  [default]")
@click.option("--replication", is_flag=True, help="The log end and lag of each voter and observer.")
@click.option("--human-readable", is_flag=True, help="With --replication: ages instead of timestamps.")
@json_option
def describe(access: Access, status: bool, replication: bool, human_readable: bool, as_json: bool) -> None:
    """Show the leader, the voters and the observers of the quorum, or their lag."""
    if status and replication:
        raise click.UsageError("give --status or --replication, not both")
    if human_readable and not replication:
        raise click.UsageError("--human-readable goes with --replication")
    from strandline.cli.access.connection import connect_admin
    from strandline.cli.quorum import quorum_admin

    with connect_admin(access) as admin:
        described = admin.describe_quorum()
        cluster_id = "" if replication else admin.describe_cluster().cluster_id
    if replication:
        _print_replication(quorum_admin.rows(described), human_readable, as_json)
        return
    shown = _status(described, cluster_id)
    if as_json:
        print_json(shown)
    else:
        print_table(("what", "value"), [(key.replace("_", " "), _text(value)) for key, value in shown.items()])


def _status(described: QuorumInfo, cluster_id: str) -> dict[str, object]:
    from strandline.cli.quorum import quorum_admin

    lag, lag_ms = quorum_admin.follower_lag(described)
    return {
        "cluster_id": cluster_id,
        "leader_id": described.leader_id,
        "leader_epoch": described.leader_epoch,
        "high_watermark": described.high_watermark,
        "follower_lag_max": lag,
        "follower_lag_ms_max": None if lag_ms < 0 else lag_ms,
        "voters": [_member(described, replica) for replica in described.voters],
        "observers": [_member(described, replica) for replica in described.observers],
    }


def _member(described: QuorumInfo, replica: QuorumReplicaState) -> dict[str, object]:
    endpoints = described.endpoints.get(replica.replica_id, ())
    return {
        "node_id": replica.replica_id,
        "directory_id": str(replica.directory_id),
        "endpoints": [str(endpoint) for endpoint in endpoints],
    }


def _text(value: object) -> object:
    return [member["node_id"] for member in value] if isinstance(value, list) else value


def _print_replication(rows: list[QuorumReplicaRow], human_readable: bool, as_json: bool) -> None:
    from strandline.cli.quorum.quorum_admin import age

    now_ms = time.time_ns() // 1_000_000
    shown = [
        {
            "node_id": row.replica.replica_id,
            "directory_id": str(row.replica.directory_id),
            "log_end_offset": row.replica.log_end_offset,
            "lag": row.lag,
            "last_fetch_ms": row.replica.last_fetch_ms,
            "last_caught_up_ms": row.replica.last_caught_up_ms,
            "status": row.status,
        }
        for row in rows
    ]
    if as_json:
        print_json(shown)
        return
    if human_readable:
        shown = [
            row | {name: age(int(str(row[name])), now_ms) for name in ("last_fetch_ms", "last_caught_up_ms")}
            for row in shown
        ]
    columns = ("node", "directory", "log end offset", "lag", "last fetch", "last caught up", "status")
    print_table(columns, [tuple(row.values()) for row in shown])


@quorum.command("add-controller", epilog=example("strandline quorum add-controller controller.properties"))
@click.argument("file", type=click.Path(exists=True, dir_okay=False), metavar="FILE.properties")
@quorum_options
@click.option("--dry-run", is_flag=True, help="Show what would be done, and change nothing.")
def add_controller(file: str, access: Access, dry_run: bool) -> None:
    """Add a controller to the voters. FILE.properties is its configuration; its log dir must be formatted."""
    from strandline.cli.quorum.quorum_admin import read_controller

    controller = read_controller(file)
    if not dry_run:
        from strandline.cli.access.connection import connect_admin

        with connect_admin(access) as admin:
            admin.add_raft_voter(*controller)
    echo(f"{'Would add' if dry_run else 'Added'} {controller}.")


@quorum.command("remove-controller", epilog=example("strandline quorum remove-controller 103 qx1xTm0qSrWIyXeSJZTa1A"))
@click.argument("controller_id", type=click.IntRange(0))
@click.argument("directory_id")
@quorum_options
@click.option("--dry-run", is_flag=True, help="Show what would be done, and change nothing.")
def remove_controller(controller_id: int, directory_id: str, access: Access, dry_run: bool) -> None:
    """Remove a controller from the voters. `quorum describe --replication` shows the ids of controllers and their directories."""
    from strandline.cli.quorum.quorum_admin import parse_directory_id

    directory = parse_directory_id(directory_id, "DIRECTORY_ID")
    if not dry_run:
        from strandline.cli.access.connection import connect_admin

        with connect_admin(access) as admin:
            admin.remove_raft_voter(controller_id, directory)
    done = "Would remove" if dry_run else "Removed"
    echo(f"{done} controller {controller_id} with directory id {directory}.")
