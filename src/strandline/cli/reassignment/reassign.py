"""`reassign`: move partitions to other brokers, and watch the progress.

Always true: plans are Kafka's JSON files and are read from stdin and written to stdout, messages go to stderr; Ctrl-C stops
watching, never the moves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from strandline.cli.access.options import Access, access_options
from strandline.cli.errors import CommandRefused
from strandline.cli.terminal.escaping import echo
from strandline.cli.terminal.output import example, is_terminal, json_option, note, print_json, print_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from strandline.cli.reassignment.reassignment_plan import Assignment, ReassignmentPlan
    from strandline.client.blocking import Admin
    from strandline.ids import TopicPartition

file_argument = click.argument("file", type=click.Path(exists=True, dir_okay=False, allow_dash=True))


@click.group(
    epilog=example(
        "strandline reassign generate --brokers 1,2,3 --topic hello > plan.json",
        "strandline reassign execute plan.json --throttle 10MB/s > rollback.json",
        "strandline reassign list",
    )
)
def reassign() -> None:
    """Move partitions to other brokers.

    A plan is a JSON file of Kafka's form: generate proposes one, execute begins it, verify shows its progress, cancel goes back.
    """


@reassign.command(
    epilog=example(
        "strandline reassign generate --brokers 1,2,3 > plan.json",
        "strandline reassign generate --topic hello --replication-factor 3 | strandline reassign execute -",
    )
)
@access_options
@click.option("--brokers", metavar="1,2,3", help="The brokers to move to.  [default: all live brokers]")
@click.option("--topic", "-t", "topics", multiple=True, help="A topic to move; may be repeated.  [default: all topics]")
@click.option(
    "--replication-factor", "-r", type=click.IntRange(1), help="How many replicas.  [default: as many as now]"
)
@click.option("--disable-rack-aware", is_flag=True, help="Do not spread replicas over racks.")
def generate(
    access: Access,
    brokers: str | None,
    topics: tuple[str, ...],
    replication_factor: int | None,
    disable_rack_aware: bool,
) -> None:
    """Propose a plan with few moves: print the partitions that should change. Nothing is moved."""
    from strandline.cli.access.connection import connect_admin
    from strandline.cli.reassignment import reassignment_admin, reassignment_plan
    from strandline.cli.reassignment.reassignment_proposal import propose
    from strandline.cli.topics import topic_admin

    wanted = None if brokers is None else reassignment_plan.parse_brokers(brokers)
    with connect_admin(access) as admin:
        racks = reassignment_admin.usable_racks(admin, wanted, rack_aware=not disable_rack_aware)
        if wanted is not None:
            reassignment_admin.check_brokers(admin, wanted)
        current = reassignment_admin.assignment_of(admin, topics or topic_admin.find(admin, None))
    proposed = propose(current, racks, replication_factor)
    changed = {key: replicas for key, replicas in proposed.items() if list(current[key]) != replicas}
    note(summary(current, changed))
    echo(reassignment_plan.encode(changed))


def summary(current: Assignment, changed: Assignment) -> str:
    """A summary of a plan in one line."""
    if not changed:
        return f"nothing to move: {_count(len(current), 'partition')} are where they should be"
    copies = sum(len(set(replicas) - set(current[key])) for key, replicas in changed.items())
    leaders = sum(replicas[0] != current[key][0] for key, replicas in changed.items())
    return (
        f"{len(changed)} of {_count(len(current), 'partition')} change: {_count(copies, 'replica')} to copy, "
        f"{_count(leaders, 'preferred leader')} to change"
    )


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


@reassign.command(
    epilog=example(
        "strandline reassign execute plan.json --throttle 10MB/s > rollback.json",
        "strandline reassign execute plan.json --no-wait",
    )
)
@file_argument
@access_options
@click.option("--throttle", metavar="RATE", help="How fast each broker may copy, such as 10MB/s.  [default: no limit]")
@click.option("--additional", is_flag=True, help="Allow it during other reassignments; also changes their throttle.")
@click.option("--wait/--no-wait", default=True, show_default=True, help="Show progress until all is done.")
def execute(file: str, access: Access, throttle: str | None, additional: bool, wait: bool) -> int:
    """Begin the moves of a plan (FILE, or - for stdin) and show their progress.

    Prints a plan that undoes it. Ctrl-C leaves the moves running.
    """
    from strandline.cli.access.connection import connect_admin
    from strandline.cli.reassignment import reassignment_admin, reassignment_plan, reassignment_throttles

    rate_bytes = None if throttle is None else reassignment_throttles.parse_rate(throttle)
    plan = _read(file)
    reassignment_plan.check(plan)
    with connect_admin(access) as admin:
        under_way = admin.list_partition_reassignments()
        if under_way and not additional:
            raise CommandRefused(
                f"{_count(len(under_way), 'reassignment')} under way (`strandline reassign list`); wait for the end, or give "
                "--additional"
            )
        reassignment_admin.check_brokers(admin, plan.brokers)
        current = reassignment_admin.replicas_of(admin, plan.targets)
        if plan.log_dirs:
            reassignment_admin.check_log_dirs(plan, reassignment_admin.log_dirs(admin, plan.brokers))
        echo(reassignment_plan.encode(current))
        if rate_bytes is not None:
            moving = reassignment_throttles.moves(under_way, plan.targets, current)
            reassignment_throttles.set_throttle(admin, moving, rate_bytes)
        refused = reassignment_admin.begin(admin, plan.targets)
        for line in reassignment_admin.refusal_lines(refused):
            note(line)
        if refused:
            raise CommandRefused(f"{len(refused)} of {_count(len(plan.targets), 'partition')} could not be reassigned")
        if wait:
            return _watch(admin, plan, file, clear_throttles=rate_bytes is not None)
    note(f"{_count(len(plan.targets), 'partition')} are being moved; {_next_steps(file)}")
    return 0


@reassign.command(epilog=example("strandline reassign verify plan.json", "strandline reassign verify plan.json --wait"))
@file_argument
@access_options
@click.option("--wait", is_flag=True, help="Show progress until all is done.")
@click.option("--preserve-throttles", is_flag=True, help="Leave throttles as they are.")
@json_option
def verify(file: str, access: Access, wait: bool, preserve_throttles: bool, as_json: bool) -> int:
    """Show the progress of a plan; when nothing moves any more, remove the throttles.

    The exit code is 0 when every partition has the replicas of the plan.
    """
    from strandline.cli.access.connection import connect_admin

    plan = _read(file)
    with connect_admin(access) as admin:
        if wait:
            return _watch(admin, plan, file, clear_throttles=not preserve_throttles, as_json=as_json)
        return _report(admin, plan, clear_throttles=not preserve_throttles, as_json=as_json)


@reassign.command(epilog=example("strandline reassign cancel plan.json", "strandline reassign cancel --all"))
@click.argument("file", required=False, type=click.Path(exists=True, dir_okay=False, allow_dash=True))
@access_options
@click.option("--all", "all_", is_flag=True, help="Every reassignment under way.")
@click.option("--preserve-throttles", is_flag=True, help="Leave throttles as they are.")
def cancel(file: str | None, access: Access, all_: bool, preserve_throttles: bool) -> None:
    """Cancel the reassignments of a plan that are still in progress."""
    from strandline.cli.access.connection import connect_admin
    from strandline.cli.reassignment import reassignment_admin
    from strandline.cli.reassignment.reassignment_plan import name

    if all_ == (file is not None):
        raise click.UsageError("name the FILE of a plan, or give --all")
    plan = None if file is None else _read(file)
    with connect_admin(access) as admin:
        active = admin.list_partition_reassignments(None if plan is None else plan.targets)
        refused = reassignment_admin.cancel(admin, active) if active else {}
        for partition in sorted(active.keys() - refused.keys()):
            echo(f"Cancelled the reassignment of {name(partition)}.")
        if not active:
            note("none of these reassignments is under way")
        if not preserve_throttles and not refused:
            topics = {topic for topic, _ in active} if plan is None else set(plan.topics)
            _clear_throttles(admin, topics)
    if refused:
        for line in reassignment_admin.refusal_lines(refused):
            note(line)
        raise CommandRefused(f"{len(refused)} of {_count(len(active), 'reassignment')} could not be cancelled")


@reassign.command("list", epilog=example("strandline reassign list"))
@access_options
@json_option
def list_(access: Access, as_json: bool) -> None:
    """List the reassignments in progress, and how much of each is copied."""
    from strandline.cli.access.connection import connect_admin
    from strandline.cli.reassignment import reassignment_progress

    with connect_admin(access) as admin:
        under_way = admin.list_partition_reassignments()
        progress = reassignment_progress.read_progress(admin, under_way) if under_way else {}
    rows = [
        (*key, one.replicas, one.adding, one.removing, progress[key].percent, progress[key].missing)
        for key, one in sorted(under_way.items())
    ]
    if as_json:
        keys = ("topic", "partition", "replicas", "adding", "removing", "copied_percent", "waits_for")
        print_json([dict(zip(keys, row, strict=True)) for row in rows])
        return
    columns = ("topic", "partition", "replicas", "adding", "removing", "copied %", "waits for")
    shown = [tuple(None if cell == () else cell for cell in row) for row in rows]
    print_table(columns, shown, empty="no reassignment is under way")


def _read(file: str) -> ReassignmentPlan:
    from strandline.cli.reassignment import reassignment_admin, reassignment_plan

    try:
        return reassignment_plan.parse_plan(reassignment_admin.read_file(file))
    except reassignment_plan.PlanError as error:
        where = "stdin" if file == reassignment_admin.STANDARD_INPUT else file
        raise CommandRefused(f"{where}: {error.message}") from None


def _watch(admin: Admin, plan: ReassignmentPlan, file: str, *, clear_throttles: bool, as_json: bool = False) -> int:
    from strandline.cli.reassignment import reassignment_admin, reassignment_progress

    if not reassignment_progress.watch(admin, plan.targets):
        note(f"the moves continue; {_next_steps(file)}")
        return 1
    reassignment_admin.await_in_place(admin, plan.targets)
    return _report(admin, plan, clear_throttles=clear_throttles, as_json=as_json, to_stderr=not as_json)


def _next_steps(file: str) -> str:
    if file == "-":
        return "`strandline reassign list` shows them, `strandline reassign cancel --all` goes back"
    return f"`strandline reassign verify {file}` shows their progress, `strandline reassign cancel {file}` goes back"


def _report(
    admin: Admin, plan: ReassignmentPlan, *, clear_throttles: bool, as_json: bool = False, to_stderr: bool = False
) -> int:
    """Print the result of each partition; clear throttles if nothing moves. Returns 0 if all are in place."""
    from strandline.cli.reassignment import reassignment_admin, reassignment_progress

    states, under_way = reassignment_admin.states(admin, plan.targets)
    moving = {key: one for key, one in under_way.items() if key in states}
    progress = reassignment_progress.read_progress(admin, moving) if moving else {}
    results: dict[TopicPartition, str] = {}
    for key, state in states.items():
        if not state.done:
            results[key] = f"moving, {progress[key].percent}%"
        else:
            results[key] = "done" if state.reached else "not moving, elsewhere"
    if clear_throttles and not under_way:
        _clear_throttles(admin, plan.topics)
    reached = sum(state.reached for state in states.values())
    if to_stderr:
        _note_unfinished(results)
    else:
        columns = ("topic", "partition", "result", "replicas", "target")
        rows = [(*key, results[key], state.replicas or None, state.target) for key, state in states.items()]
        if as_json:
            print_json([dict(zip(columns, row, strict=True)) for row in rows])
        else:
            print_table(columns, rows)
    if to_stderr or is_terminal():
        note(f"in place: {reached} of {_count(len(states), 'partition')}")
    return 0 if reached == len(states) else 1


def _note_unfinished(results: Mapping[TopicPartition, str]) -> None:
    from strandline.cli.reassignment.reassignment_plan import name

    for key, result in results.items():
        if result != "done":
            note(f"{name(key)}: {result}")


def _clear_throttles(admin: Admin, topics: Iterable[str]) -> None:
    from strandline.cli.reassignment import reassignment_admin, reassignment_throttles

    reassignment_throttles.clear_broker_throttles(admin, reassignment_admin.live_brokers(admin))
    reassignment_throttles.clear_topic_throttles(admin, topics)
