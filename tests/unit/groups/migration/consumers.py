"""Consumers of either protocol as their clients behave, in one group, and what must hold of what they own.

Each takes one step at a time: it heartbeats, joins, syncs, lets go, as the answers it has tell it to. A partition
belongs to a consumer from when it was told of it until it let go of it, left or died.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol

from strandline.errors import ErrorCode, KafkaError
from strandline.groups.assignors import by_name
from strandline.groups.assignors.spec import GroupSpec, MemberSpec, TopicSpec
from strandline.groups.migration import embedded_protocol
from strandline.ids import Uuid
from strandline.metadata.image import MetadataImage, PartitionImage, TopicImage
from strandline.wire import messages
from tests.unit.groups.driver import Call, Driver

JOIN_GROUP, HEARTBEAT, LEAVE_GROUP, SYNC_GROUP, CONSUMER_GROUP_HEARTBEAT = 11, 12, 13, 14, 68
GROUP = "group"
SESSION_TIMEOUT_MS, REBALANCE_TIMEOUT_MS = 45_000, 300_000
PARTITION = PartitionImage(replicas=(1,), isr=(1,), leader=1, leader_epoch=0, partition_epoch=0)

JOIN_AGAIN = (ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.NOT_COORDINATOR)
"""Nothing is lost by these."""

Partition = tuple[str, int]


def image_of(**partitions: int) -> MetadataImage:
    """Topics with so many partitions each."""
    topics = [
        TopicImage(name, Uuid(number.to_bytes(16, "big")), (PARTITION,) * count)
        for number, (name, count) in enumerate(partitions.items(), start=1)
    ]
    return MetadataImage(
        topics={topic.name: topic for topic in topics}, topics_by_id={topic.topic_id: topic for topic in topics}
    )


def driver_of(image: MetadataImage, **settings: str) -> Driver:
    timely = {"group_initial_rebalance_delay_ms": "0", "group_consumer_assignment_interval_ms": "0"}
    return Driver(image, 1, **timely, **settings)


def subscription_of(topics: Iterable[str], owned: Iterable[Partition] = (), version: int = 1) -> bytes:
    Subscription = messages.data("ConsumerProtocolSubscription")
    listed = [
        Subscription.TopicPartition(topic=topic, partitions=numbers) for topic, numbers in by_topic(owned).items()
    ]
    message = Subscription(topics=sorted(topics), user_data=None, owned_partitions=listed)
    return version.to_bytes(2, "big") + messages.encode_data("ConsumerProtocolSubscription", version, message)


def assigned_in(data: bytes) -> set[Partition]:
    if not data:
        return set()
    message = messages.decode_data(
        "ConsumerProtocolAssignment", embedded_protocol.version(data), data, embedded_protocol.VERSION_SIZE
    )
    return {(entry.topic, partition) for entry in message.assigned_partitions for partition in entry.partitions}


def by_topic(partitions: Iterable[Partition]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for topic, number in sorted(partitions):
        found.setdefault(topic, []).append(number)
    return found


class Consumer(Protocol):
    name: str
    owned: set[Partition]

    def step(self) -> None: ...

    def leave(self) -> None: ...


class ClassicConsumer:
    """Eager: it lets go of everything before it joins.
    Cooperative: of what it was not assigned again, and then joins once more.
    """

    def __init__(
        self, driver: Driver, name: str, topics: Iterable[str], *, eager: bool = False, instance_id: str | None = None
    ) -> None:
        self.driver, self.name, self.topics = driver, name, tuple(topics)
        self.eager, self.instance_id = eager, instance_id
        self.protocol = "range" if eager else "cooperative-sticky"
        self.owned: set[Partition] = set()
        self.member_id = ""
        self.generation_id = -1
        self.has_to_join = True
        self.heard: list[ErrorCode] = []
        """What its heartbeats were answered."""
        self._joining: Call | None = None
        self._syncing: Call | None = None

    def step(self) -> None:
        if self._syncing is not None:
            self._finish_sync()
        elif self._joining is not None:
            self._finish_join()
        elif self.has_to_join:
            self._join()
        else:
            self._heartbeat()

    def leave(self) -> None:
        Request = messages.request(LEAVE_GROUP)
        identity = Request.MemberIdentity(member_id=self.member_id, group_instance_id=self.instance_id)
        self.owned.clear()
        self.driver.call("leave_group", Request(group_id=GROUP, members=[identity]), version=5, client_id=self.name)

    def _join(self) -> None:
        if self.eager:
            self.owned.clear()
        Request = messages.request(JOIN_GROUP)
        protocol = Request.JoinGroupRequestProtocol(
            name=self.protocol, metadata=subscription_of(self.topics, self.owned)
        )
        request = Request(
            group_id=GROUP,
            session_timeout_ms=SESSION_TIMEOUT_MS,
            rebalance_timeout_ms=REBALANCE_TIMEOUT_MS,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            protocol_type="consumer",
            protocols=[protocol],
        )
        self.has_to_join = False
        self._joining = self.driver.call("join_group", request, version=9, client_id=self.name)

    def _finish_join(self) -> None:
        assert self._joining is not None
        if not self._joining.is_answered:
            return
        response, code, self._joining = self._joining.response, self._joining.code, None
        if code is not ErrorCode.NONE:
            if code is ErrorCode.MEMBER_ID_REQUIRED:
                self.member_id = response.member_id
            elif code not in JOIN_AGAIN:
                self._lose(code)
            self.has_to_join = True
            return
        self.member_id, self.generation_id = response.member_id, response.generation_id
        assignments = (
            self._assign(response) if response.leader == self.member_id and not response.skip_assignment else []
        )
        request = messages.request(SYNC_GROUP)(
            group_id=GROUP,
            generation_id=self.generation_id,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            protocol_type=response.protocol_type,
            protocol_name=response.protocol_name,
            assignments=assignments,
        )
        self._syncing = self.driver.call("sync_group", request, version=5, client_id=self.name)

    def _assign(self, response: Any) -> list[Any]:
        """As the leader. Cooperative: what another still owns is given to nobody, until it has let go."""
        image = self.driver.around.image
        subscriptions = {
            member.member_id: embedded_protocol.subscription(member.metadata, image) for member in response.members
        }
        members = {
            member_id: MemberSpec(
                subscribed_topic_ids=frozenset(image.topics[name].topic_id for name in found.topics),
                assigned=found.owned,
            )
            for member_id, found in subscriptions.items()
        }
        topics = {topic.topic_id: TopicSpec(topic.name, len(topic.partitions)) for topic in image.topics.values()}
        given = by_name("range" if self.eager else "uniform").assign(GroupSpec(members, topics))
        owners = {
            (topic_id, partition): member_id
            for member_id, found in subscriptions.items()
            for topic_id, partitions in found.owned.items()
            for partition in partitions
        }
        Assignment = messages.request(SYNC_GROUP).SyncGroupRequestAssignment
        listed = []
        for member_id, partitions in given.items():
            free = {
                topic_id: [number for number in numbers if owners.get((topic_id, number)) in (None, member_id)]
                for topic_id, numbers in partitions.items()
            }
            listed.append(
                Assignment(member_id=member_id, assignment=embedded_protocol.encode_assignment(free, image, 1))
            )
        return listed

    def _finish_sync(self) -> None:
        assert self._syncing is not None
        if not self._syncing.is_answered:
            return
        response, code, self._syncing = self._syncing.response, self._syncing.code, None
        if code is not ErrorCode.NONE:
            if code not in JOIN_AGAIN:
                self._lose(code)
            self.has_to_join = True
            return
        assigned = assigned_in(response.assignment)
        self.has_to_join = bool(self.owned - assigned)
        self.owned = assigned

    def _heartbeat(self) -> None:
        request = messages.request(HEARTBEAT)(
            group_id=GROUP,
            generation_id=self.generation_id,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
        )
        code = self.driver.call("heartbeat", request, version=4, client_id=self.name).code
        self.heard.append(code)
        if code is ErrorCode.REBALANCE_IN_PROGRESS:
            self.has_to_join = True
        elif code is not ErrorCode.NONE:
            self._lose(code)
            self.has_to_join = True

    def _lose(self, code: ErrorCode) -> None:
        """Of ILLEGAL_GENERATION it keeps its id. Who is fenced is started again."""
        self.owned.clear()
        self.generation_id = -1
        if code is not ErrorCode.ILLEGAL_GENERATION:
            assert code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID), f"{self.name}: {code!r}"
            self.member_id = ""


class ModernConsumer:
    """Of the consumer protocol: it lets go of what it is not assigned, and says so."""

    def __init__(self, driver: Driver, name: str, topics: Iterable[str], *, instance_id: str | None = None) -> None:
        self.driver, self.name, self.topics, self.instance_id = driver, name, tuple(topics), instance_id
        self.owned: set[Partition] = set()
        self.member_id = f"{name}-id"
        self.member_epoch = 0
        self._says_owned = True

    def step(self) -> None:
        joins = self.member_epoch == 0
        response = self._call(
            member_epoch=self.member_epoch,
            rebalance_timeout_ms=REBALANCE_TIMEOUT_MS if joins else -1,
            subscribed_topic_names=sorted(self.topics) if joins else None,
            topic_partitions=self._owned_by_id() if joins or self._says_owned else None,
        )
        self._says_owned = False
        if response.error_code:
            code = ErrorCode(response.error_code)
            if code is ErrorCode.UNRELEASED_INSTANCE_ID:
                return  # until the session of the one before it ends
            assert code in (ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID), f"{self.name}: {code!r}"
            self.owned.clear()
            self.member_epoch = 0
            return
        self.member_epoch = response.member_epoch
        if response.assignment is not None:
            image = self.driver.around.image
            assigned = {
                (image.topics_by_id[Uuid(entry.topic_id)].name, number)
                for entry in response.assignment.topic_partitions
                for number in entry.partitions
            }
            self._says_owned = assigned != self.owned
            self.owned = assigned

    def leave(self) -> None:
        self.owned.clear()
        self._call(member_epoch=-1)

    def leave_for_a_while(self) -> None:
        self.owned.clear()
        self._call(member_epoch=-2)

    def _call(self, **fields: Any) -> Any:
        fields = {"rebalance_timeout_ms": -1, "subscribed_topic_names": None, "topic_partitions": None, **fields}
        Request = messages.request(CONSUMER_GROUP_HEARTBEAT)
        request = Request(group_id=GROUP, member_id=self.member_id, instance_id=self.instance_id, **fields)
        return heartbeat(self.driver, request, self.name)

    def _owned_by_id(self) -> list[Any]:
        TopicPartitions = messages.request(CONSUMER_GROUP_HEARTBEAT).TopicPartitions
        topics = self.driver.around.image.topics
        return [
            TopicPartitions(topic_id=topics[name].topic_id, partitions=found)
            for name, found in by_topic(self.owned).items()
        ]


def heartbeat(driver: Driver, request: Any, client_id: str = "client") -> Any:
    """The answer to a ConsumerGroupHeartbeat, which is an error where its API would make one of what is raised."""
    try:
        call = driver.call("consumer_group_heartbeat", request, version=1, client_id=client_id)
    except KafkaError as error:
        return messages.response(CONSUMER_GROUP_HEARTBEAT)(error_code=error.code, error_message=str(error))
    return call.response


class Crowd:
    """The consumers of the group. After every step no partition has two owners."""

    def __init__(self, driver: Driver, order: Callable[[list[Consumer]], Iterable[Consumer]] = list) -> None:
        self.driver = driver
        self.consumers: list[Consumer] = []
        self._order = order

    def add(self, *consumers: Consumer) -> None:
        self.consumers.extend(consumers)

    def remove(self, consumer: Consumer) -> None:
        consumer.leave()
        self.consumers.remove(consumer)

    def kill(self, consumer: Consumer) -> None:
        consumer.owned.clear()
        self.consumers.remove(consumer)

    def round(self, seconds: float = 1.0) -> None:
        """Each takes a step, in some order; time passes."""
        for consumer in self._order(self.consumers):
            consumer.step()
            self.check()
        self.driver.advance(seconds)

    def check(self) -> None:
        owners: dict[Partition, str] = {}
        for consumer in self.consumers:
            for partition in consumer.owned:
                assert partition not in owners, f"{partition} is {owners[partition]}'s and {consumer.name}'s"
                owners[partition] = consumer.name

    def settle(self, rounds_max: int = 60) -> None:
        """Rounds until every partition is somebody's and the shares are even, and stay so."""
        calm = 0
        for _ in range(rounds_max):
            before = [set(consumer.owned) for consumer in self.consumers]
            self.round()
            is_same = before == [consumer.owned for consumer in self.consumers]
            calm = calm + 1 if is_same and self._is_even() else 0
            if calm == 5:
                return
        raise AssertionError({consumer.name: sorted(consumer.owned) for consumer in self.consumers})

    def _is_even(self) -> bool:
        """Within one of each other; or within one for each topic, as eager consumers are who have ranges."""
        topics = self.driver.around.image.topics.values()
        counts = [len(consumer.owned) for consumer in self.consumers]
        return sum(counts) == sum(len(topic.partitions) for topic in topics) and max(counts) - min(counts) <= len(
            topics
        )
