"""What `groups` and `kafka-consumer-groups` share: looking at groups, and moving or removing their offsets.

Always true: a group that has members is never reset; a partition whose log can't be asked has no lag, and the rest is told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from strandline.cli.access.connection import value_of
from strandline.cli.errors import Refused
from strandline.cli.groups import offset_resets
from strandline.cli.groups.group_rows import OffsetRow, offset_rows, partitions_of
from strandline.cli.groups.offset_resets import LATEST, NO_OFFSET, OUR_WORDS, Plan, Scope, Words
from strandline.client.blocking import Admin
from strandline.client.flow.group_described import GroupDescription, GroupListing, OffsetAndMetadata
from strandline.errors import ErrorCode, KafkaError
from strandline.ids import TopicPartition

CONSUMER_PROTOCOLS = ("consumer", "")
"""Groups of consumers, and those that only committed offsets."""
INACTIVE = ("Empty", "Dead")
REBALANCING = ("PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling")


class NoSuchTopic(Refused):
    """A topic was named that is not there; says which."""

    def __init__(self, topic: str) -> None:
        super().__init__(f"there is no topic '{topic}'; `strandline topics list` shows those that there are")


def list_groups(admin: Admin, states: Iterable[str] = (), types: Iterable[str] = ()) -> list[GroupListing]:
    """Groups of consumers, as Kafka's tool has them: others that coordinate through a broker are not shown."""
    found = admin.list_groups(states=states, types=types)
    return sorted(group for group in found if group.protocol_type in CONSUMER_PROTOCOLS)


def describe(admin: Admin, groups: Sequence[str]) -> dict[str, GroupDescription]:
    """Each of the groups, or the first error that was given for one."""
    answers = admin.describe_groups(groups)
    return {group: value_of(answers[group]) for group in sorted(answers)}


def look_at(admin: Admin, groups: Iterable[str]) -> tuple[list[GroupDescription], dict[str, KafkaError]]:
    """The groups that can be described, and why the others can't."""
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
    """None if there is no such group."""
    answer = admin.describe_groups([group])[group]
    if isinstance(answer, KafkaError):
        if answer.code is ErrorCode.GROUP_ID_NOT_FOUND:
            return None
        raise answer
    return None if answer.state == "Dead" else answer.state


def has_members(state: str | None) -> bool:
    return state is not None and state not in INACTIVE


def committed(admin: Admin, group: str) -> dict[TopicPartition, OffsetAndMetadata]:
    """What the group has committed; the first error of a partition if there is one."""
    answers = value_of(admin.list_group_offsets({group: None})[group])
    return {key: value_of(answer) for key, answer in answers.items() if answer is not None}


def committed_offsets(admin: Admin, group: str) -> dict[TopicPartition, int]:
    return {key: at.offset for key, at in committed(admin, group).items()}


def offsets_of(admin: Admin, group: GroupDescription) -> list[OffsetRow]:
    known = committed(admin, group.group_id)
    partitions = partitions_of(group, known)
    answers = admin.list_offsets(dict.fromkeys(partitions, LATEST)) if partitions else {}
    ends = {key: answer.offset for key, answer in answers.items() if not isinstance(answer, KafkaError)}
    return offset_rows(group, known, ends)


def log_offsets(admin: Admin) -> offset_resets.Ends:
    """Where logs begin and end, and what they hold at a time."""

    def ask(partitions: Sequence[TopicPartition], timestamp: int) -> Mapping[TopicPartition, int]:
        answers = admin.list_offsets(dict.fromkeys(partitions, timestamp)) if partitions else {}
        found = {key: value_of(answer) for key, answer in answers.items()}
        return {key: NO_OFFSET if at.offset < 0 else at.offset for key, at in found.items()}

    return ask


def choose(admin: Admin, arguments: Sequence[str]) -> list[TopicPartition]:
    """The partitions that `topic` or `topic:0,1` mean; refused if one is not there, or has no leader."""
    wanted = [offset_resets.parse_partitions(argument) for argument in arguments]
    topics = admin.describe_topics(dict.fromkeys(topic for topic, _ in wanted))
    chosen: dict[TopicPartition, None] = {}
    missing, leaderless = [], []
    for topic, indexes in wanted:
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


class Reset:
    """A reset of one or several groups: planned, then perhaps carried out."""

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
        words: Words = OUR_WORDS,
    ) -> None:
        self._admin = admin
        self._scenario = scenario
        self._value = value
        self._topics = topics
        self._all_topics = all_topics
        self._now_ms = now_ms
        self._warn = warn
        self._words = words
        self._offsets_at = log_offsets(admin)

    def plan(self, group: str, groups: Sequence[str], known: Mapping[TopicPartition, int]) -> Plan:
        """For one of the groups that are reset together; `known` is what it has committed."""
        if self._scenario == "from_file":
            return self._from_file(group, groups, known)
        if self._all_topics:
            partitions = choose(self._admin, [f"{topic}:{index}" for topic, index in sorted(known)]) if known else []
        else:
            partitions = choose(self._admin, self._topics)
        planned = offset_resets.plan(self._scope(group, partitions, known), self._scenario, self._value, self._now_ms)
        return {key: planned[key] for key in partitions}

    def _scope(self, group: str, partitions: Sequence[TopicPartition], known: Mapping[TopicPartition, int]) -> Scope:
        return Scope(group, partitions, known, self._offsets_at, self._warn, self._words)

    def _from_file(self, group: str, groups: Sequence[str], known: Mapping[TopicPartition, int]) -> Plan:
        try:
            with open(str(self._value), encoding="utf-8") as file:
                text = file.read()
        except UnicodeDecodeError:
            raise Refused(f"{self._value} is not text; a plan has lines of topic,partition,offset") from None
        plans = offset_resets.read_csv(text, groups)
        if group not in plans:
            raise Refused(f"No reset plan for group {group} found.")
        choose(self._admin, [f"{topic}:{index}" for topic, index in plans[group]])
        return offset_resets.from_plan(self._scope(group, list(plans[group]), known), plans[group])

    def execute(self, group: str, planned: Plan) -> None:
        if planned:
            offsets = {key: OffsetAndMetadata(offset) for key, offset in planned.items()}
            for answer in self._admin.alter_group_offsets(group, offsets).values():
                value_of(answer)


def delete_offsets(
    admin: Admin, group: str, arguments: Sequence[str]
) -> tuple[KafkaError | None, dict[TopicPartition, KafkaError | None]]:
    """Remove a group's offsets of these topics or partitions: what stood against all of it, and against each partition."""
    wanted = [offset_resets.parse_partitions(argument) for argument in arguments]
    results: dict[TopicPartition, KafkaError | None] = {}
    partitions = [(topic, index) for topic, indexes in wanted for index in indexes or ()]
    whole = [topic for topic, indexes in wanted if indexes is None]
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
