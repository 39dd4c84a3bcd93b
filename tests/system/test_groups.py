"""Members of groups of every kind come, go and die: partitions are always divided, and reading goes on where it was."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from strandline.client.blocking import Admin, Client
from strandline.errors import ErrorCode, KafkaError
from strandline.ids import Uuid
from strandline.wire import messages
from tests.system.group_members import GROUPS_SOON, KINDS, Group, group
from tests.system.load import make_topic
from tests.system.local import Cluster, up
from tests.system.server import eventually

OFFSET_COMMIT, FIND_COORDINATOR, JOIN, HEARTBEAT, SYNC, CONSUMER_HEARTBEAT = 8, 10, 11, 12, 14, 68
PARTITIONS = 6
PATIENT: dict[str, dict[str, int]] = {
    "confluent range": {"session.timeout.ms": 20_000},
    "strandline range": {"session_timeout_ms": 20_000},
    "confluent consumer": {},
    "strandline consumer": {},
}
"""A static member must be back before its session ends. In the consumer protocol brokers say how long that is."""
REPLICAS = [[1, 2, 3], [2, 3, 1], [3, 1, 2]] * (PARTITIONS // 3)
ALL_KINDS = [pytest.param(name, marks=[pytest.mark.java] if kind.is_java else []) for name, kind in KINDS.items()]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with up(tmp_path_factory.mktemp("groups") / "cluster", 3, 0, *GROUPS_SOON) as started:
        yield started


@pytest.fixture
def members(cluster: Cluster, request: pytest.FixtureRequest) -> Iterator[Group]:
    """A topic with a group that has no members yet."""
    name = "".join(letter if letter.isalnum() else "-" for letter in request.node.name)
    topic = make_topic(cluster, name, REPLICAS)
    with group(cluster, topic, PARTITIONS) as found:
        yield found


@pytest.mark.parametrize("kind", ALL_KINDS)
def test_members_come_and_go(members: Group, kind: str) -> None:
    """Three join, one leaves, one is killed; whoever comes later reads on from what was committed."""
    first = members.start(kind)
    members.divided(6)
    members.write()
    second, third = members.start(kind), members.start(kind)
    members.divided(2, 2, 2)
    members.write()
    third.close()
    members.divided(3, 3)
    members.write()
    second.kill()
    members.divided(6)
    members.write()
    members.committed_to_the_end()
    if KINDS[kind].is_incremental:
        assert len(first.given_up) == len(set(first.given_up)) == 4, "it gave up what two others had to get"
        assert len(second.given_up) <= 1, "it may have had three before the last one came"
    first.close()
    assert members.offsets() == {(members.topic, index): members.written for index in range(PARTITIONS)}
    last = members.start(kind)
    members.divided(6)
    before = members.written
    members.write()
    assert {offset for _, _, offset in last.seen()} == set(range(before, members.written)), (
        "it begins where others ended"
    )
    last.close()
    members.check()


@pytest.mark.parametrize("kind", ["confluent range", "confluent consumer", "strandline range", "strandline consumer"])
def test_a_static_member_restarts_without_a_rebalance(members: Group, kind: str) -> None:
    ours = kind.replace("confluent", "strandline")
    witness = members.start(ours, tell_generation=True)
    members.divided(6)
    alone = eventually(lambda: witness.of("generation"), "the generation of the first", 30)[-1]["generation"]
    patient = PATIENT[kind]
    before = members.start(kind, instance="one", config=patient)
    members.divided(3, 3)
    eventually(lambda: witness.of("generation")[-1]["generation"] > alone, "the generation of both", 30)
    members.write()
    members.committed_to_the_end()
    owned, story = before.owned, len(witness.of("assigned", "revoked", "lost"))
    generation, epoch = witness.of("generation")[-1]["generation"], epoch_of(members)
    before.close()
    after = members.start(kind, instance="one", config=patient)
    members.divided(3, 3)
    members.write()
    assert after.owned == owned, "it has what it had"
    assert len(witness.of("assigned", "revoked", "lost")) == story, "the other one noticed nothing"
    assert witness.of("generation")[-1]["generation"] == generation
    assert epoch_of(members) == epoch
    after.close()
    witness.close()
    members.check()


def epoch_of(members: Group) -> int | None:
    described = members.described()
    assert described is not None
    return described.group_epoch


@pytest.mark.parametrize("kind", ["confluent cooperative-sticky", "confluent consumer", "strandline consumer"])
def test_new_partitions_are_given_to_somebody(members: Group, kind: str) -> None:
    one, two = members.start(kind), members.start(kind)
    members.divided(3, 3)
    members.write()
    assert members.admin.create_partitions({members.topic: 8}) == {members.topic: None}
    members.partitions = 8
    members.divided(4, 4)
    assert len(one.given_up + two.given_up) <= 3, "nobody gave up anything for it, but to the one that came second"
    one.close()
    two.close()
    members.check()


def test_a_pattern_gets_the_topics_that_match_it(cluster: Cluster, members: Group) -> None:
    """In the consumer protocol brokers match patterns; a topic that comes later is found too."""
    reader = members.start("confluent consumer", topics=["^picked-(a|b)$"])
    nobody = members.start("confluent consumer", topics=["^nothing-is-called-so.*"])
    make_topic(cluster, "unpicked-a", [[1]])
    make_topic(cluster, "picked-b", [[1], [2]])
    members.partitions = 2
    members.divided(0, 2)
    assert reader.owned == {("picked-b", 0), ("picked-b", 1)}
    make_topic(cluster, "picked-a", [[3]])
    members.partitions = 3
    members.divided(0, 3)
    assert not nobody.of("assigned")


def test_members_are_replaced_by_those_of_the_other_protocol(members: Group) -> None:
    """One by one, classic by consumer and back, and the group changes with the first of the one kind and the last of the other."""
    classic = [members.start("confluent range") for _ in range(3)]
    members.divided(2, 2, 2)
    members.write()
    assert type_of(members) == "Classic"
    newer = []
    for member in classic:
        member.close()
        newer.append(members.start("confluent consumer"))
        members.divided(2, 2, 2)
        members.write()
        assert type_of(members) == "Consumer"
    for member in newer:
        member.close()
        members.start("confluent range")
        members.divided(2, 2, 2)
        members.write()
    assert type_of(members) == "Classic"
    for member in members.living:
        member.close()
    members.check()
    assert members.offsets() == {(members.topic, index): members.written for index in range(PARTITIONS)}


def type_of(members: Group) -> str:
    described = members.described()
    assert described is not None
    return described.type


class Caller:
    """Sends requests to one group's coordinator as they are, right or wrong."""

    def __init__(self, client: Client, group_id: str) -> None:
        self._client = client
        self.group_id = group_id
        Admin(client).describe_cluster()  # so that it knows the nodes
        self._node_id = eventually(self._find, f"a coordinator of {group_id}", 30)

    def _find(self) -> int | None:
        asked = messages.request(FIND_COORDINATOR)(coordinator_keys=[self.group_id])
        (found,) = self._client.request(None, FIND_COORDINATOR, asked).coordinators
        return None if found.error_code else found.node_id

    def ask(self, api_key: int, **fields: Any) -> Any:
        message = messages.request(api_key)(**{"group_id": self.group_id} | fields)
        return self._client.request(self._node_id, api_key, message)

    def join(self, **fields: Any) -> Any:
        Protocol = messages.request(JOIN).JoinGroupRequestProtocol
        usual = {"protocol_type": "consumer", "protocols": [Protocol(name="range", metadata=b"")], "member_id": ""}
        return self.ask(JOIN, **usual | {"session_timeout_ms": 5000, "rebalance_timeout_ms": 5000} | fields)

    def commit(self, topic_id: Uuid, **fields: Any) -> int:
        Commit = messages.request(OFFSET_COMMIT)
        metadata = fields.pop("metadata", "")
        partition = Commit.OffsetCommitRequestPartition(
            partition_index=0, committed_offset=1, committed_leader_epoch=-1, committed_metadata=metadata
        )
        topics = [Commit.OffsetCommitRequestTopic(topic_id=topic_id, partitions=[partition])]
        message = Commit(**{"group_id": self.group_id, "topics": topics} | fields)
        response = self._client.request(self._node_id, OFFSET_COMMIT, message)
        code: int = response.topics[0].partitions[0].error_code
        return code


def test_bad_input_is_refused_by_its_code(cluster: Cluster, members: Group) -> None:
    """And whoever behaves goes on."""
    E = ErrorCode
    topic = members.topic
    described = members.admin.describe_topics([topic])[topic]
    assert not isinstance(described, KafkaError)
    topic_id = described.topic_id
    with Client(cluster.bootstrap) as client:
        caller = Caller(client, f"refusing-{uuid.uuid4().hex[:6]}")
        assert caller.join(group_id="").error_code == E.INVALID_GROUP_ID
        assert caller.join(session_timeout_ms=1).error_code == E.INVALID_SESSION_TIMEOUT
        assert caller.join(member_id="nobody").error_code == E.UNKNOWN_MEMBER_ID
        named = caller.join()
        assert named.error_code == E.MEMBER_ID_REQUIRED
        joined = caller.join(member_id=named.member_id)
        assert joined.error_code == E.NONE
        me = {"member_id": joined.member_id, "generation_id": joined.generation_id}
        Assignment = messages.request(SYNC).SyncGroupRequestAssignment
        given = [Assignment(member_id=joined.member_id, assignment=b"")]
        kind = {"protocol_type": "consumer", "protocol_name": "range"}
        assert caller.ask(SYNC, **me, **kind, assignments=given).error_code == E.NONE
        old = me | {"generation_id": joined.generation_id - 1}
        assert caller.ask(HEARTBEAT, **old).error_code == E.ILLEGAL_GENERATION
        assert caller.ask(HEARTBEAT, **me | {"member_id": "nobody"}).error_code == E.UNKNOWN_MEMBER_ID
        stamp = {"member_id": joined.member_id, "generation_id_or_member_epoch": joined.generation_id}
        assert caller.commit(topic_id, **stamp, metadata="m" * 5000) == E.OFFSET_METADATA_TOO_LARGE
        assert caller.commit(topic_id, **stamp | {"generation_id_or_member_epoch": 77}) == E.ILLEGAL_GENERATION
        assert caller.commit(topic_id, **stamp) == E.NONE
        assert caller.ask(HEARTBEAT, **me).error_code == E.NONE
        newer = Caller(client, f"newer-{uuid.uuid4().hex[:6]}")
        first = {"member_id": uuid.uuid4().hex, "member_epoch": 0, "rebalance_timeout_ms": 5000, "topic_partitions": []}
        bad = newer.ask(CONSUMER_HEARTBEAT, **first, subscribed_topic_regex="(")
        assert bad.error_code == E.INVALID_REGULAR_EXPRESSION
        stranger = newer.ask(CONSUMER_HEARTBEAT, **first | {"member_epoch": 5}, subscribed_topic_names=[topic])
        assert stranger.error_code in (E.UNKNOWN_MEMBER_ID, E.GROUP_ID_NOT_FOUND)
        assert newer.ask(CONSUMER_HEARTBEAT, **first, subscribed_topic_names=[topic]).error_code == E.NONE
