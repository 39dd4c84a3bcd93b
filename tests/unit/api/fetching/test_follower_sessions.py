"""The fetch sessions of followers: who may go on with which, and what they remember."""

# mypy: allow-incomplete-defs, allow-untyped-calls, allow-untyped-defs, disable-error-code="union-attr"

from __future__ import annotations

import random

import pytest

from strandline.api.fetching.follower_sessions import SESSIONS_MAX, FollowerSessions
from strandline.api.fetching.session_epochs import EPOCH_MAX
from strandline.errors import ErrorCode, KafkaError
from strandline.metadata import records as r
from strandline.wire.fetch import FetchPartition

from ..leader import Leader, part


def asked(offset=0, index=0):
    return FetchPartition(index, 0, offset, -1, 0, 1 << 20)


@pytest.fixture
def sessions():
    return FollowerSessions(random.Random(1))


def begin(sessions, replica=2, now=0.0):
    return sessions.begin(replica, 1, by_id=False, now=now)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"session_id": 0}, ErrorCode.FETCH_SESSION_ID_NOT_FOUND),
        ({"replica_id": 3}, ErrorCode.FETCH_SESSION_ID_NOT_FOUND),
        ({"broker_epoch": 2}, ErrorCode.FETCH_SESSION_ID_NOT_FOUND),
        ({"by_id": True}, ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR),
        ({"epoch": 2}, ErrorCode.INVALID_FETCH_SESSION_EPOCH),
    ],
)
def test_who_may_not_go_on_with_a_session(sessions, change, error):
    session = begin(sessions)
    wanted = {"session_id": session.session_id, "epoch": 1, "replica_id": 2, "broker_epoch": 1, "by_id": False} | change
    with pytest.raises(KafkaError) as refused:
        sessions.resume(**wanted)
    assert refused.value.code is error
    assert sessions.resume(session.session_id, 1, 2, 1, by_id=False) is session, "it is not harmed"


def test_epochs_rise_by_one_and_wrap_to_one(sessions):
    session = begin(sessions)
    sessions.resume(session.session_id, 1, 2, 1, by_id=False)
    assert session.epoch == 2
    session.epoch = EPOCH_MAX
    sessions.resume(session.session_id, EPOCH_MAX, 2, 1, by_id=False)
    assert session.epoch == 1


def test_a_replica_has_only_so_many_sessions_and_loses_its_oldest(sessions):
    first, *_ = [begin(sessions, now=float(i)) for i in range(SESSIONS_MAX)]
    others = begin(sessions, replica=3, now=-1.0)
    begin(sessions, now=99.0)
    assert len(sessions) == SESSIONS_MAX + 1
    with pytest.raises(KafkaError):
        sessions.resume(first.session_id, 1, 2, 1, by_id=False)
    assert sessions.resume(others.session_id, 1, 3, 1, by_id=False)


def test_positions_are_kept_changed_and_forgotten(sessions):
    session = begin(sessions)
    session.take([("t", [asked(0, 0), asked(0, 1)])], [], 1.0)
    [zero, one] = session.watches.values()
    session.dirty.clear()
    zero.is_fresh = one.is_fresh = False
    session.take([("t", [asked(5, 1)])], [("t", [0, 9])], 2.0)
    assert list(session.watches.values()) == list(session.dirty) == [one]
    assert (one.asked.fetch_offset, one.is_fresh, session.fetched_at) == (5, True, 2.0)


def test_what_is_forgotten_right_after_its_records_were_sent_is_forgotten(sessions):
    session = begin(sessions)
    session.take([("t", [asked()])], [], 1.0)
    session.sent = list(session.watches.values())
    session.take([], [("t", [0])], 2.0)
    assert not session.dirty
    assert not session.watches


def test_a_partition_that_is_made_anew_is_another_one():
    leader = Leader((1, 2))
    leader.broker.commit([r.FeatureLevelRecord(name="metadata.version", feature_level=9)])
    first = leader.fetch(part(0), version=12)
    leader.loop.run(1)
    [watch] = leader.session(first).watches.values()
    old = watch.partition
    waiting = leader.fetch(version=12, session=(first.session_id, 1))
    leader.broker.commit([r.RemoveTopicRecord(topic_id=leader.topic_id)])
    assert old.gone
    leader.topic_id = leader.broker.create("t", (1, 2))
    leader.append(1)
    leader.loop.run()
    assert waiting.answer.error_code == 0
    assert waiting.answer.records
    assert watch.partition is leader.partition() is not old
    assert not old.watchers


def test_a_follower_that_had_everything_was_level_when_the_session_was_last_used():
    leader = Leader((1, 2))
    leader.append(1)
    asked = leader.fetch(part(1))
    leader.loop.run(0.5)
    leader.loop.run(20)
    leader.fetch(session=(asked.session_id, 1))
    used_at = leader.loop.now
    leader.loop.run(20)
    assert leader.follower().caught_up_at < used_at
    leader.append(1)
    assert leader.follower().caught_up_at == used_at


def test_one_that_lags_was_not_level_whatever_its_session_does():
    leader = Leader((1, 2))
    leader.append(1)
    first = leader.fetch(part(0))
    began_at = leader.loop.now
    leader.loop.run(20)
    leader.fetch(session=(first.session_id, 1))
    leader.append(1)
    assert leader.follower().caught_up_at <= began_at


def idle_for_a_minute(leader, position, meanwhile=lambda: None):
    """Fetches that find nothing new, and the last of them, which waits; `meanwhile` happens early on."""
    first = leader.fetch(position)
    leader.loop.run(0.5)
    for epoch in range(1, 120):
        leader.fetch(session=(first.session_id, epoch))
        if epoch == 2:
            meanwhile()
            leader.loop.run()
        leader.loop.run(0.5)
    return leader.fetch(session=(first.session_id, 120))


def is_late(leader):
    partition = leader.partition()
    isr = partition.leadership.isr.isr
    partition.shrink_isr(leader.loop.time())
    return any(set(isr) - set(proposal.replicas) for proposal in leader.broker.surroundings.wishes)


@pytest.mark.parametrize(
    "meanwhile",
    [
        pytest.param(lambda leader: None, id="nothing"),
        pytest.param(lambda leader: leader.partition().delete_records(-1), id="records are deleted"),
        pytest.param(lambda leader: leader.broker.change(replicas=(1, 2, 3)), id="another replica"),
        pytest.param(lambda leader: leader.partition().after_append(), id="a batch that was there already"),
    ],
)
def test_one_that_was_level_for_a_minute_is_not_late_with_the_next_append(meanwhile):
    leader = Leader((1, 2))
    leader.append(1)
    idle_for_a_minute(leader, part(1, last=0), lambda: meanwhile(leader))
    leader.append(1)
    assert not is_late(leader), "it had everything until just now"


def test_one_whose_connection_breaks_while_it_is_level_is_not_late_with_the_next_append():
    leader = Leader((1, 2))
    waiting = idle_for_a_minute(leader, part(0))
    waiting.later.cancel()
    leader.append(1)
    assert not is_late(leader), "it had everything when its connection broke"


def test_whoever_asks_as_a_replica_there_is_room_for_only_so_many_sessions():
    leader = Leader((1, 2))
    for replica in range(1000, 3000):
        leader.fetch(replica=replica, max_wait_ms=0)
    assert len(leader.broker.parts.followers.sessions) < 100, "sessions of nobody pile up"


def test_a_partition_that_is_named_again_is_told_of_again():
    leader = Leader((1, 2, 3))
    first = leader.fetch(part(0))
    leader.fetch(part(0), replica=3)
    leader.append(1)
    leader.loop.run()
    second = leader.fetch(part(1, last=0), session=(first.session_id, 1))
    leader.fetch(part(1, last=0), replica=3)
    assert leader.partition().high_watermark == 1
    leader.loop.run(0.5)
    assert second.answer.high_watermark == 1
    # Its follower named the partition anew before that came, so it drops this answer.
    third = leader.fetch(part(1, last=0), session=(first.session_id, 2))
    leader.loop.run(0.5)
    assert third.answers[0].high_watermark == 1, "the watermark that was lost on the way is not told again"
