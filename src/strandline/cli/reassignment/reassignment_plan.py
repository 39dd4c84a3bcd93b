"""Reassignment plans: reading, checking and writing Kafka's JSON files.

    {"version": 1, "partitions": [{"topic": "t", "partition": 0, "replicas": [1, 2], "log_dirs": ["any", "any"]}]}
    {"version": 1, "topics": [{"topic": "t"}]}

Always true: an invalid file is refused with one line that names the entry; without `log_dirs`, any log dir is meant.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from strandline.cli.errors import CommandRefused
from strandline.ids import TopicPartition

VERSION = 1
ANY_LOG_DIR = "any"
Replica = tuple[str, int, int]
"""A topic, a partition of it, and the broker that holds it."""
Assignment = Mapping[TopicPartition, Sequence[int]]
H = TypeVar("H", bound=Hashable)
T = TypeVar("T")


class PlanError(CommandRefused):
    """An invalid plan, with the reason."""


class ReassignmentPlan(NamedTuple):
    """Partitions with their new replicas, as the file lists them, and the log dirs that it names."""

    partitions: tuple[tuple[TopicPartition, tuple[int, ...]], ...]
    log_dirs: dict[Replica, str]

    @property
    def targets(self) -> dict[TopicPartition, tuple[int, ...]]:
        return dict(sorted(self.partitions))

    @property
    def topics(self) -> list[str]:
        return sorted({topic for (topic, _), _ in self.partitions})

    @property
    def brokers(self) -> set[int]:
        return {broker for _, replicas in self.partitions for broker in replicas}


def parse_plan(text: str) -> ReassignmentPlan:
    """The plan in a file; `check` finds partitions that it names twice."""
    partitions: list[tuple[TopicPartition, tuple[int, ...]]] = []
    log_dirs: dict[Replica, str] = {}
    for number, entry in enumerate(_entries(text, "partitions")):
        place = f"partitions[{number}]"
        topic, index = _text(entry, "topic", place), _number(entry, "partition", place)
        replicas = _list(entry, "replicas", place, int)
        dirs = _list(entry, "log_dirs", place, str) if "log_dirs" in entry else (ANY_LOG_DIR,) * len(replicas)
        if len(replicas) != len(dirs):
            raise PlanError(
                f"Size of replicas list {_java_list(replicas)} is different from size of log dirs list "
                f"{_java_list(dirs)} for partition {topic}-{index}"
            )
        partitions.append(((topic, index), replicas))
        log_dirs.update(
            {(topic, index, r): path for r, path in zip(replicas, dirs, strict=True) if path != ANY_LOG_DIR}
        )
    return ReassignmentPlan(tuple(partitions), log_dirs)


def check(plan: ReassignmentPlan) -> None:
    """Raise PlanError unless the plan can be executed."""
    if not plan.partitions:
        raise PlanError("Partition reassignment list cannot be empty")
    if not all(replicas for _, replicas in plan.partitions):
        raise PlanError("Partition replica list cannot be empty")
    if twice := duplicates(partition for partition, _ in plan.partitions):
        raise PlanError(f"Partition reassignment contains duplicate topic partitions: {names(twice, ',')}")
    repeated = [(partition, duplicates(replicas)) for partition, replicas in plan.partitions]
    if any(again for _, again in repeated):
        found = ". ".join(
            f"{name(partition)} contains multiple entries for {','.join(map(str, again))}"
            for partition, again in repeated
            if again
        )
        raise PlanError(f"Partition replica lists may not contain duplicate entries: {found}")


def parse_topics(text: str) -> list[str]:
    """The names in a file of topics to move."""
    topics = [_text(entry, "topic", f"topics[{number}]") for number, entry in enumerate(_entries(text, "topics"))]
    if twice := duplicates(topics):
        raise PlanError(f"List of topics to reassign contains duplicate entries: {_java_list(twice)}")
    return topics


def parse_brokers(text: str) -> list[int]:
    """`1,2,3` as numbers."""
    try:
        brokers = [int(part) for part in text.split(",")]
    except ValueError:
        raise PlanError(f"'{text}' is not a list of broker ids like 1,2,3") from None
    if twice := duplicates(brokers):
        raise PlanError(f"Broker list contains duplicate entries: {_java_list(twice)}")
    return brokers


def encode(assignment: Assignment, log_dirs: Mapping[Replica, str] | None = None) -> str:
    """One line of JSON, as Kafka's tool writes it."""
    known = log_dirs or {}
    partitions = [
        {
            "topic": topic,
            "partition": index,
            "replicas": list(replicas),
            "log_dirs": [known.get((topic, index, replica), ANY_LOG_DIR) for replica in replicas],
        }
        for (topic, index), replicas in sorted(assignment.items())
    ]
    return json.dumps({"version": VERSION, "partitions": partitions}, separators=(",", ":"), ensure_ascii=False)


def name(partition: TopicPartition) -> str:
    return f"{partition[0]}-{partition[1]}"


def names(partitions: Iterable[TopicPartition], between: str = ", ") -> str:
    return between.join(map(name, sorted(partitions)))


def duplicates(items: Iterable[H]) -> list[H]:
    """The items that occur more than once, each once."""
    seen: set[H] = set()
    again: dict[H, None] = {}
    for item in items:
        if item in seen:
            again[item] = None
        seen.add(item)
    return list(again)


def _entries(text: str, key: str) -> list[dict[str, object]]:
    try:
        document = json.loads(text)
    except ValueError as error:
        raise PlanError(f"not JSON: {error}") from None
    if not isinstance(document, dict):
        raise PlanError(f'not a JSON object with "version" and "{key}"')
    version = document.get("version", VERSION)
    if version != VERSION or isinstance(version, bool):
        raise PlanError(f"Not supported version field value {version}")
    entries = document.get(key, [])
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise PlanError(f'"{key}" must be a list of objects')
    return entries


def _text(entry: dict[str, object], key: str, place: str) -> str:
    value = entry.get(key)
    if not isinstance(value, str):
        raise PlanError(f'{place}: "{key}" must be a string')
    return value


def _number(entry: dict[str, object], key: str, place: str) -> int:
    value = entry.get(key)
    if not isinstance(value, int) or isinstance(value, bool):
        raise PlanError(f'{place}: "{key}" must be a whole number')
    return value


def _list(entry: dict[str, object], key: str, place: str, kind: type[T]) -> tuple[T, ...]:
    value = entry.get(key)
    if not isinstance(value, list) or not all(isinstance(each, kind) and not isinstance(each, bool) for each in value):
        raise PlanError(f'{place}: "{key}" must be a list of {"broker ids" if kind is int else "paths"}')
    return tuple(value)


def _java_list(values: Iterable[object]) -> str:
    return f"[{', '.join(map(str, values))}]"
