"""`kafka-consumer-groups`: groups with Kafka's flags and Kafka's output, byte for byte."""

from __future__ import annotations

import dataclasses
import time
from typing import TYPE_CHECKING, TypedDict, Unpack

import click

from strandline.cli.access.options import Access, kafka_access_options
from strandline.cli.groups.offset_resets import SCENARIOS
from strandline.cli.kafka_tools.kafka_flags import KafkaCommand
from strandline.cli.option_values import required, value_of_option
from strandline.cli.terminal.escaping import echo, shown
from strandline.cli.terminal.output import example

if TYPE_CHECKING:
    from collections.abc import Sequence

    from strandline.cli.groups.offset_resets import OffsetPlan
    from strandline.client.blocking import Admin
    from strandline.errors import KafkaError

ACTIONS = ("list", "describe", "delete", "reset_offsets", "delete_offsets", "validate_regex")
STATES = ("PreparingRebalance", "CompletingRebalance", "Stable", "Dead", "Empty", "Assigning", "Reconciling")
TYPES = ("Classic", "Consumer")
SENTENCES = {
    "UNKNOWN_TOPIC_OR_PARTITION": "This server does not host this topic-partition.",
    "INVALID_GROUP_ID": "The group id is invalid.",
    "NON_EMPTY_GROUP": "The group is not empty.",
    "GROUP_ID_NOT_FOUND": "The group id does not exist.",
    "GROUP_SUBSCRIBED_TO_TOPIC": "Deleting offsets of a topic is forbidden while the consumer group is actively subscribed to it.",
}
"""The messages of Kafka's tool by error code."""
EVERY = "*"
"""The value of an option that was given without one."""


class KafkaConsumerGroupsOptions(TypedDict):
    """The options of `kafka-consumer-groups` beside those of the cluster."""

    list: bool
    describe: bool
    delete: bool
    reset_offsets: bool
    delete_offsets: bool
    validate_regex: str | None
    group: tuple[str, ...]
    all_groups: bool
    topic: tuple[str, ...]
    all_topics: bool
    offsets: bool
    members: bool
    state: str | None
    type: str | None
    verbose: bool
    timeout: int
    dry_run: bool
    execute: bool
    export: bool
    to_offset: int | None
    to_earliest: bool
    to_latest: bool
    to_current: bool
    shift_by: int | None
    to_datetime: str | None
    by_duration: str | None
    from_file: str | None


class _ConsumerGroupsCommand(KafkaCommand):
    """The command; two of its options may be given without a value."""

    def expand(self, args: list[str]) -> list[str]:
        written = []
        for position, argument in enumerate(args):
            written.append(argument)
            following = args[position + 1] if position + 1 < len(args) else "--"
            if argument in ("--state", "--type") and following.startswith("-"):
                written.append(EVERY)
        return super().expand(written)


@click.command(
    cls=_ConsumerGroupsCommand,
    epilog=example(
        "strandline kafka-consumer-groups --bootstrap-server 127.0.0.1:9092 --describe --group readers",
        "strandline kafka-consumer-groups --bootstrap-server 127.0.0.1:9092 --group readers --topic hello "
        "--reset-offsets --to-earliest --execute",
    ),
)
@kafka_access_options()
@click.option("--list", is_flag=True, help="List the groups.")
@click.option("--describe", is_flag=True, help="Show groups: their offsets and lag, members or state.")
@click.option("--delete", is_flag=True, help="Delete groups that have no members, with their offsets.")
@click.option("--reset-offsets", is_flag=True, help="Reset the offsets of groups without members.")
@click.option("--delete-offsets", is_flag=True, help="Delete a group's offsets of topics.")
@click.option("--validate-regex", metavar="REGEX", help="Check a pattern of topics, in RE2's syntax.")
@click.option("--group", multiple=True, help="The group; may be given several times.")
@click.option("--all-groups", is_flag=True, help="All groups.")
@click.option("--topic", multiple=True, metavar="TOPIC[:0,1]", help="The topic, or some of its partitions.")
@click.option("--all-topics", is_flag=True, help="All topics with committed offsets.")
@click.option("--offsets", is_flag=True, help="Describe offsets and lag (the default).")
@click.option("--members", is_flag=True, help="Describe the members.")
@click.option("--state", metavar="[STATES]", help="Describe the state; with --list, show states or list those in some.")
@click.option("--type", metavar="[TYPES]", help="With --list, show types or list those of some: classic, consumer.")
@click.option("--verbose", is_flag=True, help="Describe more.")
@click.option("--timeout", type=int, default=30_000, metavar="MS", help="How long to try.  [default: 30000]")
@click.option("--dry-run", is_flag=True, help="Only show the offsets of a reset (the default).")
@click.option("--execute", is_flag=True, help="Execute the reset.")
@click.option("--export", is_flag=True, help="Print the offsets of a reset as CSV.")
@click.option("--to-offset", type=int, help="Reset to this offset.")
@click.option("--to-earliest", is_flag=True, help="Reset to the first offsets.")
@click.option("--to-latest", is_flag=True, help="Reset to the last offsets.")
@click.option("--to-current", is_flag=True, help="Reset to the committed offsets.")
@click.option("--shift-by", type=int, metavar="N", help="Move the committed offsets by N, which may be negative.")
@click.option(
    "--to-datetime", metavar="YYYY-MM-DDThh:mm:ss.sss", help="Reset to the first records at or after this time."
)
@click.option("--by-duration", metavar="PnDTnHnMnS", help="Reset to the first records within this time before now.")
@click.option(
    "--from-file",
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    help="Reset to the offsets in a CSV file.",
)
def kafka_consumer_groups(access: Access, **options: Unpack[KafkaConsumerGroupsOptions]) -> int:
    """List, describe and delete groups, and change their offsets, with Kafka's flags and output."""
    action = _check(options)
    if action == "validate_regex":
        return _validate(required(options["validate_regex"]))
    from strandline.cli.access.client_properties import connection_settings
    from strandline.cli.access.connection import connect
    from strandline.cli.errors import CommandRefused
    from strandline.cli.groups.group_admin import NoSuchTopic
    from strandline.client.blocking import Admin
    from strandline.errors import KafkaError

    to = connection_settings(access)
    config = dataclasses.replace(to.config, default_api_timeout_ms=options["timeout"])
    try:
        with connect(to._replace(config=config)) as client:
            _DO[action](Admin(client), options)
    except NoSuchTopic:
        _error(f"Executing consumer group command failed due to {SENTENCES['UNKNOWN_TOPIC_OR_PARTITION']}")
        return 1
    except (KafkaError, CommandRefused) as error:
        _error(f"Executing consumer group command failed due to {error.message}")
        return 1
    return 0


def _check(options: KafkaConsumerGroupsOptions) -> str:
    given = [action for action in ACTIONS if value_of_option(options, action)]
    if len(given) != 1:
        names = ", ".join(_flag(action) for action in ACTIONS)
        raise click.UsageError(f"Command must include exactly one action: {names}")
    (action,) = given
    scoped = options["group"] or options["all_groups"]
    if options["group"] and options["all_groups"]:
        raise click.UsageError('Option "--group" can\'t be used with option "--all-groups"')
    if action in ("describe", "delete", "reset_offsets") and not scoped:
        raise click.UsageError(f"Option {_flag(action)} takes one of these options: --group, --all-groups")
    if action == "delete_offsets" and not (options["group"] and options["topic"]):
        raise click.UsageError("Option --delete-offsets takes the following options: --group, --topic")
    if action == "delete" and options["topic"]:
        raise click.UsageError("The consumer does not support topic-specific offset deletion from a consumer group.")
    allowed = {
        "group": ("describe", "delete", "reset_offsets", "delete_offsets"),
        "topic": ("delete", "reset_offsets", "delete_offsets"),
        "members": ("describe",),
        "offsets": ("describe",),
        "verbose": ("describe",),
        "state": ("describe", "list"),
        "type": ("list",),
    }
    for name, actions in allowed.items():
        if value_of_option(options, name) and action not in actions:
            raise click.UsageError(f'Option "{_flag(name)}" can\'t be used with option "{_flag(action)}"')
    if action == "describe":
        if sum(bool(options[name]) for name in ("members", "offsets", "state")) > 1:
            raise click.UsageError(
                "Option --describe takes at most one of these options: --members, --offsets, --state"
            )
        if options["state"] not in (None, EVERY):
            raise click.UsageError("Option --describe does not take a value for --state")
    if action == "reset_offsets":
        _check_reset(options)
    return action


def _check_reset(options: KafkaConsumerGroupsOptions) -> None:
    if options["dry_run"] and options["execute"]:
        raise click.UsageError("Option --reset-offsets only accepts one of --execute and --dry-run")
    scenarios = _scenarios(options)
    if len(scenarios) > 1:
        raise click.UsageError(f'Option "{_flag(scenarios[0])}" can\'t be used with option "{_flag(scenarios[1])}"')
    if not scenarios:
        names = ", ".join(_flag(scenario) for scenario in SCENARIOS)
        raise click.UsageError(f"Option --reset-offsets requires one of the following scenarios: {names}")
    if not (options["topic"] or options["all_topics"] or scenarios == ["from_file"]):
        raise click.UsageError("One of the reset scopes should be defined: --all-topics, --topic.")
    if not options["dry_run"] and not options["execute"] and not options["export"]:
        echo("WARN: nothing will be changed without --execute; --dry-run says the same explicitly", err=True)


def _scenarios(options: KafkaConsumerGroupsOptions) -> list[str]:
    return [scenario for scenario in SCENARIOS if value_of_option(options, scenario) not in (None, False)]


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _error(message: str) -> None:
    echo(f"\nError: {' '.join(message.split())}")


def _sentence(error: KafkaError) -> str:
    """The message of Kafka's tool for this error."""
    return SENTENCES.get(error.code.name, f"{error.message} ({error.code.name})")


def _validate(pattern: str) -> int:
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        re2.compile(pattern, options)
    except re2.error as error:
        reason = error.args[0]
        shown = reason.decode() if isinstance(reason, bytes) else str(reason)
        echo(f"The regular expression `{pattern}` is invalid: {shown}.")
        return 1
    echo(f"The regular expression `{pattern}` is valid.")
    return 0


def _groups(admin: Admin, options: KafkaConsumerGroupsOptions) -> list[str]:
    from strandline.cli.groups import group_admin

    if options["all_groups"]:
        return [group.group_id for group in group_admin.list_groups(admin)]
    return list(dict.fromkeys(options["group"]))


def _list(admin: Admin, options: KafkaConsumerGroupsOptions) -> None:
    from strandline.cli.groups import group_admin
    from strandline.cli.groups.group_tables import listing_table

    states = _chosen(options["state"], STATES, "state")
    types = _chosen(options["type"], TYPES, "types")
    found = group_admin.list_groups(admin, states, types)
    if options["state"] is None and options["type"] is None:
        for group in found:
            echo(shown(group.group_id))
        return
    headings, rows = ["GROUP"], [[group.group_id] for group in found]
    for name, attribute in (("type", "type"), ("state", "state")):
        if value_of_option(options, name) is not None:
            headings.append(name.upper())
            for row, group in zip(rows, found, strict=True):
                row.append(getattr(group, attribute) or "Unknown")
    echo(listing_table(rows, headings), nl=False)


def _chosen(text: str | None, known: Sequence[str], what: str) -> list[str]:
    if text in (None, EVERY):
        return []
    names = {name.lower(): name for name in known}
    given = [part.strip().lower() for part in str(text).split(",")]
    if any(part not in names for part in given):
        raise click.UsageError(f"Invalid {what} list '{text}'. Valid {what.rstrip('s')}s are: {', '.join(known)}")
    return [names[part] for part in given]


def _describe(admin: Admin, options: KafkaConsumerGroupsOptions) -> None:
    from strandline.cli.groups import group_admin
    from strandline.cli.groups.group_rows import member_rows, state_row
    from strandline.cli.groups.group_tables import members_table, offsets_table, state_table

    verbose = options["verbose"]
    for group_id, group in group_admin.describe(admin, _groups(admin, options)).items():
        if options["members"]:
            _is_shown(group_id, group.state, len(group.members))
            echo(members_table(member_rows(group), verbose=verbose), nl=False)
        elif options["state"] is not None:
            if _is_shown(group_id, group.state, 1):
                echo(state_table(state_row(group), verbose=verbose), nl=False)
        else:
            offsets = group_admin.offsets_of(admin, group)
            if _is_shown(group_id, group.state, len(offsets)):
                echo(offsets_table(offsets, verbose=verbose), nl=False)


def _is_shown(group_id: str, state: str, rows: int) -> bool:
    """Print the group's state if it has no stable members; returns whether there is a table to print."""
    from strandline.cli.groups.group_admin import REBALANCING

    if state == "Dead":
        _error(f"Consumer group '{shown(group_id)}' does not exist.")
    elif state == "Empty":
        echo(f"\nConsumer group '{shown(group_id)}' has no active members.", err=True)
    elif state in REBALANCING:
        echo(f"\nWarning: Consumer group '{shown(group_id)}' is rebalancing.", err=True)
    return state != "Dead" and rows > 0


def _delete(admin: Admin, options: KafkaConsumerGroupsOptions) -> None:
    answers = admin.delete_groups(_groups(admin, options))
    done = ", ".join(f"'{shown(group)}'" for group, error in answers.items() if error is None)
    failed = {group: error for group, error in answers.items() if error is not None}
    if not failed:
        echo(f"Deletion of requested consumer groups ({done}) was successful.")
        return
    _error("Deletion of some consumer groups failed:")
    for group, error in failed.items():
        echo(f"* Group '{shown(group)}' could not be deleted due to: {_sentence(error)}")
    if done:
        echo(f"\nThese consumer groups were deleted successfully: {done}")


def _reset(admin: Admin, options: KafkaConsumerGroupsOptions) -> None:
    from strandline.cli.groups.group_admin import OffsetReset, committed_offsets, has_members, state_of
    from strandline.cli.groups.group_tables import plan_table
    from strandline.cli.groups.offset_resets import KAFKA_WARNINGS, scenario_value, write_csv

    (scenario,) = _scenarios(options)
    reset = OffsetReset(
        admin,
        scenario,
        scenario_value(value_of_option(options, scenario)),
        topics=options["topic"],
        all_topics=options["all_topics"],
        now_ms=time.time_ns() // 1_000_000,
        warn=lambda text: echo(f"\nWarn: {text}", err=True),
        warnings=KAFKA_WARNINGS,
    )
    groups = _groups(admin, options)
    plans: dict[str, OffsetPlan] = {}
    for group in groups:
        state = state_of(admin, group)
        if has_members(state):
            _error(
                f"Assignments can only be reset if the group '{group}' is inactive, but the current state is {state}."
            )
            plans[group] = {}
            continue
        plans[group] = reset.plan(group, groups, committed_offsets(admin, group))
        if options["execute"]:
            reset.execute(group, plans[group])
    if options["export"]:
        echo(write_csv(plans, with_group=len(options["group"]) != 1))
    else:
        echo(plan_table(plans), nl=False)


def _delete_offsets(admin: Admin, options: KafkaConsumerGroupsOptions) -> None:
    from strandline.cli.groups.group_admin import delete_offsets
    from strandline.cli.groups.group_tables import deleted_offsets_table
    from strandline.errors import ErrorCode

    group = options["group"][-1]
    error, results = delete_offsets(admin, group, options["topic"])
    if error is None:
        echo(f"Request succeeded for deleting offsets from group {shown(group)}.")
    elif error.code in (ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
        _error("Encountered some partition-level error, see the follow-up details.")
    else:
        _error(_sentence(error))
    results_shown = {key: None if problem is None else _sentence(problem) for key, problem in results.items()}
    echo(deleted_offsets_table(results_shown), nl=False)


_DO = {
    "list": _list,
    "describe": _describe,
    "delete": _delete,
    "reset_offsets": _reset,
    "delete_offsets": _delete_offsets,
}
