"""What two images say about what happened between them, and why."""

# mypy: allow-incomplete-defs, allow-untyped-defs, disable-error-code="assignment"

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from strandline.ids import ZERO_UUID, Uuid
from strandline.metadata.changes import RECOVERING, MetadataChange, changes
from strandline.metadata.image import BrokerImage, MetadataImage, PartitionImage, TopicImage

TOPIC_ID, OTHER_ID = Uuid(bytes([1] * 16)), Uuid(bytes([2] * 16))
DIR, OTHER_DIR = Uuid(bytes([3] * 16)), Uuid(bytes([4] * 16))
FIRST = PartitionImage(replicas=(1, 2, 3), isr=(1, 2, 3), leader=1, leader_epoch=5, partition_epoch=8)


def broker(broker_id: int, **values: Any) -> BrokerImage:
    given: dict[str, Any] = {"epoch": 10, "incarnation_id": DIR, "endpoints": (), "fenced": False} | values
    return BrokerImage(broker_id, **given)


def image(
    *partitions: PartitionImage, brokers: tuple[BrokerImage, ...] = (), topic_id: Uuid = TOPIC_ID
) -> MetadataImage:
    topic = TopicImage("t", topic_id, partitions)
    by_id = {one.broker_id: one for one in (broker(1), broker(2), broker(3), *brokers)}
    return MetadataImage(topics={"t": topic}, topics_by_id={topic_id: topic}, brokers=by_id)


def between(now: PartitionImage, *brokers: BrokerImage, was: PartitionImage = FIRST) -> dict[str, MetadataChange]:
    """By kind, of the only partition, from all brokers well to these."""
    told = [one for one in changes(image(was), image(now, brokers=brokers)) if one.partition == 0]
    assert len({one.kind for one in told}) == len(told)
    return {one.kind: one for one in told}


def changed(was: PartitionImage = FIRST, **values: Any) -> PartitionImage:
    """As a record would: the partition epoch rises, the leader epoch with a leader that is named."""
    raised = 1 if "leader" in values else 0
    given = {"partition_epoch": was.partition_epoch + 1, "leader_epoch": was.leader_epoch + raised} | values
    return replace(was, **given)


# Elections


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        ({"fenced": True}, "broker 1 was fenced"),
        ({"in_controlled_shutdown": True}, "broker 1 is shutting down"),
        ({"fenced": True, "in_controlled_shutdown": True}, "broker 1 is shutting down"),
    ],
)
def test_a_leader_that_may_not_lead_is_why_another_does(state, reason):
    told = between(changed(leader=2, isr=(2, 3)), broker(1, **state))
    assert told["leader elected"].reason == reason
    assert told["leader elected"].facts == {"from": 1, "to": 2, "leader_epoch": 6, "partition_epoch": 9}
    assert told["isr shrunk"].reason == reason


def test_a_leader_whose_log_dir_failed_is_why_another_does():
    was = replace(FIRST, directories=(DIR, DIR, DIR))
    now = changed(was, leader=2, isr=(2, 3))
    told = between(now, broker(1, log_dirs=(OTHER_DIR,)), was=was)
    assert told["leader elected"].reason == "a log dir of broker 1 failed"


def test_a_log_dir_that_is_not_known_has_not_failed():
    was = replace(FIRST, directories=(ZERO_UUID,) * 3)
    told = between(changed(was, isr=(2, 3)), broker(1, log_dirs=(OTHER_DIR,)), was=was)
    assert told["isr shrunk"].reason == "broker 1 fell behind"


def test_a_leader_that_was_unregistered_is_why_another_does():
    after = image(changed(leader=2, isr=(2, 3)))
    after = replace(after, brokers={2: broker(2), 3: broker(3)})
    kinds = {one.kind: one.reason for one in changes(image(FIRST), after)}
    assert kinds["leader elected"] == "broker 1 was unregistered"
    assert kinds["fenced"] == "broker 1 was unregistered"


def test_the_preferred_replica_leads_again():
    was = replace(FIRST, leader=2)
    assert between(changed(was, leader=1), was=was)["leader elected"].reason == "preferred replica"


def test_an_election_for_which_no_reason_shows():
    assert between(changed(leader=2))["leader elected"].reason == "an election was asked for"


def test_a_reassigned_leader():
    told = between(changed(leader=2, replicas=(2, 3), isr=(2, 3)))
    assert told["leader elected"].reason == "reassigned: broker 1 is no replica any more"
    assert told["reassignment finished"].reason == "replicas are 2,3"


def test_the_same_leader_in_a_new_epoch():
    told = between(changed(leader=1, replicas=(1, 2), isr=(1, 2)))
    assert told["leader elected"].reason == "the same leader in a new epoch: its replicas changed"


def test_nobody_may_lead():
    was = replace(FIRST, isr=(1,))
    told = between(changed(was, leader=-1, isr=(), elr=(1,)), broker(1, fenced=True), was=was)
    assert told["leader lost"].reason == "broker 1 was fenced, and no replica may lead"
    assert told["elr changed"].reason == "broker 1 left an ISR below min.insync.replicas, with all that is committed"


def test_a_leader_comes_back():
    was = replace(FIRST, leader=-1, isr=(), elr=(1,))
    before, after = image(was, brokers=(broker(1, fenced=True),)), image(changed(was, leader=1, isr=(1,), elr=()))
    told = {one.kind: one for one in changes(before, after)}
    assert told["leader elected"].reason == "broker 1 came back, and there was no leader"
    assert told["elr changed"].facts["elr"] == []
    assert told["unfenced"].reason == "broker 1 has caught up with the metadata and may lead"


def test_an_unclean_election_says_so():
    was = replace(FIRST, leader=-1, isr=(1,))
    told = between(changed(was, leader=3, isr=(3,), leader_recovery_state=RECOVERING), broker(1, fenced=True), was=was)
    assert told["unclean election"].reason == "unclean: no in-sync replica was left, records may be lost"
    assert told["isr expanded"].reason == "it was elected uncleanly"
    assert "leader elected" not in told


def test_a_recovering_partition_that_elects_in_order_is_not_unclean_again():
    was = replace(FIRST, leader=-1, leader_recovery_state=RECOVERING)
    told = between(changed(was, isr=(1, 2)), was=was)
    assert "unclean election" not in told


# ISR, ELR


def test_a_slow_replica_leaves_and_comes_back():
    behind = changed(isr=(1, 2))
    assert between(behind)["isr shrunk"] == MetadataChange(
        "isr shrunk",
        "broker 3 fell behind",
        "t",
        0,
        {"leader": 1, "isr": [1, 2], "left": [3], "leader_epoch": 5, "partition_epoch": 9},
    )
    back = between(changed(behind, isr=(1, 2, 3)), was=behind)["isr expanded"]
    assert (back.reason, back.facts["joined"]) == ("broker 3 caught up", [3])


def test_several_leave_for_several_reasons():
    told = between(changed(isr=(1,)), broker(2, fenced=True))
    assert told["isr shrunk"].reason == "broker 2 was fenced; broker 3 fell behind"


def test_an_isr_in_another_order_is_no_change():
    assert between(changed(isr=(3, 1, 2))) == {}


def test_the_elr_is_emptied():
    was = replace(FIRST, isr=(1,), elr=(2,))
    assert between(changed(was, elr=(), isr=(1, 2)), was=was)["elr changed"].reason.startswith(
        "the ISR is large enough"
    )


# Reassignments


def test_a_reassignment_from_start_to_end():
    moving = changed(replicas=(4, 1, 2, 3), adding_replicas=(4,), removing_replicas=(3,))
    started = between(moving)["reassignment started"]
    assert (started.reason, started.facts["partition_epoch"]) == ("replicas 1,2,3 → 4,1,2", 9)
    done = changed(moving, replicas=(4, 1, 2), adding_replicas=(), removing_replicas=(), isr=(4, 1, 2))
    assert between(done, was=moving)["reassignment finished"].reason == "replicas are 4,1,2"
    cancelled = changed(moving, replicas=(1, 2, 3), adding_replicas=(), removing_replicas=())
    assert between(cancelled, was=moving)["reassignment finished"].reason == (
        "it was cancelled: replicas are 1,2,3 again"
    )


# Brokers


@pytest.mark.parametrize(
    ("was", "now", "told"),
    [
        (None, broker(4, fenced=True), [("registered", "broker 4 is new")]),
        (broker(4), broker(4, fenced=True), [("fenced", "broker 4: the controller lost touch with it")]),
        (
            broker(4, in_controlled_shutdown=True),
            broker(4, in_controlled_shutdown=True, fenced=True),
            [("fenced", "broker 4: it has stopped in order")],
        ),
        (broker(4), broker(4, in_controlled_shutdown=True), [("controlled shutdown", "broker 4 asked to stop")]),
        (
            broker(4),
            broker(4, epoch=11, incarnation_id=OTHER_DIR, fenced=True),
            [
                ("registered", "broker 4 was started again"),
                ("fenced", "broker 4: it was started again before its session ended"),
            ],
        ),
        (broker(4, fenced=True), broker(4, fenced=True, epoch=12), [("registered", "broker 4 registered again")]),
        (broker(4), broker(4, log_dirs=(DIR,)), []),
    ],
)
def test_brokers_come_and_go(was, now, told):
    before = MetadataImage(brokers={} if was is None else {4: was})
    found = list(changes(before, MetadataImage(brokers={4: now})))
    assert [(one.kind, one.reason) for one in found] == told
    assert all(one.facts == {"broker": 4, "broker_epoch": now.epoch} for one in found)


# Topics


def test_topics_are_created_deleted_and_made_anew():
    empty, first, second = MetadataImage(brokers=image().brokers), image(FIRST), image(FIRST, FIRST, topic_id=OTHER_ID)
    assert [(one.kind, one.reason) for one in changes(empty, replace(first, brokers=empty.brokers))] == [
        ("topic created", "1 partition, 3 replicas each")
    ]
    kinds = [(one.kind, one.facts["topic_id"]) for one in changes(first, second) if one.topic == "t"]
    assert kinds == [("topic deleted", str(TOPIC_ID)), ("topic created", str(OTHER_ID))]


def test_partitions_that_are_new_have_nothing_to_tell():
    assert [one for one in changes(image(FIRST), image(FIRST, FIRST)) if one.topic] == []


def test_what_is_shared_is_not_looked_at():
    class Untouchable(dict):  # type: ignore[type-arg]
        def __getitem__(self, key):
            raise AssertionError("looked at")

        items = values = get = __iter__ = __getitem__

    topics, brokers = Untouchable(), Untouchable()
    before = MetadataImage(end_offset=1, topics=topics, brokers=brokers)
    assert list(changes(before, MetadataImage(end_offset=2, topics=topics, brokers=brokers))) == []
