"""What `groups` and `kafka-consumer-groups` share: describing groups, and resetting or deleting their offsets.

Always true: a group that has members is never reset; a partition whose log end is unknown has no lag, and is still listed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from strandline.cli.access.connection import value_of
from strandline.cli.errors import CommandRefused
from strandline.cli.groups import offset_resets
from strandline.cli.groups.group_rows import OffsetRow, offset_rows, partitions_of
from strandline.cli.groups.offset_resets import (
    LATEST,
    NO_OFFSET,
    OUR_WARNINGS,
    OffsetPlan,
    ResetScope,
    ResetWarnings,
)
from strandline.client.blocking import Admin
from strandline.client.flow.group_descriptions import GroupDescription, GroupListing, OffsetAndMetadata
from strandline.errors import ErrorCode, KafkaError
from strandline.ids import TopicPartition

CONSUMER_PROTOCOLS = ("consumer", "")
"""Protocol types of consumer groups, and of groups that only committed offsets."""
INACTIVE = ("Empty", "Dead")
REBALANCING = ("PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling")


class NoSuchTopic(CommandRefused):
    """A named topic that does not exist."""

    def __init__(self, topic: str) -> None:
        super().__init__(f"there is no topic '{topic}'; `strandline topics list` lists the existing ones")


def list_groups(admin: Admin, states: Iterable[str] = (), types: Iterable[str] = ()) -> list[GroupListing]:
    """Consumer groups, as in Kafka's tool: groups of other protocol types are not listed."""
    found = admin.list_groups(states=states, types=types)
    return sorted(group for group in found if group.protocol_type in CONSUMER_PROTOCOLS)


def describe(admin: Admin, groups: Sequence[str]) -> dict[str, GroupDescription]:
    """The description of each group; raises the first error."""
    answers = admin.describe_groups(groups)
    return {group: value_of(answers[group]) for group in sorted(answers)}


def describe_or_error(admin: Admin, groups: Iterable[str]) -> tuple[list[GroupDescription], dict[str, KafkaError]]:
    """The descriptions of groups, and the errors of those that have none."""
    answers = admin.describe_groups(list(groups))
    failed: dict[str, KafkaError] = {}
    found = []
    for group, answer in sorted(answers.items()):
        if isinstance(answer, KafkaError):
            failed[group] = answer
        elif answer.state == "Dead":
            failed[group] = KafkaError(ErrorCode.GROUP_ID_NOT_FOUND)
        else:
            found.append(answer)
    return found, failed


def state_of(admin: Admin, group: str) -> str | None:
    """The state of a group; None if it does not exist."""
    answer = admin.describe_groups([group])[group]
    if isinstance(answer, KafkaError):
        if answer.code is ErrorCode.GROUP_ID_NOT_FOUND:
            return None
        raise answer
    return None if answer.state == "Dead" else answer.state


def has_members(state: str | None) -> bool:
    return state is not None and state not in INACTIVE


def committed(admin: Admin, group: str) -> dict[TopicPartition, OffsetAndMetadata]:
    """The committed offsets of a group; raises the first error of a partition."""
    answers = value_of(admin.list_group_offsets({group: None})[group])
    return {key: value_of(answer) for key, answer in answers.items() if answer is not None}


def committed_offsets(admin: Admin, group: str) -> dict[TopicPartition, int]:
    return {key: at.offset for key, at in committed(admin, group).items()}


def offsets_of(admin: Admin, group: GroupDescription, *, read_committed: bool = False) -> list[OffsetRow]:
    """With the ends of logs, or the last stable offsets, which are as far as a reader of that isolation level gets."""
    known = committed(admin, group.group_id)
    partitions = partitions_of(group, known)
    latest = dict.fromkeys(partitions, LATEST)
    answers = admin.list_offsets(latest, read_committed=read_committed) if partitions else {}
    ends = {key: answer.offset for key, answer in answers.items() if not isinstance(answer, KafkaError)}
    return offset_rows(group, known, ends)


def log_offsets(admin: Admin) -> offset_resets.OffsetLookup:
    """Lookup of log start, log end, and the offset at a timestamp."""

    def ask(partitions: Sequence[TopicPartition], timestamp: int) -> Mapping[TopicPartition, int]:
        answers = admin.list_offsets(dict.fromkeys(partitions, timestamp)) if partitions else {}
        found = {key: value_of(answer) for key, answer in answers.items()}
        return {key: NO_OFFSET if at.offset < 0 else at.offset for key, at in found.items()}

    return ask


def choose(admin: Admin, arguments: Sequence[str]) -> list[TopicPartition]:
    """The partitions named by `topic` or `topic:0,1`; refused if one does not exist or has no leader."""
    requested = [offset_resets.parse_partitions(argument) for argument in arguments]
    topics = admin.describe_topics(dict.fromkeys(topic for topic, _ in requested))
    chosen: dict[TopicPartition, None] = {}
    missing, leaderless = [], []
    for topic, indexes in requested:
        described = topics[topic]
        if isinstance(described, KafkaError) and described.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise NoSuchTopic(topic)
        present = {partition.partition: partition.leader for partition in value_of(described).partitions}
        for index in present if indexes is None else indexes:
            chosen[topic, index] = None
            if index not in present:
                missing.append(f"{topic}-{index}")
            elif present[index] < 0:
                leaderless.append(f"{topic}-{index}")
    if missing:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f'The partitions "{",".join(missing)}" do not exist')
    if leaderless:
        raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f'The partitions "{",".join(leaderless)}" have no leader')
    return list(chosen)


class OffsetReset:
    """A reset of the offsets of one or several groups: a plan, and its execution."""

    def __init__(
        self,
        admin: Admin,
        scenario: str,
        value: str | int | None,
        *,
        topics: Sequence[str],
        all_topics: bool,
        now_ms: int,
        warn: Callable[[str], None],
        warnings: ResetWarnings = OUR_WARNINGS,
    ) -> None:
        self._admin = admin
        self._scenario = scenario
        self._value = value
        self._topics = topics
        self._all_topics = all_topics
        self._now_ms = now_ms
        self._warn = warn
        self._warnings = warnings
        self._offsets_at = log_offsets(admin)

    def plan(self, group: str, groups: Sequence[str], known: Mapping[TopicPartition, int]) -> OffsetPlan:
        """The plan for one of `groups`, which are reset together; `known` are its committed offsets."""
        if self._scenario == "from_file":
            return self._from_file(group, groups, known)
        if self._all_topics:
            partitions = choose(self._admin, [f"{topic}:{index}" for topic, index in sorted(known)]) if known else []
        else:
            partitions = choose(self._admin, self._topics)
        planned = offset_resets.plan(self._scope(group, partitions, known), self._scenario, self._value, self._now_ms)
        return {key: planned[key] for key in partitions}

    def _scope(
        self, group: str, partitions: Sequence[TopicPartition], known: Mapping[TopicPartition, int]
    ) -> ResetScope:
        return ResetScope(group, partitions, known, self._offsets_at, self._warn, self._warnings)

    def _from_file(self, group: str, groups: Sequence[str], known: Mapping[TopicPartition, int]) -> OffsetPlan:
        try:
            with open(str(self._value), encoding="utf-8") as file:
                text = file.read()
        except UnicodeDecodeError:
            raise CommandRefused(
                f"{self._value} is not text; an offset plan has lines of topic,partition,offset"
            ) from None
        plans = offset_resets.read_csv(text, groups)
        if group not in plans:
            raise CommandRefused(f"No reset plan for group {group} found.")
        choose(self._admin, [f"{topic}:{index}" for topic, index in plans[group]])
        return offset_resets.from_plan(self._scope(group, list(plans[group]), known), plans[group])

    def execute(self, group: str, planned: OffsetPlan) -> None:
        if planned:
            offsets = {key: OffsetAndMetadata(offset) for key, offset in planned.items()}
            for answer in self._admin.alter_group_offsets(group, offsets).values():
                value_of(answer)


def delete_offsets(
    admin: Admin, group: str, arguments: Sequence[str]
) -> tuple[KafkaError | None, dict[TopicPartition, KafkaError | None]]:
    """Delete a group's offsets of topics or partitions; returns the error of the request, and that of each partition."""
    requested = [offset_resets.parse_partitions(argument) for argument in arguments]
    results: dict[TopicPartition, KafkaError | None] = {}
    partitions = [(topic, index) for topic, indexes in requested for index in indexes or ()]
    whole = [topic for topic, indexes in requested if indexes is None]
    for topic, description in (admin.describe_topics(whole) if whole else {}).items():
        if isinstance(description, KafkaError):
            results[topic, -1] = description
        else:
            partitions += [(topic, partition.partition) for partition in description.partitions]
    try:
        answers = admin.delete_group_offsets(group, list(dict.fromkeys(partitions)))
    except KafkaError as error:
        return error, results | dict.fromkeys(partitions, error)
    results |= answers
    return next((error for error in answers.values() if error is not None), None), results
