"""Somebody who is no broker says that it is one, on each listener of real nodes: nothing moves.

What remains possible for one who reaches the brokers' or the controllers' listener is said in docs/security.md.
"""

# mypy: disable-error-code="union-attr"

from __future__ import annotations

import json
import socket
from collections.abc import Iterator

import pytest

from strandline.api.requests.forwarding import anonymous
from strandline.errors import ErrorCode
from strandline.wire import messages
from strandline.wire.headers import request_header
from tests.system import stranger as say
from tests.system.load import all_in_sync, load, make_topic
from tests.system.local import Cluster, up
from tests.system.server import eventually
from tests.system.stranger import replica_fetch, stranger, topic_of

NODES = (1, 2, 3)
BROKER_EPOCHS_TRIED = 2000


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with up(tmp_path_factory.mktemp("strangers") / "cluster", 3) as started:
        yield started


def client_port(cluster: Cluster, node_id: int) -> int:
    return cluster.port + node_id - 1


def broker_port(cluster: Cluster, node_id: int) -> int:
    return cluster.port + 3000 + node_id - 1


def controller_port(cluster: Cluster, node_id: int) -> int:
    return cluster.port + 1000 + node_id - 1


def quorum(cluster: Cluster, node_id: int = 1) -> tuple[int, int]:
    """The active controller and its epoch, as that node knows them."""
    health = json.loads(cluster.served(node_id, "/health"))
    return health["controller"], health["controller_epoch"]


def cluster_id(cluster: Cluster) -> str:
    found: str = json.loads((cluster.directory / "cluster.json").read_text())["cluster_id"]
    return found


def standing(cluster: Cluster, topic: str) -> tuple[object, ...]:
    [partition] = topic_of(client_port(cluster, 1), topic).partitions
    return partition.leader_id, partition.leader_epoch, sorted(partition.isr_nodes), quorum(cluster)


def produced(topic: str, acks: int = -1) -> object:
    from strandline.records.batch import BatchBuilder

    builder = BatchBuilder()
    builder.append(b"k", b"on one disk only", timestamp=1_700_000_000_000)
    request = messages.request(say.PRODUCE)
    partition = request.PartitionProduceData(index=0, records=bytes(builder.build()))
    data = request.TopicProduceData(name=topic, partition_data=[partition])
    return request(acks=acks, timeout_ms=60_000, topic_data=[data])


def test_sec_t6_t7_what_is_on_one_disk_only_is_not_acknowledged_whoever_says_to_have_it(cluster: Cluster) -> None:
    """A Fetch that named replica 2 had the record acknowledged; with its leader the record was then lost."""
    leader = next(node_id for node_id in NODES if node_id != cluster.active())
    others = [node_id for node_id in NODES if node_id != leader]
    topic = make_topic(cluster, "on-one-disk", [[leader, *others]], min_insync_replicas="2")
    clients, brokers = client_port(cluster, leader), broker_port(cluster, leader)
    with stranger(clients) as producer:
        first = producer.ask(say.PRODUCE, 9, produced(topic))
        assert first.responses[0].partition_responses[0].error_code == ErrorCode.NONE
        eventually(lambda: replica_fetch(clients, topic, 1) == (0, 1), "the watermark", 30)
        with cluster.paused(*others):
            producer.send(say.PRODUCE, 9, produced(topic))
            for replica in (*others, 77):
                for version, epoch in ((11, -1), (14, -1), (17, -1), (17, 2**62), (17, 3)):
                    named = {"topic": topic, "offset": 2, "replica": replica, "epoch": epoch}
                    if version < 13 or version > 14:
                        code, _ = replica_fetch(clients, **named, version=version)  # type: ignore[arg-type]
                        assert code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
                        code, watermark = replica_fetch(brokers, **named, version=version)  # type: ignore[arg-type]
                        assert watermark in (-1, 1), (replica, version, epoch, code)
            assert replica_fetch(clients, topic, 1) == (0, 1), "the watermark has not moved, so nothing is acknowledged"
            cluster.kill(leader)
        assert producer.receive(say.PRODUCE, 9) is None, "the leader is gone before it could answer"
    cluster.restart(leader)
    cluster.await_brokers()
    all_in_sync(cluster, topic)


def test_sec_t6_what_controllers_are_asked_is_served_on_no_other_listener(cluster: Cluster) -> None:
    topic = make_topic(cluster, "not-a-controller", [[1, 2, 3]])
    all_in_sync(cluster, topic)
    before = standing(cluster, topic)
    (active, epoch), known = quorum(cluster), cluster_id(cluster)
    alter = messages.request(say.ALTER_PARTITION)
    topic_id = topic_of(client_port(cluster, 1), topic).topic_id
    only_leader = alter.PartitionData(
        partition_index=0, leader_epoch=0, new_isr_with_epochs=[alter.BrokerState(broker_id=1)], partition_epoch=0
    )
    embedded = request_header(60, 0, 1, "a stranger") + messages.encode_request(60, 0, messages.request(60)())
    forged = [
        (say.VOTE, 2, say.vote(known, epoch + 1, 2)),
        (say.BEGIN, 1, say.begin(known, epoch + 1, 2, 1)),
        (say.END, 1, say.end(known, epoch, active, 1)),
        (say.HEARTBEAT, 1, say.heartbeat(2, 0, want_fence=True, want_shut_down=True)),
        (say.REGISTRATION, 1, messages.request(say.REGISTRATION)(broker_id=9, cluster_id=known)),
        (
            say.ALTER_PARTITION,
            3,
            alter(broker_id=1, topics=[alter.TopicData(topic_id=topic_id, partitions=[only_leader])]),
        ),
        (
            say.ENVELOPE,
            0,
            messages.request(say.ENVELOPE)(
                request_data=embedded, request_principal=anonymous(), client_host_address=bytes(4)
            ),
        ),
    ]
    for node_id in NODES:
        for port in (client_port(cluster, node_id), broker_port(cluster, node_id)):
            for api_key, version, message in forged:
                with stranger(port) as somebody:
                    assert somebody.ask(api_key, version, message) is None, api_key
    assert standing(cluster, topic) == before


def test_sec_z16_a_stranger_at_the_controllers_port_unseats_nobody_and_is_not_called_back(cluster: Cluster) -> None:
    topic = make_topic(cluster, "quorum-stands", [[1, 2, 3]], min_insync_replicas="2")
    known = cluster_id(cluster)
    with load(cluster, topic) as running, socket.create_server(("127.0.0.1", 0)) as trap:
        all_in_sync(cluster, topic)
        before = standing(cluster, topic)
        active, epoch = quorum(cluster)
        trap.setblocking(False)
        here = trap.getsockname()[1]
        for node_id in NODES:
            others = [other for other in NODES if other != node_id]
            for candidate in (99, *others):
                for ahead in (0, 1, 50, 2**31 - 1 - epoch):
                    for pre_vote in (False, True):
                        told(
                            cluster, node_id, say.VOTE, 2, say.vote(known, epoch + ahead, candidate, pre_vote=pre_vote)
                        )
            for leader in (99, *NODES):
                for ahead in (0, 1, 50):
                    told(cluster, node_id, say.BEGIN, 1, say.begin(known, epoch + ahead, leader, here))
                    told(cluster, node_id, say.END, 1, say.end(known, epoch + ahead, leader, here, *others))
            running.more()
        assert standing(cluster, topic) == before
        assert {quorum(cluster, node_id) for node_id in NODES} == {(active, epoch)}
        with pytest.raises(BlockingIOError):
            trap.accept()
        running.check()


def told(cluster: Cluster, node_id: int, api_key: int, version: int, message: object) -> None:
    """Whatever the answer is: no vote is granted."""
    with stranger(controller_port(cluster, node_id)) as somebody:
        reply = somebody.ask(api_key, version, message)
    assert reply is not None
    for each in reply.topics:
        for partition in each.partitions:
            assert not getattr(partition, "vote_granted", False)


def test_sec_z16_a_stranger_with_a_guessed_broker_epoch_takes_no_broker_out_of_service(cluster: Cluster) -> None:
    topic = make_topic(cluster, "brokers-stay", [[1, 2, 3]], min_insync_replicas="2")
    active = cluster.active()
    victim = next(node_id for node_id in NODES if node_id != active)
    with load(cluster, topic) as running:
        all_in_sync(cluster, topic)
        before = standing(cluster, topic)
        with stranger(controller_port(cluster, active)) as somebody:
            epochs = iter(range(BROKER_EPOCHS_TRIED))
            guessed = next(
                epoch
                for epoch in epochs
                if somebody.ask(say.HEARTBEAT, 1, say.heartbeat(victim, epoch)).error_code == ErrorCode.NONE
            )
            for wanted in (
                {"want_fence": True},
                {"want_shut_down": True},
                {"want_fence": True, "want_shut_down": True},
            ):
                reply = somebody.ask(say.HEARTBEAT, 1, say.heartbeat(victim, guessed, **wanted))
                assert (reply.error_code, reply.is_fenced, reply.should_shut_down) == (0, False, False)
        running.more()
        assert standing(cluster, topic) == before, "nor when its connection has closed"
        running.check()
