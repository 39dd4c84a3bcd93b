"""Heartbeats: from registered to unfenced to stopped, and what becomes of partitions meanwhile."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strandline.controller.brokers import BrokerRegistration, fence_one_overdue, register, unregister
from strandline.controller.election_policy import ElectionPolicy
from strandline.controller.heartbeats import BrokerControlState, BrokerHeartbeat, BrokerHeartbeatReply, heartbeat
from strandline.controller.liveness import Liveness
from strandline.errors import ErrorCode, KafkaError
from strandline.ids import Uuid
from strandline.metadata import records as r
from strandline.metadata.image import BrokerImage, Endpoint, MetadataImage, PartitionImage, TopicImage
from strandline.metadata.records import NO_LEADER
from strandline.metadata.replay import replay

from .conftest import broker, cluster

FENCED, UNFENCED, CONTROLLED_SHUTDOWN, SHUTDOWN_NOW = BrokerControlState
TOPIC_ID = Uuid(bytes(15) + b"\x07")
DIRS = tuple(Uuid(bytes([100 + i]) * 16) for i in range(2))
LEVELS = {"metadata.version": 30, "eligible.leader.replicas.version": 1}
POLICY = ElectionPolicy(default_min_isr=2, elr_enabled=True)
SHARED = PartitionImage(replicas=(1, 2), isr=(1, 2), leader=1, leader_epoch=4, partition_epoch=6)
FOLLOWED = replace(SHARED, leader=2)


class Controller:
    """An active controller: its newest image, and who it believes to be alive."""

    def __init__(self, *brokers: BrokerImage, partitions: tuple[PartitionImage, ...] = ()) -> None:
        topic = TopicImage("t", TOPIC_ID, partitions)
        self.image: MetadataImage = replace(
            cluster(*brokers), end_offset=100, features=LEVELS, topics={"t": topic}, topics_by_id={TOPIC_ID: topic}
        )
        self.liveness = Liveness(3.0)
        self.now = 0.0

    @property
    def partitions(self) -> tuple[PartitionImage, ...]:
        return self.image.topics["t"].partitions

    def commit(self, records: list[r.MetadataRecord]) -> list[r.MetadataRecord]:
        self.image = replay(self.image, records, self.image.end_offset + len(records), 1)
        return records

    def hear(self, broker_id: int, *, at: int | None = None, **said: Any) -> tuple[list[Any], BrokerHeartbeatReply]:
        """A heartbeat of a broker that has applied all, or as far as `at`."""
        offset = self.image.end_offset - 1 if at is None else at
        request = BrokerHeartbeat(broker_id, self.image.brokers[broker_id].epoch, offset, **said)
        records, answer = heartbeat(self.image, self.liveness, request, self.now, POLICY)
        return self.commit(records), answer


STOP, FENCE = {"want_shut_down": True}, {"want_fence": True}


@pytest.mark.parametrize(
    ("before", "led", "said", "after"),
    [
        (FENCED, False, {}, UNFENCED),
        (FENCED, False, {"at": 0}, FENCED),
        (FENCED, False, FENCE, FENCED),
        (FENCED, False, STOP, SHUTDOWN_NOW),
        (FENCED, False, STOP | FENCE, SHUTDOWN_NOW),
        (UNFENCED, True, {}, UNFENCED),
        (UNFENCED, True, {"at": 0}, UNFENCED),
        (UNFENCED, True, FENCE, FENCED),
        (UNFENCED, True, STOP | FENCE, SHUTDOWN_NOW),
        (UNFENCED, True, STOP, CONTROLLED_SHUTDOWN),
        (UNFENCED, False, STOP, SHUTDOWN_NOW),
        (CONTROLLED_SHUTDOWN, True, STOP, CONTROLLED_SHUTDOWN),
        (CONTROLLED_SHUTDOWN, False, STOP, CONTROLLED_SHUTDOWN),
    ],
)
def test_where_a_heartbeat_leads(
    before: BrokerControlState, led: bool, said: dict[str, Any], after: BrokerControlState
) -> None:
    this = broker(1, fenced=before is FENCED, stopping=before is CONTROLLED_SHUTDOWN)
    controller = Controller(this, broker(2), partitions=(SHARED if led else FOLLOWED,))
    _, answer = controller.hear(1, **said)
    assert answer.state is after
    assert answer.is_fenced is (after in (FENCED, SHUTDOWN_NOW)) is controller.image.brokers[1].fenced
    assert answer.should_shut_down is (after is SHUTDOWN_NOW)
    assert answer.is_caught_up is (said.get("at") is None)


def test_b13_a_broker_is_unfenced_once_it_has_applied_its_own_registration() -> None:
    controller = Controller(replace(broker(1, fenced=True), epoch=50), partitions=())
    assert controller.hear(1, at=49)[1] == BrokerHeartbeatReply(is_caught_up=False, state=FENCED)
    assert controller.hear(1, at=50)[1] == BrokerHeartbeatReply(is_caught_up=True, state=UNFENCED)
    assert controller.hear(1, at=50)[0] == [], "nothing changes, nothing is written"


def test_b7_an_unfenced_broker_leads_what_nobody_led() -> None:
    lost = replace(SHARED, isr=(), elr=(1, 2), leader=NO_LEADER, last_known_elr=(2,))
    controller = Controller(broker(1, fenced=True), broker(2, fenced=True), partitions=(lost,))
    records, _ = controller.hear(1)
    assert isinstance(records[0], r.BrokerRegistrationChangeRecord), "unfenced first, then elected"
    assert (controller.partitions[0].leader, controller.partitions[0].isr) == (1, (1,))


@pytest.mark.parametrize(("broker_id", "epoch"), [(1, 0), (1, 2), (3, 3)], ids=["older", "newer", "not registered"])
def test_b13_a_heartbeat_with_another_epoch_is_stale(broker_id: int, epoch: int) -> None:
    controller = Controller(broker(1))
    with pytest.raises(KafkaError) as raised:
        heartbeat(controller.image, controller.liveness, BrokerHeartbeat(broker_id, epoch, 0), 1.0, POLICY)
    assert raised.value.code is ErrorCode.STALE_BROKER_EPOCH
    assert not controller.liveness.is_live(broker_id, 1.0), "it prolongs nothing"


def test_b13_a_broker_that_fell_silent_is_fenced_and_back_with_its_next_heartbeat() -> None:
    controller = Controller(broker(1), broker(2), partitions=(SHARED,))
    controller.hear(1)
    controller.liveness.connection_opened(1, "c", 0.0)
    controller.liveness.connection_closed("c", 1.0)
    records, fenced = fence_one_overdue(controller.image, controller.liveness, 1.3, POLICY)
    controller.commit(records)
    assert (fenced, controller.partitions[0].leader) == (1, 2)
    controller.now = 1.4
    assert controller.hear(1)[1].state is UNFENCED
    assert controller.partitions[0].isr == (2,), "into the ISR it comes only by its leader"
    assert controller.liveness.overdue(2.0) == []


# Stopping


def test_b14_leaders_move_first_and_active_brokers_know_before_it_stops() -> None:
    controller = Controller(broker(1), broker(2), broker(3), partitions=(SHARED, FOLLOWED))
    for broker_id in (1, 2, 3):
        controller.hear(broker_id)
    records, answer = controller.hear(1, want_shut_down=True)
    assert answer.state is CONTROLLED_SHUTDOWN
    assert [p.leader for p in controller.partitions] == [2, 2]
    assert all(1 not in p.isr for p in controller.partitions)
    moved = 100 + len(records) - 1
    for broker_id, offset, state in [
        (2, moved, CONTROLLED_SHUTDOWN),
        (3, moved - 1, CONTROLLED_SHUTDOWN),
        (3, moved, SHUTDOWN_NOW),
    ]:
        controller.hear(broker_id, at=offset)
        assert controller.hear(1, want_shut_down=True)[1].state is state
    assert controller.image.brokers[1].fenced


def test_b14_who_is_fenced_or_stopping_too_is_not_waited_for() -> None:
    controller = Controller(
        broker(1), broker(2), broker(3, fenced=True), broker(4, stopping=True), partitions=(SHARED,)
    )
    controller.hear(1, want_shut_down=True)
    controller.hear(2)
    assert controller.hear(1, want_shut_down=True)[1].state is SHUTDOWN_NOW


def test_b14_a_new_controller_waits_too() -> None:
    controller = Controller(broker(1), broker(2), partitions=(SHARED,))
    controller.hear(1, want_shut_down=True)
    controller.liveness.take_over(controller.image, 1.0)
    assert controller.hear(1, want_shut_down=True) == ([], BrokerHeartbeatReply(True, CONTROLLED_SHUTDOWN))
    controller.hear(2)
    assert controller.hear(1, want_shut_down=True)[1].state is SHUTDOWN_NOW


def test_b14_a_new_controller_moves_what_the_one_before_did_not() -> None:
    controller = Controller(broker(1, stopping=True), broker(2), partitions=(SHARED, SHARED))
    controller.hear(2)
    records, answer = controller.hear(1, want_shut_down=True)
    assert answer.state is CONTROLLED_SHUTDOWN
    assert [type(record) for record in records] == [r.PartitionChangeRecord] * 2
    assert [p.leader for p in controller.partitions] == [2, 2]
    assert controller.hear(1, want_shut_down=True)[1].state is CONTROLLED_SHUTDOWN, "broker 2 does not know yet"
    controller.hear(2)
    assert controller.hear(1, want_shut_down=True)[1].state is SHUTDOWN_NOW


def test_b14_who_leads_does_not_stop_whatever_the_others_know() -> None:
    controller = Controller(broker(1, stopping=True), broker(2), partitions=(SHARED,))
    for broker_id in (1, 2):
        controller.liveness.contact(broker_id, broker_id, 0.0, metadata_offset=99)
    controller.liveness.begin_shutdown(1, 50)
    assert controller.hear(1, want_shut_down=True)[1].state is CONTROLLED_SHUTDOWN


def test_the_last_replica_stops_with_its_partition() -> None:
    only = replace(SHARED, replicas=(1,), isr=(1,))
    controller = Controller(broker(1), partitions=(only,))
    assert controller.hear(1, want_shut_down=True)[1].state is CONTROLLED_SHUTDOWN
    assert controller.partitions[0].leader == NO_LEADER
    assert controller.hear(1, want_shut_down=True)[1].state is SHUTDOWN_NOW


def test_who_was_told_to_stop_has_no_session_for_its_successor_to_wait_for() -> None:
    controller = Controller(broker(1), broker(2))
    controller.hear(1)
    assert controller.liveness.is_live(1, 0.0)
    controller.hear(1, want_shut_down=True)
    assert not controller.liveness.is_live(1, 0.0)


def test_a_fenced_broker_that_stops_writes_nothing() -> None:
    assert Controller(broker(1, fenced=True)).hear(1, want_shut_down=True)[0] == []


# Log dirs


def in_dir(partition: PartitionImage, directory: Uuid) -> PartitionImage:
    return replace(partition, directories=(directory, Uuid(bytes([7]) * 16)))


def test_partitions_in_a_failed_log_dir_lose_the_broker_and_others_keep_it() -> None:
    partitions = (in_dir(SHARED, DIRS[0]), in_dir(SHARED, DIRS[1]))
    controller = Controller(broker(1, log_dirs=DIRS), broker(2), partitions=partitions)
    records, answer = controller.hear(1, offline_log_dirs=[DIRS[0]])
    assert answer.state is UNFENCED
    assert [(p.leader, p.isr) for p in controller.partitions] == [(2, (2,)), (1, (1, 2))]
    assert controller.image.brokers[1].log_dirs == DIRS[1:]
    assert len(records) == 2
    assert controller.hear(1, offline_log_dirs=[DIRS[0]])[0] == [], "it tells as long as it runs"


def test_a_broker_is_not_elected_for_a_partition_whose_log_dir_failed_while_it_was_fenced() -> None:
    lost = replace(SHARED, isr=(), elr=(1, 2), leader=NO_LEADER, last_known_elr=(1,))
    partitions = (in_dir(lost, DIRS[0]), in_dir(lost, DIRS[1]))
    controller = Controller(broker(1, fenced=True, log_dirs=DIRS), broker(2, fenced=True), partitions=partitions)
    assert controller.hear(1, offline_log_dirs=[DIRS[0]])[1].state is UNFENCED
    assert [p.leader for p in controller.partitions] == [NO_LEADER, 1]


def test_when_the_last_log_dir_failed_the_broker_leads_nothing() -> None:
    controller = Controller(broker(1, log_dirs=DIRS[:1]), broker(2), partitions=(in_dir(SHARED, DIRS[0]),))
    controller.hear(1, offline_log_dirs=DIRS)
    assert controller.partitions[0].isr == (2,)
    assert controller.hear(1, offline_log_dirs=DIRS)[0] == []


def test_who_led_only_in_a_failed_log_dir_may_stop_at_once() -> None:
    controller = Controller(broker(1, log_dirs=DIRS), broker(2), partitions=(in_dir(SHARED, DIRS[0]),))
    assert controller.hear(1, want_shut_down=True, offline_log_dirs=[DIRS[0]])[1].state is SHUTDOWN_NOW


def test_cordoned_log_dirs_are_written_when_they_change() -> None:
    controller = Controller(broker(1, log_dirs=DIRS))
    assert controller.hear(1, cordoned_log_dirs=None)[0] == controller.hear(1, cordoned_log_dirs=[])[0] == []
    assert len(controller.hear(1, cordoned_log_dirs=[DIRS[0]])[0]) == 1
    assert controller.image.brokers[1].cordoned_log_dirs == DIRS[:1]
    assert controller.hear(1, cordoned_log_dirs=[DIRS[0]])[0] == []
    controller.hear(1, cordoned_log_dirs=[])
    assert controller.image.brokers[1].cordoned_log_dirs == ()


# Any history


def check_invariants(controller: Controller) -> None:
    fenced = {b.broker_id for b in controller.image.brokers.values() if b.fenced}
    for partition in controller.partitions:
        isr, elr, replicas = set(partition.isr), set(partition.elr), set(partition.replicas)
        assert not isr & fenced, "I5"
        assert isr <= controller.image.brokers.keys()
        assert isr | elr <= replicas, "I6"
        assert not isr & elr, "I6"
        assert len(isr) < 2 or not elr, "I6"
        assert partition.leader in (isr if isr else {NO_LEADER})
        if not isr | elr:
            assert len(partition.last_known_elr) == 1, "I10"


def registration(broker_id: int, incarnation: int, previous_broker_epoch: int) -> BrokerRegistration:
    features = [("metadata.version", 7, 30), ("eligible.leader.replicas.version", 0, 1)]
    dirs = [Uuid(bytes([200 + 2 * broker_id + i]) * 16) for i in range(2)]
    endpoint = Endpoint("PLAINTEXT", "n", 1, 0)
    incarnation_id = Uuid(incarnation.to_bytes(16))
    return BrokerRegistration(broker_id, incarnation_id, [endpoint], features, dirs, None, previous_broker_epoch)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32))
def test_i5_i6_i10_hold_after_any_history_of_brokers(seed: int) -> None:
    chance = random.Random(seed)
    partitions = tuple(
        replace(SHARED, replicas=replicas, isr=replicas, leader=replicas[0])
        for replicas in ((1, 2, 3), (2, 3, 1), (3, 1), (2, 3), (1,))
    )
    controller = Controller(broker(1), broker(2), broker(3), partitions=partitions)
    epochs = {1, 2, 3}
    for step in range(40):
        controller.now += chance.choice((0.01, 0.3, 1.0))
        broker_id = chance.choice((1, 2, 3))
        known = controller.image.brokers.get(broker_id)
        what = chance.choice(("hear", "hear", "hear", "register", "overdue", "close", "unregister"))
        if what == "hear" and known is not None:
            offset = controller.image.end_offset - chance.choice((1, 1, 1, 5))
            controller.hear(
                broker_id,
                at=offset,
                want_fence=chance.random() < 0.1,
                want_shut_down=known.in_controlled_shutdown or chance.random() < 0.2,
                offline_log_dirs=[d for d in known.log_dirs if chance.random() < 0.1],
            )
            controller.liveness.connection_opened(broker_id, broker_id, controller.now)
        elif what == "register" and not controller.liveness.is_live(broker_id, controller.now):
            before = known.epoch if known is not None and chance.random() < 0.5 else -1
            wanted = registration(broker_id, step, before)
            records, epoch = register(controller.image, wanted, POLICY, is_live=False, kraft_version=0)
            controller.commit(records)
            assert epoch not in epochs, "never given twice"
            assert epoch == controller.image.end_offset - 1, "the offset of its record"
            assert controller.image.brokers[broker_id].fenced
            epochs.add(epoch)
        elif what == "overdue":
            controller.commit(fence_one_overdue(controller.image, controller.liveness, controller.now, POLICY)[0])
        elif what == "close":
            controller.liveness.connection_closed(broker_id, controller.now)
        elif what == "unregister" and known is not None and chance.random() < 0.3:
            controller.commit(unregister(controller.image, broker_id, POLICY))
            controller.liveness.forget(broker_id)
        check_invariants(controller)
