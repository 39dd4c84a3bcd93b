"""Stories of a group of the consumer protocol, told as a transcript: what is done at the margin, what comes of it
indented.

    play('''
        topics t=3
        join a topics=t
            log: member a, group 2, target a, target@2, current a
            a: epoch 2, t=0,1,2
        beat a
            a: epoch 2
    ''')

A transcript is performed, written down anew, and has to be what it was. A member's id is its name, unless `id=` says
otherwise.

    join NAME [topics= regex= instance= rack= assignor= rebalance= v= id=]     what isn't said is as it was before
    beat NAME [epoch= owns=t:0,1+u:0 topics= regex= assignor= instance= id=]   says no more than that; `owns=-`: nothing
    ack NAME            a heartbeat with just the partitions that it was last told
    again NAME          everything it has to say, once more
    leave NAME, away NAME
    topics NAME=PARTITIONS ... [racks=R1,R2]    the topics that there are from now on; a name with a ' is made anew
    tick SECONDS, hold, commit, fail CODE, refuse CODE, accept, reload
    status, describe, timers
"""

from __future__ import annotations

import textwrap
from typing import Any

from strandline.coordinator.record import CoordinatorRecord
from strandline.errors import ErrorCode, KafkaError
from strandline.groups.caller import Caller
from strandline.groups.consumer.group import ConsumerGroup
from strandline.groups.records import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
)
from strandline.ids import Uuid
from strandline.metadata.image import BrokerImage, MetadataImage, PartitionImage, TopicImage
from strandline.wire import messages
from tests.unit.groups.driver import Call, Driver

GROUP = "g"
CONSUMER_GROUP_HEARTBEAT = 68


def play(transcript: str, **settings: str) -> Stage:
    """Perform a transcript, with these settings (keys with underscores); the stage as it was left."""
    told = textwrap.dedent(transcript).strip()
    stage = Stage(**settings)
    for line in told.splitlines():
        if line and not line.startswith(" "):
            stage.perform(line)
        elif not line:
            stage.lines.append("")
    assert "\n".join(stage.lines) == told
    return stage


def image_of(end_offset: int, topics: dict[str, tuple[Uuid, int]], racks: list[str] | None = None) -> MetadataImage:
    """Every partition has one replica, on the brokers in turn."""
    brokers = {
        number: BrokerImage(number, 0, Uuid(bytes(16)), (), rack=rack) for number, rack in enumerate(racks or ["-"], 1)
    }
    if racks is None:
        brokers = {}
    images = [
        TopicImage(
            name,
            topic_id,
            tuple(PartitionImage((1 + index % max(1, len(brokers)),), (1,), 1, 0, 0) for index in range(count)),
        )
        for name, (topic_id, count) in topics.items()
    ]
    return MetadataImage(
        end_offset=end_offset,
        topics={topic.name: topic for topic in images},
        topics_by_id={topic.topic_id: topic for topic in images},
        brokers=brokers,
    )


class Stage:
    def __init__(self, **settings: str) -> None:
        self.driver = Driver(None, 1, **{"group_consumer_assignment_interval_ms": "0", **settings})
        self.lines: list[str] = []
        self._ids: dict[str, Uuid] = {}
        self._names: dict[Uuid, str] = {}
        self._options: dict[str, dict[str, str]] = {}
        self._epochs: dict[str, int] = {}
        self._told: dict[str, str] = {}
        self._written: list[str] = []
        self.driver.answered = self._heard
        self.driver.appended = self._appended

    @property
    def group(self) -> ConsumerGroup:
        group = self.driver.shard.groups[GROUP]
        assert isinstance(group, ConsumerGroup)
        return group

    def perform(self, line: str) -> None:
        self.lines.append(line)
        words = line.partition("#")[0].split()
        if words:
            getattr(self, f"_{words[0]}")(*words[1:])
            self._tell_log()

    def say(self, text: str) -> None:
        self._tell_log()
        self.lines.append(f"    {text}")

    # What members do

    def _join(self, name: str, *words: str) -> None:
        self._options.setdefault(name, {}).update(dict(word.split("=", 1) for word in words))
        self._full(name, epoch=0, owned=[])

    def _again(self, name: str, *words: str) -> None:
        given = dict(word.split("=", 1) for word in words)
        epoch = int(given.get("epoch", self._epochs[name]))
        self._full(name, epoch, self._partitions(given.get("owns", self._told.get(name, "-"))))

    def _full(self, name: str, epoch: int, owned: list[Any]) -> None:
        options = self._options[name]
        self._send(
            name,
            version=int(options.get("v", "1")),
            member_id=options.get("id", name),
            member_epoch=epoch,
            instance_id=options.get("instance"),
            rack_id=options.get("rack"),
            rebalance_timeout_ms=round(float(options.get("rebalance", "60")) * 1000),
            subscribed_topic_names=_split(options.get("topics")),
            subscribed_topic_regex=options.get("regex"),
            server_assignor=options.get("assignor"),
            topic_partitions=owned,
        )

    def _beat(self, name: str, *words: str) -> None:
        given = dict(word.split("=", 1) for word in words)
        options = self._options.setdefault(name, {})
        for option in ("topics", "regex", "assignor"):
            if option in given:
                options[option] = given[option]
        self._send(
            name,
            version=1,
            member_id=given.get("id", options.get("id", name)),
            member_epoch=int(given.get("epoch", self._epochs.get(name, 1))),
            instance_id=given.get("instance", options.get("instance")),
            subscribed_topic_names=_split(given.get("topics")),
            subscribed_topic_regex=given.get("regex"),
            server_assignor=given.get("assignor"),
            topic_partitions=self._partitions(given["owns"]) if "owns" in given else None,
        )

    def _ack(self, name: str) -> None:
        self._beat(name, f"owns={self._told.get(name, '-')}")

    def _leave(self, name: str, *words: str) -> None:
        self._beat(name, "epoch=-1", *words)

    def _away(self, name: str, *words: str) -> None:
        self._beat(name, "epoch=-2", *words)

    def _send(self, name: str, version: int, **fields: Any) -> None:
        request = messages.request(CONSUMER_GROUP_HEARTBEAT)(group_id=GROUP, **fields)
        try:
            self.driver.call("consumer_group_heartbeat", request, version, f"client-{name}", name)
        except KafkaError as error:
            self.say(f"{name}: {error.code.name}")

    # What happens to them

    def _topics(self, *words: str) -> None:
        racks = [word.removeprefix("racks=").split(",") for word in words if word.startswith("racks=")]
        topics = {}
        for word in words:
            if not word.startswith("racks="):
                label, _, count = word.partition("=")
                topic_id = self._ids.setdefault(label, Uuid(len(self._ids).to_bytes(16, "big")))
                self._names[topic_id] = label
                topics[label.removesuffix("'")] = (topic_id, int(count))
        around = self.driver.around
        around.image = image_of(around.image.end_offset + 1, topics, racks[0] if racks else None)
        self.driver.carry_out(self.driver.shard.metadata_changed(around.image, frozenset(), self.driver.at))

    def _tick(self, seconds: str) -> None:
        self.driver.advance(float(seconds))

    def _hold(self) -> None:
        self.driver.hold()

    def _commit(self) -> None:
        self.driver.commit()

    def _fail(self, code: str) -> None:
        self.driver.commit(ErrorCode[code])

    def _refuse(self, code: str) -> None:
        self.driver.refuses = ErrorCode[code]

    def _accept(self) -> None:
        self.driver.refuses = None

    def _reload(self) -> None:
        self.driver.reload()

    # What is seen

    def _status(self) -> None:
        if GROUP not in self.driver.shard.groups:
            self.say("no group")
            return
        group = self.group
        self.say(f"{group.state_name()}, group {group.group_epoch}, target {group.assignment_epoch}")
        for member in group.members.values():
            has, revoking = self._shown(member.assigned_partitions), self._shown(member.partitions_pending_revocation)
            text = f"{member.member_id} {member.member_epoch} {member.state.name.split('_')[0]} {has}"
            self.say(text if revoking == "-" else f"{text}, revoking {revoking}")

    def _describe(self) -> None:
        described = self.driver.shard.describe_consumer_group(GROUP, Caller("admin", "/127.0.0.1", 1))
        if described.error_code:
            self.say(f"{ErrorCode(described.error_code).name}: {described.error_message}")
            return
        self.say(
            f"{described.group_state} {described.group_epoch}/{described.assignment_epoch} by {described.assignor_name}"
        )
        for member in described.members:
            assigned, target = (
                "+".join(f"{topic.topic_name}:{_numbers(topic.partitions)}" for topic in assignment.topic_partitions)
                or "-"
                for assignment in (member.assignment, member.target_assignment)
            )
            wants = ",".join(member.subscribed_topic_names) + (
                f"/{member.subscribed_topic_regex}/" if member.subscribed_topic_regex else ""
            )
            self.say(
                f"{member.member_id} instance={member.instance_id} rack={member.rack_id} {member.member_epoch} "
                f"{member.client_id}{member.client_host} wants {wants} has {assigned} target {target} type {member.member_type}"
            )

    def _timers(self) -> None:
        self.say(f"{len(self.driver.shard.timers)}")

    def _heard(self, call: Call) -> None:
        response = call.response
        if response.error_code:
            self.say(f"{call.label}: {ErrorCode(response.error_code).name}")
            return
        self._epochs[call.label] = response.member_epoch
        text = f"{call.label}: epoch {response.member_epoch}"
        if response.assignment is not None:
            told = {topic.topic_id: topic.partitions for topic in response.assignment.topic_partitions}
            self._told[call.label] = self._shown(told)
            text += f", {self._told[call.label]}"
        self.say(text)

    def _appended(self, record: CoordinatorRecord) -> None:
        self._written.append(_summary(record))

    def _tell_log(self) -> None:
        if self._written:
            self.lines.append(f"    log: {', '.join(self._written)}")
            self._written.clear()

    # Partitions

    def _shown(self, partitions: Any) -> str:
        shown = [f"{self._names[topic_id]}:{_numbers(numbers)}" for topic_id, numbers in partitions.items()]
        return "+".join(sorted(shown)) or "-"

    def _partitions(self, shown: str) -> list[Any]:
        TopicPartitions = messages.request(CONSUMER_GROUP_HEARTBEAT).TopicPartitions
        listed = []
        for topic in shown.split("+") if shown != "-" else []:
            name, _, numbers = topic.partition(":")
            partitions = [int(number) for number in numbers.split(",")]
            listed.append(TopicPartitions(topic_id=self._ids[name], partitions=partitions))
        return listed


def _numbers(partitions: Any) -> str:
    return ",".join(str(number) for number in sorted(partitions))


def _split(text: str | None) -> list[str] | None:
    return None if text is None else [word for word in text.split(",") if word != "-"]


def _summary(record: CoordinatorRecord) -> str:
    gone = "-" if record.value is None else ""
    match record:
        case (ConsumerGroupMetadataKey(), ConsumerGroupMetadataValue(epoch=epoch)):
            return f"group {epoch}"
        case (
            ConsumerGroupTargetAssignmentMetadataKey(),
            ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=epoch),
        ):
            return f"target@{epoch}"
        case (ConsumerGroupMemberMetadataKey(member_id=member_id), _):
            return f"{gone}member {member_id}"
        case (ConsumerGroupTargetAssignmentMemberKey(member_id=member_id), _):
            return f"{gone}target {member_id}"
        case (ConsumerGroupCurrentMemberAssignmentKey(member_id=member_id), _):
            return f"{gone}current {member_id}"
        case (ConsumerGroupRegularExpressionKey(regular_expression=regex), _):
            return f"{gone}regex {regex}"
        case (ConsumerGroupPartitionMetadataKey(), _):
            return f"{gone}metadata"
    return f"{gone}{type(record.key).__name__.removesuffix('Key')}"
