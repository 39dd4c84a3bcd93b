"""What `reassign` and `kafka-reassign-partitions` share: where partitions are, moving them, and how far that is.

Always true: nothing is begun before the whole plan was found to be possible, as far as can be known from here.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from strandline.cli.access.connection import value_of
from strandline.cli.errors import Refused
from strandline.cli.reassignment.reassignment_plan import Assignment, Plan, Replica, name, names
from strandline.cli.reassignment.reassignment_proposal import Racks, racks_of
from strandline.client.blocking import Admin
from strandline.client.flow.described import LogDir, Reassignment
from strandline.errors import ErrorCode, KafkaError
from strandline.ids import TopicPartition

STANDARD_INPUT = "-"
METADATA_TIMEOUT_S, METADATA_POLL_S = 5.0, 0.1
"""How long a broker may take to apply what the controller has decided before its answer is believed."""


class State(NamedTuple):
    """Where one partition of a plan is; `done`: it is not on its way any more."""

    replicas: tuple[int, ...]
    target: tuple[int, ...]
    done: bool

    @property
    def reached(self) -> bool:
        return self.done and self.replicas == self.target


def read_file(path: str) -> str:
    if path == STANDARD_INPUT:
        return sys.stdin.read()
    with open(path, encoding="utf-8") as file:
        return file.read()


def live_brokers(admin: Admin) -> dict[int, str | None]:
    """With their racks."""
    return {broker.node_id: broker.rack for broker in admin.describe_cluster().brokers}


def usable_racks(admin: Admin, brokers: Iterable[int] | None, *, rack_aware: bool) -> Racks:
    """The live ones among these brokers, or all (None)."""
    live, wanted = live_brokers(admin), None if brokers is None else set(brokers)
    return racks_of({i: rack for i, rack in live.items() if wanted is None or i in wanted}, rack_aware=rack_aware)


def assignment_of(admin: Admin, topics: Iterable[str]) -> dict[TopicPartition, tuple[int, ...]]:
    """Every partition of these topics."""
    found = {}
    wanted = sorted(set(topics))
    for topic, answer in (admin.describe_topics(wanted) if wanted else {}).items():
        if isinstance(answer, KafkaError) and answer.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise Refused(f"Topic {topic} not found.")
        found.update({(topic, one.partition): one.replicas for one in value_of(answer).partitions})
    return found


def replicas_of(admin: Admin, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, tuple[int, ...]]:
    """These partitions; all of them must be there."""
    wanted = sorted(partitions)
    known = assignment_of(admin, (topic for topic, _ in wanted))
    if missing := [partition for partition in wanted if partition not in known]:
        raise Refused(f"Unable to find partition: {names(missing)}")
    return {partition: known[partition] for partition in wanted}


def log_dirs(admin: Admin, brokers: Iterable[int]) -> dict[int, list[LogDir]]:
    """Of those among these brokers that are alive."""
    return admin.describe_log_dirs(sorted(set(brokers) & live_brokers(admin).keys()))


def places(dirs: Mapping[int, list[LogDir]]) -> dict[Replica, str]:
    """The log dir of each replica."""
    return {
        (topic, index, broker): one.path
        for broker, of_broker in dirs.items()
        for one in of_broker
        for (topic, index), replica in one.replicas.items()
        if not replica.is_future
    }


def current_places(admin: Admin, current: Assignment) -> dict[Replica, str]:
    found = places(log_dirs(admin, {broker for replicas in current.values() for broker in replicas}))
    return {place: path for place, path in found.items() if place[:2] in current}


def check_log_dirs(plan: Plan, dirs: Mapping[int, list[LogDir]]) -> None:
    """A log dir may be named if the replica is in it, or can be in no other: nothing has to move between log dirs then."""
    current = places(dirs)
    for (topic, index, broker), path in sorted(plan.log_dirs.items()):
        place = current.get((topic, index, broker))
        if place is None and [one.path for one in dirs.get(broker, [])] == [path]:
            continue
        if place != path:
            where = f"it is in {place}" if place is not None else "the broker chooses where a new replica goes"
            raise Refused(
                f"{topic}-{index} cannot be moved to log dir {path} of broker {broker} ({where}): moves between the log dirs "
                'of one broker are not supported; write "any" instead'
            )


def check_brokers(admin: Admin, brokers: Iterable[int]) -> None:
    live = live_brokers(admin)
    for broker in sorted(brokers):
        if broker not in live:
            raise Refused(f"Unknown broker id {broker}")


def states(
    admin: Admin, targets: Mapping[TopicPartition, tuple[int, ...]]
) -> tuple[dict[TopicPartition, State], dict[TopicPartition, Reassignment]]:
    """Of each partition, and all reassignments under way, also those of others. A partition that is gone has no replicas."""
    under_way = admin.list_partition_reassignments()
    settled = {topic for topic, index in targets if (topic, index) not in under_way}
    known: dict[TopicPartition, tuple[int, ...]] = {}
    for topic, answer in (admin.describe_topics(settled) if settled else {}).items():
        if not isinstance(answer, KafkaError):
            known.update({(topic, one.partition): one.replicas for one in answer.partitions})
        elif answer.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise answer
    found = {}
    for partition, target in sorted(targets.items()):
        if partition in under_way:
            found[partition] = State(under_way[partition].replicas, target, False)
        else:
            found[partition] = State(known.get(partition, ()), target, True)
    return found, under_way


def await_in_place(admin: Admin, targets: Mapping[TopicPartition, tuple[int, ...]]) -> None:
    """Of moves that have ended: the controller knows it first, and the broker that describes topics a moment later."""
    deadline = time.monotonic() + METADATA_TIMEOUT_S
    while time.monotonic() < deadline:
        found, _ = states(admin, targets)
        if all(state.reached or not state.done for state in found.values()):
            return
        time.sleep(METADATA_POLL_S)


def begin(
    admin: Admin, targets: Assignment, *, allow_replication_factor_change: bool = True
) -> dict[TopicPartition, str]:
    """Start to move; what was refused, and why."""
    answers = admin.alter_partition_reassignments(
        targets, allow_replication_factor_change=allow_replication_factor_change
    )
    return _refused(answers)


def cancel(admin: Admin, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, str]:
    """Go back to the replicas from before; what was refused, and why."""
    return _refused(admin.alter_partition_reassignments(dict.fromkeys(sorted(partitions))))


def _refused(answers: Mapping[TopicPartition, KafkaError | None]) -> dict[TopicPartition, str]:
    return {key: error.message or error.code.name for key, error in sorted(answers.items()) if error is not None}


def refusal_lines(refused: Mapping[TopicPartition, str]) -> list[str]:
    return [f"{name(partition)}: {why}" for partition, why in refused.items()]
