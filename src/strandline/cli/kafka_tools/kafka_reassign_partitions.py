"""`kafka-reassign-partitions`: partitions moved to other brokers, with Kafka's flags and Kafka's output.

Left out: moves between the log dirs of one broker. A log dir may be named where nothing has to move for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict, Unpack

import click

from strandline.cli.access.options import Access, kafka_access_options, or_controllers
from strandline.cli.errors import CommandRefused
from strandline.cli.kafka_tools.kafka_flags import kafka_command
from strandline.cli.option_values import required, value_of_option
from strandline.cli.terminal.escaping import echo
from strandline.cli.terminal.output import example, note

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sized

    from strandline.cli.reassignment.reassignment_admin import PartitionMoveState
    from strandline.cli.reassignment.reassignment_plan import ReassignmentPlan, Replica
    from strandline.client.blocking import Admin
    from strandline.client.flow.descriptions import Reassignment
    from strandline.ids import TopicPartition

FILE = "reassignment_json_file"
ACTIONS = {
    "generate": (("topics_to_move_json_file", "broker_list"), ("disable_rack_aware",)),
    "execute": (
        (FILE,),
        (
            "additional",
            "throttle",
            "replica_alter_log_dirs_throttle",
            "timeout",
            "disallow_replication_factor_change",
        ),
    ),
    "verify": ((FILE,), ("preserve_throttles",)),
    "cancel": ((FILE,), ("preserve_throttles", "timeout")),
    "list": ((), ()),
}
"""For each action, its required and its optional options."""
OF_CONTROLLERS = ("cancel", "list")
EXISTING = (
    "Cannot execute because there is an existing partition assignment.  Use --additional to override this and create a new "
    "partition assignment in addition to the existing one. The --additional flag can also be used to change the throttle by "
    "resubmitting the current reassignment."
)
VERIFY_PERIODICALLY = (
    "Warning: You must run --verify periodically, until the reassignment completes, to ensure the throttle is removed."
)


class KafkaReassignPartitionsOptions(TypedDict):
    """The options of `kafka-reassign-partitions` beside those of the cluster."""

    generate: bool
    execute: bool
    verify: bool
    cancel: bool
    list: bool
    topics_to_move_json_file: str | None
    broker_list: str | None
    disable_rack_aware: bool
    reassignment_json_file: str | None
    additional: bool
    throttle: int | None
    replica_alter_log_dirs_throttle: int | None
    timeout: int | None
    preserve_throttles: bool
    disallow_replication_factor_change: bool


@kafka_command(
    epilog=example(
        "strandline kafka-reassign-partitions --bootstrap-server 127.0.0.1:9092 --generate "
        "--topics-to-move-json-file topics.json --broker-list 1,2,3",
        "strandline kafka-reassign-partitions --bootstrap-server 127.0.0.1:9092 --execute "
        "--reassignment-json-file plan.json --throttle 10000000",
        "strandline kafka-reassign-partitions --bootstrap-server 127.0.0.1:9092 --verify --reassignment-json-file plan.json",
    )
)
@or_controllers(kafka_access_options())
@click.option("--generate", is_flag=True, help="Propose a plan for topics and brokers; nothing is moved.")
@click.option("--execute", is_flag=True, help="Begin the moves of a plan.")
@click.option("--verify", is_flag=True, help="Show the progress of a plan; when all is done, remove its throttle.")
@click.option("--cancel", is_flag=True, help="Cancel the reassignments of a plan.")
@click.option("--list", is_flag=True, help="List all reassignments in progress.")
@click.option("--topics-to-move-json-file", metavar="FILE", help='{"version": 1, "topics": [{"topic": "foo"}]}')
@click.option("--broker-list", metavar="1,2,3", help="The brokers that the topics should be on.")
@click.option("--disable-rack-aware", is_flag=True, help="Propose without regard to racks.")
@click.option(
    "--reassignment-json-file",
    metavar="FILE",
    help='{"version": 1, "partitions": [{"topic": "foo", "partition": 1, "replicas": [1, 2, 3], "log_dirs": ["any", …]}]}',
)
@click.option("--additional", is_flag=True, help="Allow it during other reassignments; also changes their throttle.")
@click.option("--throttle", type=int, help="Bytes per second that brokers may copy.")
@click.option("--replica-alter-log-dirs-throttle", type=int, help="The same between log dirs; nothing moves there.")
@click.option(
    "--timeout", type=int, help="Milliseconds that moves between log dirs may take to begin; nothing moves there."
)
@click.option("--preserve-throttles", is_flag=True, help="Leave throttles as they are.")
@click.option("--disallow-replication-factor-change", is_flag=True, help="Refuse plans with more or fewer replicas.")
def kafka_reassign_partitions(access: Access, **options: Unpack[KafkaReassignPartitionsOptions]) -> int:
    """Move partitions to other brokers, with Kafka's flags and output."""
    action = _action(access, options)
    from strandline.cli.access.connection import connect_admin
    from strandline.errors import KafkaError

    try:
        with connect_admin(access) as admin:
            _DO[action](admin, options)
    except _PlainError as error:
        echo(str(error))
        return 1
    except (CommandRefused, KafkaError, OSError) as error:
        from strandline.cli.errors import explain

        message = error.message if isinstance(error, CommandRefused) else explain(error)
        echo(f"Error: {message}")
        return 1
    return 0


class _PlainError(Exception):
    """An error that Kafka's tool prints without "Error:"."""


def _action(access: Access, options: KafkaReassignPartitionsOptions) -> str:
    """The requested action; raises UsageError for options that exclude each other."""
    given = [action for action in ACTIONS if value_of_option(options, action)]
    if len(given) != 1:
        raise click.UsageError(
            f"Command must include exactly one action: {', '.join(f'--{action}' for action in ACTIONS)}"
        )
    (action,) = given
    needed, allowed = ACTIONS[action]
    for name in needed:
        if value_of_option(options, name) is None:
            raise click.UsageError(f'Missing required argument "[{_flag(name)}]"')
    if access.bootstrap_controller is not None and action not in OF_CONTROLLERS:
        raise click.UsageError(f'Option "[bootstrap-controller]" can\'t be used with action "[{action}]"')
    for name, value in options.items():
        if value not in (None, False) and name not in (action, *needed, *allowed):
            raise click.UsageError(f'Option "[{_flag(name)}]" can\'t be used with action "[{action}]"')
    return action


def _flag(name: str) -> str:
    return name.replace("_", "-")


def _generate(admin: Admin, options: KafkaReassignPartitionsOptions) -> None:
    from strandline.cli.reassignment import reassignment_admin, reassignment_plan
    from strandline.cli.reassignment.reassignment_proposal import propose

    brokers = reassignment_plan.parse_brokers(required(options["broker_list"]))
    topics = reassignment_plan.parse_topics(reassignment_admin.read_file(required(options["topics_to_move_json_file"])))
    current = reassignment_admin.assignment_of(admin, topics)
    log_dirs = reassignment_admin.current_log_dirs(admin, current)
    racks = reassignment_admin.usable_racks(admin, brokers, rack_aware=not options["disable_rack_aware"])
    proposed = propose(current, racks)
    echo(f"Current partition replica assignment\n{reassignment_plan.encode(current, log_dirs)}\n")
    echo(f"Proposed partition reassignment configuration\n{reassignment_plan.encode(proposed)}")


def _plan(options: KafkaReassignPartitionsOptions) -> ReassignmentPlan:
    from strandline.cli.reassignment import reassignment_admin, reassignment_plan

    return reassignment_plan.parse_plan(reassignment_admin.read_file(required(options["reassignment_json_file"])))


def _execute(admin: Admin, options: KafkaReassignPartitionsOptions) -> None:
    from strandline.cli.reassignment import reassignment_admin, reassignment_plan, reassignment_throttles

    plan = _plan(options)
    reassignment_plan.check(plan)
    under_way = admin.list_partition_reassignments()
    if under_way and not options["additional"]:
        raise _PlainError(EXISTING)
    reassignment_admin.check_brokers(admin, plan.brokers)
    current = reassignment_admin.replicas_of(admin, plan.targets)
    if plan.log_dirs:
        reassignment_admin.check_log_dirs(plan, reassignment_admin.log_dirs(admin, plan.brokers))
    log_dirs = reassignment_admin.current_log_dirs(admin, current)
    echo(f"Current partition replica assignment\n\n{reassignment_plan.encode(current, log_dirs)}\n")
    echo("Save this to use as the --reassignment-json-file option during rollback")
    rate, log_dir_rate = (_rate(options[name]) for name in ("throttle", "replica_alter_log_dirs_throttle"))
    if rate is not None or log_dir_rate is not None:
        echo(VERIFY_PERIODICALLY)
    if rate is not None:
        moving = reassignment_throttles.moves(under_way, plan.targets, current)
        reassignment_throttles.set_throttle(admin, moving, rate)
        echo(f"The inter-broker throttle limit was set to {rate} B/s")
    if log_dir_rate is not None:
        # It has no effect, since nothing moves between log dirs.
        echo(f"The replica-alter-dir throttle limit was set to {log_dir_rate} B/s")
    refused = reassignment_admin.begin(
        admin, plan.targets, allow_replication_factor_change=not options["disallow_replication_factor_change"]
    )
    if refused:
        raise _PlainError("\n".join(["Error reassigning partition(s):", *reassignment_admin.refusal_lines(refused)]))
    partitions = reassignment_plan.names(plan.targets, ",")
    echo(f"Successfully started partition reassignment{_s(plan.targets)} for {partitions}")
    for (topic, index, broker), path in sorted(plan.log_dirs.items(), key=_by_broker):
        echo(f"Successfully started moving log directory to {path} for replica {topic}-{index} with broker {broker} ")


def _rate(given: int | None) -> int | None:
    """The rate; a negative number means none, as Kafka's default."""
    return None if given is None or given < 0 else given


def _verify(admin: Admin, options: KafkaReassignPartitionsOptions) -> None:
    from strandline.cli.reassignment import reassignment_admin

    plan = _plan(options)
    states, under_way = reassignment_admin.states(admin, plan.targets)
    echo("\n".join(state_lines(states)))
    dirs = reassignment_admin.log_dirs(admin, {broker for _, _, broker in plan.log_dirs}) if plan.log_dirs else {}
    current_dirs = reassignment_admin.replica_log_dirs(dirs)
    echo("\n".join(log_dir_lines(plan.log_dirs, current_dirs)))
    if not under_way and plan.log_dirs.keys() <= current_dirs.keys() and not options["preserve_throttles"]:
        _clear_throttles(admin, plan)


def state_lines(states: Mapping[TopicPartition, PartitionMoveState]) -> list[str]:
    from strandline.cli.reassignment.reassignment_plan import name

    lines = ["Status of partition reassignment:"]
    for partition, state in states.items():
        if not state.done:
            lines.append(f"Reassignment of partition {name(partition)} is still in progress.")
        elif state.reached:
            lines.append(f"Reassignment of partition {name(partition)} is completed.")
        else:
            lines.append(
                f"There is no active reassignment of partition {name(partition)}, but replica set is "
                f"{_ids(state.replicas)} rather than {_ids(state.target)}."
            )
    return lines


def log_dir_lines(planned: Mapping[Replica, str], current: Mapping[Replica, str]) -> list[str]:
    """The state of each log dir that a plan names."""
    lines = []
    for (topic, index, broker), path in sorted(planned.items(), key=_by_broker):
        log_dir = current.get((topic, index, broker))
        if log_dir is None:
            lines.append(
                f"Partition {topic}-{index} is not found in any live log dir on broker {broker}. There is likely an offline "
                "log directory on the broker."
            )
        elif log_dir == path:
            lines.append(f"Reassignment of replica {topic}-{index}-{broker} completed successfully.")
        else:
            lines.append(
                f"Partition {topic}-{index} on broker {broker} is not being moved from log dir {log_dir} to {path}."
            )
    return lines


def _cancel(admin: Admin, options: KafkaReassignPartitionsOptions) -> None:
    from strandline.cli.reassignment import reassignment_admin
    from strandline.cli.reassignment.reassignment_plan import names

    plan = _plan(options)
    active = admin.list_partition_reassignments(plan.targets)
    if active:
        refused = reassignment_admin.cancel(admin, active)
        if refused:
            head = f"Error cancelling partition reassignment{_s(refused)} for:"
            raise _PlainError("\n".join([head, *reassignment_admin.refusal_lines(refused)]))
        echo(f"Successfully cancelled partition reassignment{_s(active)} for: {names(active, ',')}")
    else:
        echo("None of the specified partition reassignments are active.")
    # Kafka's tool ends no line here.
    echo("None of the specified partition moves are active.", nl=False)
    if not options["preserve_throttles"]:
        _clear_throttles(admin, plan)


def _clear_throttles(admin: Admin, plan: ReassignmentPlan) -> None:
    from strandline.cli.reassignment import reassignment_admin, reassignment_throttles

    live = reassignment_admin.live_brokers(admin)
    brokers = sorted(live.keys() | plan.brokers)
    echo(f"Clearing broker-level throttles on broker{_s(brokers)} {_ids(brokers)}")
    reassignment_throttles.clear_broker_throttles(admin, live)
    if gone := sorted(plan.brokers - live.keys()):
        note(f"not cleared on {_ids(gone)}: only live brokers can be changed")
    echo(f"Clearing topic-level throttles on topic{_s(plan.topics)} {','.join(plan.topics)}")
    reassignment_throttles.clear_topic_throttles(admin, plan.topics)


def _list(admin: Admin, options: KafkaReassignPartitionsOptions) -> None:
    echo("\n".join(list_lines(admin.list_partition_reassignments())))


def list_lines(under_way: Mapping[TopicPartition, Reassignment]) -> list[str]:
    from strandline.cli.reassignment.reassignment_plan import name

    if not under_way:
        return ["No partition reassignments found."]
    lines = ["Current partition reassignments:"]
    for partition, one in sorted(under_way.items()):
        adding = f" adding: {_ids(one.adding)}." if one.adding else ""
        removing = f" removing: {_ids(one.removing)}." if one.removing else ""
        lines.append(f"{name(partition)}: replicas: {_ids(one.replicas)}.{adding}{removing}")
    return lines


def _ids(ids: Iterable[int]) -> str:
    return ",".join(map(str, ids))


def _s(things: Sized) -> str:
    return "" if len(things) == 1 else "s"


def _by_broker(item: tuple[Replica, str]) -> tuple[int, str, int]:
    (topic, index, broker), _ = item
    return broker, topic, index


_DO = {"generate": _generate, "execute": _execute, "verify": _verify, "cancel": _cancel, "list": _list}
