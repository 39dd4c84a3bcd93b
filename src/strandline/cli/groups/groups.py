"""`groups`: consumer groups, their members, offsets and lag, and resetting their offsets.

Always true: without --execute, `reset-offsets` shows its plan and changes nothing; a group with members is never changed.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypedDict, Unpack

import click

from strandline.cli.access.options import Access, access_options
from strandline.cli.errors import CommandRefused, explain
from strandline.cli.groups.offset_resets import SCENARIOS, parse_datetime, parse_duration_ms
from strandline.cli.option_values import value_of_option
from strandline.cli.terminal.escaping import echo, shown
from strandline.cli.terminal.output import example, json_option, note, print_json, print_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from strandline.errors import KafkaError

STATES = ("PreparingRebalance", "CompletingRebalance", "Stable", "Dead", "Empty", "Assigning", "Reconciling")
TYPES = ("Classic", "Consumer")


@click.group(epilog=example("strandline groups list", "strandline groups describe readers"))
def groups() -> None:
    """List and describe groups, and change their offsets."""


@groups.command("list", epilog=example("strandline groups list", "strandline groups list --state stable"))
@access_options
@click.option(
    "--state", "states", multiple=True, type=click.Choice(STATES, case_sensitive=False), help="Only in this state."
)
@click.option(
    "--type",
    "types",
    multiple=True,
    type=click.Choice(TYPES, case_sensitive=False),
    help="Only of this protocol.",
)
@json_option
def list_(access: Access, states: tuple[str, ...], types: tuple[str, ...], as_json: bool) -> None:
    """List the groups."""
    from strandline.cli.access.connection import connect_admin
    from strandline.cli.groups import group_admin

    with connect_admin(access) as admin:
        found = group_admin.list_groups(admin, states, types)
    if as_json:
        print_json(
            [{"group": g.group_id, "type": g.type, "state": g.state, "protocol_type": g.protocol_type} for g in found]
        )
        return
    rows = [(group.group_id, group.type or None, group.state or None) for group in found]
    print_table(("group", "type", "state"), rows, empty=_none(states, types))


def _none(states: Sequence[str], types: Sequence[str]) -> str:
    if not (states or types):
        return "no groups; `strandline consume TOPIC --group NAME` creates one"
    of_type = f" of type {' or '.join(types)}" if types else ""
    return f"no group{of_type} is {' or '.join(states)}" if states else f"no group is{of_type}"


@groups.command(epilog=example("strandline groups describe readers", "strandline groups describe --members --json"))
@click.argument("names", nargs=-1)
@access_options
@click.option("--offsets", is_flag=True, help="Offsets and lag of each partition (the default).")
@click.option("--members", is_flag=True, help="The members and their assignments.")
@click.option("--state", is_flag=True, help="State, coordinator, assignor and epochs.")
@click.option(
    "--isolation-level",
    type=click.Choice(["read_uncommitted", "read_committed"]),
    default="read_uncommitted",
    help="read_committed: the lag up to the last stable offset, before open transactions.",
)
@json_option
def describe(names: tuple[str, ...], access: Access, isolation_level: str, as_json: bool, **views: bool) -> int:
    """Show groups: their offsets and lag, members or state.

    Without a NAME, all groups. Exit code 1 if a named group does not exist.
    """
    requested = [view for view, is_requested in views.items() if is_requested]
    if len(requested) > 1:
        raise click.UsageError(f"give one of {', '.join(f'--{view}' for view in requested)}")
    from strandline.cli.access.connection import connect_admin
    from strandline.cli.groups import group_admin, group_views

    view = requested[0] if requested else "offsets"
    with connect_admin(access) as admin:
        chosen = names or [group.group_id for group in group_admin.list_groups(admin)]
        found, failed = group_admin.describe_or_error(admin, chosen)
        committed_only = isolation_level == "read_committed"
        offsets = {
            group.group_id: group_admin.offsets_of(admin, group, read_committed=committed_only)
            for group in (found if view == "offsets" else ())
        }
    if as_json:
        print_json([group_views.details(group, offsets.get(group.group_id)) for group in found])
    elif view == "state":
        group_views.print_states(found)
    else:
        for number, group in enumerate(found):
            if number:
                echo()
            group_views.print_group(group, offsets.get(group.group_id))
    if not chosen and not as_json:
        note("no groups")
    # A group that was not named and was deleted since it was listed is not a failure.
    errors = {name: error for name, error in failed.items() if names or error.code.name != "GROUP_ID_NOT_FOUND"}
    return _refuse(_refusal(name, error) for name, error in errors.items())


def _datetime(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    if value is not None:
        parse_datetime(value)
    return value


def _duration(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    if value is not None and parse_duration_ms(value) < 0:
        raise click.BadParameter(f"{value} is negative: it counts back from now")
    return value


class ResetOffsetsOptions(TypedDict):
    """The options of `groups reset-offsets`."""

    topics: tuple[str, ...]
    all_topics: bool
    to_earliest: bool
    to_latest: bool
    to_current: bool
    to_offset: int | None
    shift_by: int | None
    to_datetime: str | None
    by_duration: str | None
    from_file: str | None
    execute: bool
    export: bool
    as_json: bool


@groups.command(
    "reset-offsets",
    epilog=example(
        "strandline groups reset-offsets readers --topic hello --to-earliest",
        "strandline groups reset-offsets readers --all-topics --by-duration PT1H --execute",
    ),
)
@click.argument("name")
@access_options
@click.option(
    "--topic", "-t", "topics", multiple=True, metavar="TOPIC[:0,1]", help="The topic, or some of its partitions."
)
@click.option("--all-topics", is_flag=True, help="All topics with committed offsets.")
@click.option("--to-earliest", is_flag=True, help="To the first offsets.")
@click.option("--to-latest", is_flag=True, help="To the last offsets.")
@click.option("--to-current", is_flag=True, help="To the committed offsets.")
@click.option("--to-offset", type=click.IntRange(0), metavar="N", help="To this offset.")
@click.option("--shift-by", type=int, metavar="N", help="Forward by N, or back if N is negative.")
@click.option(
    "--to-datetime",
    callback=_datetime,
    metavar="TIME",
    help="To the first records written at or after this time, YYYY-MM-DDThh:mm:ss, in UTC.",
)
@click.option(
    "--by-duration",
    callback=_duration,
    metavar="PnDTnHnMnS",
    help="To the first records written within this time before now.",
)
@click.option(
    "--from-file", type=click.Path(exists=True, dir_okay=False), metavar="FILE", help="To the offsets in a CSV file."
)
@click.option("--execute", is_flag=True, help="Reset the offsets; without it, the plan is only shown.")
@click.option("--export", is_flag=True, help="Print the plan as CSV, which --from-file reads.")
@json_option
def reset_offsets(name: str, access: Access, **options: Unpack[ResetOffsetsOptions]) -> None:
    """Reset the offsets of a group without members."""
    scenarios = [scenario for scenario in SCENARIOS if value_of_option(options, scenario) not in (None, False)]
    if len(scenarios) != 1:
        raise click.UsageError("give exactly one of: " + ", ".join(f"--{s.replace('_', '-')}" for s in SCENARIOS))
    if not (options["topics"] or options["all_topics"] or scenarios == ["from_file"]):
        raise click.UsageError("give --topic or --all-topics")
    from strandline.cli.access.connection import connect_admin
    from strandline.cli.groups import group_admin, group_views
    from strandline.cli.groups.offset_resets import scenario_value, write_csv
    from strandline.errors import KafkaError

    (scenario,) = scenarios
    with connect_admin(access) as admin:
        reset = group_admin.OffsetReset(
            admin,
            scenario,
            scenario_value(value_of_option(options, scenario)),
            topics=options["topics"],
            all_topics=options["all_topics"],
            now_ms=time.time_ns() // 1_000_000,
            warn=note,
        )
        state = group_admin.state_of(admin, name)
        if options["execute"] and group_admin.has_members(state):
            raise CommandRefused(f"group '{shown(name, err=True)}' is {state} and not empty; stop its members first")
        known = group_admin.committed_offsets(admin, name)
        planned = reset.plan(name, [name], known)
        if options["execute"]:
            try:
                reset.execute(name, planned)
            except KafkaError as error:
                raise CommandRefused(_refusal(name, error)) from None
    if options["export"]:
        echo(write_csv({name: planned}, with_group=False), nl=False)
    else:
        group_views.print_plan(planned, known, as_json=options["as_json"])
    if planned:
        note(_what_was_done(name, state, len(planned), is_done=options["execute"]))
    elif not options["as_json"]:
        note(
            "nothing to reset"
            if state is not None
            else f"nothing to reset: there is no group '{shown(name, err=True)}'"
        )


def _what_was_done(name: str, state: str | None, number: int, *, is_done: bool) -> str:
    from strandline.cli.groups.group_admin import has_members

    if is_done:
        made = " (the group is new)" if state is None else ""
        return f"{_count(number, 'offset')} of group '{shown(name, err=True)}' {'was' if number == 1 else 'were'} set{made}"
    if has_members(state):
        return (
            f"nothing was changed; group '{shown(name, err=True)}' is {state}: --execute needs a group without members, "
            "stop them first"
        )
    if state is None:
        return f"nothing was changed; --execute does it, and creates group '{shown(name, err=True)}', which does not exist yet"
    return "nothing was changed; --execute does it"


@groups.command(epilog=example("strandline groups delete readers"))
@click.argument("names", nargs=-1, required=True)
@access_options
@json_option
def delete(names: tuple[str, ...], access: Access, as_json: bool) -> int:
    """Delete groups that have no members, with their offsets."""
    from strandline.cli.access.connection import connect_admin

    with connect_admin(access) as admin:
        answers = admin.delete_groups(names)
    if as_json:
        print_json([{"group": name, **_outcome(error)} for name, error in answers.items()])
    else:
        for name, error in answers.items():
            if error is None:
                echo(f"Deleted group {shown(name)}.")
    return _refuse(_refusal(name, error) for name, error in answers.items() if error is not None)


@groups.command("delete-offsets", epilog=example("strandline groups delete-offsets readers --topic hello"))
@click.argument("name")
@access_options
@click.option(
    "--topic",
    "-t",
    "topics",
    multiple=True,
    required=True,
    metavar="TOPIC[:0,1]",
    help="The topic, or some of its partitions.",
)
@json_option
def delete_offsets(name: str, access: Access, topics: tuple[str, ...], as_json: bool) -> int:
    """Delete the offsets of a group in topics that it is not subscribed to."""
    from strandline.cli.access.connection import connect_admin
    from strandline.cli.groups import group_admin

    with connect_admin(access) as admin:
        _, results = group_admin.delete_offsets(admin, name, topics)
    if as_json:
        rows = sorted(results.items())
        print_json([{"topic": topic, "partition": index, **_outcome(error)} for (topic, index), error in rows])
    deleted = sum(error is None for error in results.values())
    if deleted and not as_json:
        echo(f"Deleted the offsets of group {shown(name)} for {_count(deleted, 'partition')}.")
    return _refuse(_refusal(name, error, topic) for (topic, _), error in sorted(results.items()) if error is not None)


def _outcome(error: KafkaError | None) -> dict[str, object]:
    """The result of one deletion, for JSON."""
    return {"deleted": error is None, "error": None if error is None else error.code.name}


def _refusal(name: str, error: KafkaError, topic: str = "") -> str:
    """Why the coordinator refused, and what to do first."""
    match error.code.name:
        case "GROUP_ID_NOT_FOUND":
            return f"there is no group '{shown(name, err=True)}'; `strandline groups list` lists the existing ones"
        case "NON_EMPTY_GROUP" | "UNKNOWN_MEMBER_ID":
            return f"group '{shown(name, err=True)}' has members; stop them first"
        case "GROUP_SUBSCRIBED_TO_TOPIC":
            return f"group '{shown(name, err=True)}' reads {topic}; stop its members first"
        case "UNKNOWN_TOPIC_OR_PARTITION" if topic:
            return (
                f"'{topic}' does not exist, or has no such partition; `strandline topics list` lists the existing ones"
            )
    return explain(error)


def _refuse(messages: Iterable[str]) -> int:
    """Print each distinct message on its own line; returns the exit code."""
    distinct = dict.fromkeys(messages)
    for message in distinct:
        CommandRefused(message).show()
    return 1 if distinct else 0


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
