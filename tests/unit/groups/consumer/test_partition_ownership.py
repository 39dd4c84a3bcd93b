"""Rule C13, at random: whatever members, topics and coordinators do, a partition has at most one owner, and in the end
its due one.

Clients behave as Kafka's do: one request at a time; what a response takes away is let go of, now or some heartbeats
later; a response may be lost. The coordinator may fall, and with it what it had not committed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from strandline.errors import ErrorCode, KafkaError
from strandline.groups.caller import Caller
from strandline.groups.consumer.group import ConsumerGroup, ConsumerGroupState
from strandline.groups.consumer.member import LEAVE_GROUP_MEMBER_EPOCH, LEAVE_GROUP_STATIC_MEMBER_EPOCH
from strandline.ids import Uuid
from strandline.wire import messages
from tests.unit.groups.consumer.transcript import CONSUMER_GROUP_HEARTBEAT, GROUP, image_of
from tests.unit.groups.driver import Call, Driver

MEMBERS_MAX = 6
SESSION_S, BEAT_S = 45, 5
ROUNDS_TO_SETTLE = 24
TOPICS = ("s", "t", "u")

CALLER = Caller("client", "/127.0.0.1", 1)

Partition = tuple[Uuid, int]
names = st.sampled_from([["t"], ["t"], ["s", "t"], ["t", "u"], ["s", "t", "u"], []])
reactions = st.sampled_from(["take up", "take up", "let go", "nothing", "nothing"])
rounds = st.lists(st.tuples(st.booleans(), reactions), min_size=MEMBERS_MAX, max_size=MEMBERS_MAX)
ASK_ANEW = {ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE}
REJOIN = {ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.GROUP_ID_NOT_FOUND}
GIVE_UP = {ErrorCode.UNRELEASED_INSTANCE_ID, ErrorCode.FENCED_INSTANCE_ID}


@dataclass
class Client:
    member_id: str
    instance_id: str | None
    topics: list[str]
    epoch: int = 0
    owned: set[Partition] = field(default_factory=set)
    told: set[Partition] = field(default_factory=set)
    is_sure: bool = False
    """That the last request arrived: otherwise the next one says everything."""
    pending: Call | None = None
    is_gone: bool = False

    def heard(self, call: Call) -> None:
        if self.pending is not call:
            return
        self.pending = None
        code = ErrorCode(call.response.error_code)
        if code:
            self.refused(code)
            return
        self.epoch, self.is_sure = call.response.member_epoch, True
        if call.response.assignment is not None:
            self.told = {
                (Uuid(topic.topic_id), partition)
                for topic in call.response.assignment.topic_partitions
                for partition in topic.partitions
            }

    def refused(self, code: ErrorCode) -> None:
        self.pending, self.is_sure = None, False
        if code in REJOIN:
            self.epoch, self.owned, self.told = 0, set(), set()
        elif code in GIVE_UP:
            self.stop()
        else:
            assert code in ASK_ANEW, code

    def lost(self) -> None:
        """It won't hear the answer any more; nor does it take up what it was told before and had not."""
        self.pending, self.is_sure = None, False
        self.told &= self.owned

    def stop(self) -> None:
        self.is_gone, self.owned, self.told, self.pending = True, set(), set(), None


class Ownership(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.driver = Driver(group_consumer_assignment_interval_ms="0")
        self.driver.answered = self._answered
        self.clients: list[Client] = []
        self.joined_count = 0
        self.topics = {name: (Uuid(index.to_bytes(16, "big")), 3) for index, name in enumerate(TOPICS, 1)}
        self.made_count = len(TOPICS)
        self.committed: int | None = None
        """How much of the log is, while the rest isn't."""

    @initialize(topics=names, others=names)
    def begin(self, topics: list[str], others: list[str]) -> None:
        self._publish()
        self._join(topics, None)
        self._join(others, "i")

    # Members

    @precondition(lambda self: len(self._live()) < MEMBERS_MAX)
    @rule(topics=names, instance=st.sampled_from([None, None, "i", "j"]))
    def join(self, topics: list[str], instance: str | None) -> None:
        self._join(topics, instance)

    @precondition(lambda self: self._free())
    @rule(data=st.data(), tell_owned=st.booleans(), lost=st.sampled_from([False, False, True]), then=reactions)
    def beat(self, data: st.DataObject, tell_owned: bool, lost: bool, then: str) -> None:
        client = data.draw(st.sampled_from(self._free()))
        self._beat(client, tell_owned=tell_owned, lost=lost)
        self._react(client, then)

    @precondition(lambda self: self._free())
    @rule(data=st.data(), then=reactions)
    def react(self, data: st.DataObject, then: str) -> None:
        self._react(data.draw(st.sampled_from(self._free())), then)

    @rule(clients=rounds)
    def all_beat(self, clients: list[tuple[bool, str]]) -> None:
        for client, (tell_owned, reaction) in zip(self._free(), clients, strict=False):
            self._beat(client, tell_owned=tell_owned)
            self._react(client, reaction)

    @rule(clients=rounds, again=rounds)
    def two_rounds(self, clients: list[tuple[bool, str]], again: list[tuple[bool, str]]) -> None:
        self.all_beat(clients)
        self.all_beat(again)

    @precondition(lambda self: self._free())
    @rule(data=st.data(), topics=names)
    def subscribe(self, data: st.DataObject, topics: list[str]) -> None:
        client = data.draw(st.sampled_from(self._free()))
        client.topics, client.is_sure = topics, False
        self._beat(client)

    @precondition(lambda self: len(self._free()) > 1)
    @rule(data=st.data(), how=st.sampled_from(["leave", "crash", "away", "restart"]), topics=names)
    def go(self, data: st.DataObject, how: str, topics: list[str]) -> None:
        client = data.draw(st.sampled_from(self._free()))
        client.owned = set()
        if how == "leave":
            self._send(client, member_epoch=LEAVE_GROUP_MEMBER_EPOCH, instance_id=client.instance_id)
        elif how != "crash" and client.instance_id:
            self._send(client, member_epoch=LEAVE_GROUP_STATIC_MEMBER_EPOCH, instance_id=client.instance_id)
        client.stop()
        if how == "restart":
            self._join(topics, client.instance_id)

    # The world

    @rule(seconds=st.sampled_from([1, 5, 10, 20, 50]), patient=st.booleans())
    def wait(self, seconds: int, patient: bool) -> None:
        if not patient:
            for client in self._live():
                if client.pending:
                    client.lost()
        self.driver.advance(seconds)

    @rule(name=st.sampled_from(TOPICS), change=st.sampled_from(["grow", "delete"]))
    def change_topic(self, name: str, change: str) -> None:
        if name not in self.topics:
            self.made_count += 1
            self.topics[name] = (Uuid(self.made_count.to_bytes(16, "big")), 2)
        elif change == "delete":
            del self.topics[name]
        else:
            topic_id, count = self.topics[name]
            self.topics[name] = (topic_id, min(count + 1, 6))
        self._publish()

    @rule(fail_over=st.booleans())
    def coordinator(self, fail_over: bool) -> None:
        """What it writes isn't committed for a while; then it is, or is lost with the coordinator."""
        if fail_over:
            if self.committed is not None:
                del self.driver.log[self.committed :]
                self.committed = None
            self.driver.reload()
        elif self.committed is None:
            self.committed = len(self.driver.log)
            self.driver.hold()
        else:
            self.committed = None
            self.driver.commit()

    # What must hold

    @invariant()
    def one_owner_as_the_coordinator_sees_it(self) -> None:
        group = self._group()
        if group is None:
            return
        owners: dict[Partition, str] = {}
        for member in group.members.values():
            for partitions in (member.assigned_partitions, member.partitions_pending_revocation):
                for topic_id, epochs in partitions.items():
                    for partition in epochs:
                        assert owners.setdefault((topic_id, partition), member.member_id) == member.member_id
        assert owners == {
            (topic_id, partition): owner
            for topic_id, found in group.owners.items()
            for partition, owner in found.items()
        }

    @invariant()
    def one_owner_among_the_clients(self) -> None:
        """Those that the coordinator would still listen to, that is."""
        owners: dict[Partition, str] = {}
        for client in self._live():
            if self._is_known(client):
                for partition in client.owned:
                    other = owners.setdefault(partition, client.member_id)
                    assert other == client.member_id, f"{partition} is with {other} and {client.member_id}"

    @invariant()
    def targets_are_disjoint_and_wanted(self) -> None:
        group = self._group()
        if group is None or group.group_epoch != group.assignment_epoch:
            return
        taken: set[Partition] = set()
        for target in group.target_assignment.values():
            mine = {(topic_id, partition) for topic_id, partitions in target.items() for partition in partitions}
            assert not taken & mine
            taken |= mine

    def teardown(self) -> None:
        """Left alone, the group comes to rest: every partition that is wanted is with one member, who knows it."""
        self.driver.commit()
        for _ in range(ROUNDS_TO_SETTLE):
            self.driver.advance(BEAT_S)
            for client in self._live():
                if client.pending:
                    client.lost()
                self._beat(client, tell_owned=True)
                client.owned = set(client.told)
            self.one_owner_as_the_coordinator_sees_it()
            self.one_owner_among_the_clients()
        group = self._group()
        if group is None or not group.members:
            assert not self._live()
            return
        assert group.state is ConsumerGroupState.STABLE
        assert group.members.keys() == {client.member_id for client in self._live()}
        wanted = {
            (topic_id, partition)
            for name, (topic_id, count) in self.topics.items()
            for partition in range(count)
            if any(name in client.topics for client in self._live())
        }
        assert {partition for client in self._live() for partition in client.owned} == wanted
        assert sum(len(client.owned) for client in self._live()) == len(wanted)

    # Means

    def _group(self) -> ConsumerGroup | None:
        group = self.driver.shard.groups.get(GROUP)
        assert group is None or isinstance(group, ConsumerGroup)
        return group

    def _live(self) -> list[Client]:
        return [client for client in self.clients if not client.is_gone]

    def _free(self) -> list[Client]:
        return [client for client in self._live() if client.pending is None]

    def _is_known(self, client: Client) -> bool:
        group = self._group()
        member = None if group is None else group.members.get(client.member_id)
        return member is not None and client.epoch in (member.member_epoch, member.previous_member_epoch)

    def _publish(self) -> None:
        around = self.driver.around
        around.image = image_of(around.image.end_offset + 1, self.topics)
        self.driver.carry_out(self.driver.shard.metadata_changed(around.image, frozenset(), self.driver.at))

    def _join(self, topics: list[str], instance: str | None) -> None:
        self.joined_count += 1
        client = Client(f"m{self.joined_count}", instance, topics)
        self.clients.append(client)
        self._beat(client)

    def _react(self, client: Client, how: str) -> None:
        """New partitions are not taken up while a request is under way that says it doesn't have them."""
        if how == "let go":
            client.owned &= client.told
        elif how == "take up" and client.pending is None:
            client.owned = set(client.told)

    def _beat(self, client: Client, *, tell_owned: bool = False, lost: bool = False) -> None:
        fields: dict[str, Any] = {"member_epoch": client.epoch, "instance_id": client.instance_id}
        if client.epoch == 0 or not client.is_sure:
            fields |= {"rebalance_timeout_ms": 60_000, "subscribed_topic_names": client.topics}
            tell_owned = True
        if tell_owned:
            fields["topic_partitions"] = _listed(client.owned)
        self._send(client, hears=not lost, **fields)

    def _send(self, client: Client, *, hears: bool = True, **fields: Any) -> None:
        request = messages.request(CONSUMER_GROUP_HEARTBEAT)(group_id=GROUP, member_id=client.member_id, **fields)
        call = Call(self._answered)
        client.pending = call if hears else None
        try:
            self.driver.carry_out(self.driver.shard.consumer_group_heartbeat(request, CALLER, self.driver.at, call))
        except KafkaError as error:
            if hears:
                client.refused(error.code)
        if not hears:
            client.lost()

    def _answered(self, call: Call) -> None:
        for client in self.clients:
            client.heard(call)


def _listed(owned: set[Partition]) -> list[Any]:
    TopicPartitions = messages.request(CONSUMER_GROUP_HEARTBEAT).TopicPartitions
    by_topic: dict[Uuid, list[int]] = {}
    for topic_id, partition in sorted(owned):
        by_topic.setdefault(topic_id, []).append(partition)
    return [TopicPartitions(topic_id=topic_id, partitions=partitions) for topic_id, partitions in by_topic.items()]


TestOwnership = Ownership.TestCase
TestOwnership.settings = settings(max_examples=15, stateful_step_count=40, deadline=None)
