"""What `reassign` and `kafka-reassign-partitions` share: the current assignment, starting and cancelling moves, their state.

Always true: no move is begun before the whole plan was checked, as far as a client can check it.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from strandline.cli.access.connection import value_of
from strandline.cli.errors import CommandRefused
from strandline.cli.reassignment.reassignment_plan import (
    Assignment,
    ReassignmentPlan,
    Replica,
    name,
    names,
)
from strandline.cli.reassignment.reassignment_proposal import Racks, racks_of
from strandline.client.blocking import Admin
from strandline.client.flow.descriptions import LogDirDescription, Reassignment
from strandline.errors import ErrorCode, KafkaError
from strandline.ids import TopicPartition

STANDARD_INPUT = "-"
METADATA_TIMEOUT_S, METADATA_POLL_S = 5.0, 0.1
"""How long a broker may take to apply the metadata of the controller before its answer is taken as final."""


class PartitionMoveState(NamedTuple):
    """The current and planned replicas of a partition; `done` means that no reassignment of it is in progress."""

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
    """The live brokers and their racks."""
    return {broker.node_id: broker.rack for broker in admin.describe_cluster().brokers}


def usable_racks(admin: Admin, brokers: Iterable[int] | None, *, rack_aware: bool) -> Racks:
    """The racks of the live brokers among these, or of all live brokers (None)."""
    live, wanted = live_brokers(admin), None if brokers is None else set(brokers)
    return racks_of({i: rack for i, rack in live.items() if wanted is None or i in wanted}, rack_aware=rack_aware)


def assignment_of(admin: Admin, topics: Iterable[str]) -> dict[TopicPartition, tuple[int, ...]]:
    """The replicas of every partition of these topics."""
    found = {}
    wanted = sorted(set(topics))
    for topic, answer in (admin.describe_topics(wanted) if wanted else {}).items():
        if isinstance(answer, KafkaError) and answer.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise CommandRefused(f"Topic {topic} not found.")
        found.update({(topic, one.partition): one.replicas for one in value_of(answer).partitions})
    return found


def replicas_of(admin: Admin, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, tuple[int, ...]]:
    """The replicas of these partitions; all of them must exist."""
    wanted = sorted(partitions)
    known = assignment_of(admin, (topic for topic, _ in wanted))
    if missing := [partition for partition in wanted if partition not in known]:
        raise CommandRefused(f"Unable to find partition: {names(missing)}")
    return {partition: known[partition] for partition in wanted}


def log_dirs(admin: Admin, brokers: Iterable[int]) -> dict[int, list[LogDirDescription]]:
    """The log dirs of the live brokers among these."""
    return admin.describe_log_dirs(sorted(set(brokers) & live_brokers(admin).keys()))


def replica_log_dirs(dirs: Mapping[int, list[LogDirDescription]]) -> dict[Replica, str]:
    """The log dir of each replica."""
    return {
        (topic, index, broker): one.path
        for broker, of_broker in dirs.items()
        for one in of_broker
        for (topic, index), replica in one.replicas.items()
        if not replica.is_future
    }


def current_log_dirs(admin: Admin, current: Assignment) -> dict[Replica, str]:
    found = replica_log_dirs(log_dirs(admin, {broker for replicas in current.values() for broker in replicas}))
    return {replica: path for replica, path in found.items() if replica[:2] in current}


def check_log_dirs(plan: ReassignmentPlan, dirs: Mapping[int, list[LogDirDescription]]) -> None:
    """Refuse a log dir unless the replica is in it or the broker has no other: moves between log dirs are not supported."""
    current = replica_log_dirs(dirs)
    for (topic, index, broker), path in sorted(plan.log_dirs.items()):
        log_dir = current.get((topic, index, broker))
        if log_dir is None and [one.path for one in dirs.get(broker, [])] == [path]:
            continue
        if log_dir != path:
            where = f"it is in {log_dir}" if log_dir is not None else "the broker chooses where a new replica goes"
            raise CommandRefused(
                f"{topic}-{index} cannot be moved to log dir {path} of broker {broker} ({where}): moves between the log dirs "
                'of one broker are not supported; write "any" instead'
            )


def check_brokers(admin: Admin, brokers: Iterable[int]) -> None:
    live = live_brokers(admin)
    for broker in sorted(brokers):
        if broker not in live:
            raise CommandRefused(f"Unknown broker id {broker}")


def states(
    admin: Admin, targets: Mapping[TopicPartition, tuple[int, ...]]
) -> tuple[dict[TopicPartition, PartitionMoveState], dict[TopicPartition, Reassignment]]:
    """The state of each partition, and all reassignments in progress in the cluster. A deleted partition has no replicas."""
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
            found[partition] = PartitionMoveState(under_way[partition].replicas, target, False)
        else:
            found[partition] = PartitionMoveState(known.get(partition, ()), target, True)
    return found, under_way


def await_in_place(admin: Admin, targets: Mapping[TopicPartition, tuple[int, ...]]) -> None:
    """Wait until a broker's metadata shows moves that have ended; the controller knows of it a moment earlier."""
    deadline = time.monotonic() + METADATA_TIMEOUT_S
    while time.monotonic() < deadline:
        found, _ = states(admin, targets)
        if all(state.reached or not state.done for state in found.values()):
            return
        time.sleep(METADATA_POLL_S)


def begin(
    admin: Admin, targets: Assignment, *, allow_replication_factor_change: bool = True
) -> dict[TopicPartition, str]:
    """Begin the moves; returns those that were refused, with the reasons."""
    answers = admin.alter_partition_reassignments(
        targets, allow_replication_factor_change=allow_replication_factor_change
    )
    return _refused(answers)


def cancel(admin: Admin, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, str]:
    """Cancel the moves; returns those that were refused, with the reasons."""
    return _refused(admin.alter_partition_reassignments(dict.fromkeys(sorted(partitions))))


def _refused(answers: Mapping[TopicPartition, KafkaError | None]) -> dict[TopicPartition, str]:
    return {key: error.message or error.code.name for key, error in sorted(answers.items()) if error is not None}


def refusal_lines(refused: Mapping[TopicPartition, str]) -> list[str]:
    return [f"{name(partition)}: {why}" for partition, why in refused.items()]
