"""Fetch sessions: only what changed is asked for and told (KIP-227)."""

# mypy: allow-incomplete-defs, allow-untyped-calls, allow-untyped-defs

from __future__ import annotations

import random

import pytest

from strandline.api.fetching import fetch_sessions as subject
from strandline.api.fetching.fetch_sessions import EVICTION_IDLE_S, Cached, FetchSessions
from strandline.api.fetching.session_epochs import EPOCH_MAX
from strandline.errors import ErrorCode, KafkaError
from strandline.wire.fetch import FetchedPartition, FetchPartition


def want(index, offset=0):
    return FetchPartition(index, -1, offset, -1, -1, 1 << 20)


def wanted(*indexes, topic="t"):
    return [(topic, [want(index) for index in indexes])]


@pytest.fixture
def sessions():
    return FetchSessions(2, random.Random(1))


def refusal(call):
    with pytest.raises(KafkaError) as caught:
        call()
    return caught.value.code


def resume(sessions, session, epoch, wanted=(), forgotten=(), *, by_id=False, now=0.0):
    return sessions.resume(session.session_id, epoch, wanted, forgotten, by_id=by_id, now=now)


def test_a_session_begins_with_what_its_reader_wants(sessions):
    session = sessions.begin(wanted(0, 1), by_id=False, now=0)
    assert list(session.partitions) == [("t", 0), ("t", 1)]
    assert session.session_id > 0
    assert len(sessions) == 1


def test_a_reader_of_nothing_gets_no_session(sessions):
    assert sessions.begin([], by_id=False, now=0) is None
    assert sessions.begin([("t", [])], by_id=False, now=0) is None
    assert len(sessions) == 0


def test_partitions_are_added_changed_and_forgotten(sessions):
    session = sessions.begin(wanted(0, 1), by_id=False, now=0)
    session.partitions["t", 0].high_watermark = 5
    assert resume(sessions, session, 1, [("t", [want(0, 9), want(2)])], [("t", [1]), ("u", [0])]) is session
    assert list(session.partitions) == [("t", 0), ("t", 2)]
    assert session.partitions["t", 0].wanted.fetch_offset == 9
    # What the reader was told does not change with what it asks for.
    assert session.partitions["t", 0].high_watermark == 5


def test_each_request_has_the_next_epoch(sessions):
    session = sessions.begin(wanted(0), by_id=False, now=0)
    for epoch in (1, 2, 3):
        resume(sessions, session, epoch)
    for epoch in (3, 5, 1):
        assert refusal(lambda epoch=epoch: resume(sessions, session, epoch)) == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    resume(sessions, session, 4)


def test_a_refused_request_changes_nothing(sessions):
    session = sessions.begin(wanted(0), by_id=False, now=0)
    refusal(lambda: resume(sessions, session, 7, wanted(5), [("t", [0])]))
    assert list(session.partitions) == [("t", 0)]


def test_after_the_largest_epoch_comes_1(sessions):
    session = sessions.begin(wanted(0), by_id=False, now=0)
    session.epoch = EPOCH_MAX
    resume(sessions, session, EPOCH_MAX)
    resume(sessions, session, 1)


def test_unknown_sessions(sessions):
    session = sessions.begin(wanted(0), by_id=False, now=0)
    unknown = session.session_id + 1
    assert (
        refusal(lambda: sessions.resume(unknown, 1, [], [], by_id=False, now=0)) == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    )
    sessions.end(session.session_id)
    sessions.end(session.session_id)
    assert refusal(lambda: resume(sessions, session, 1)) == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


@pytest.mark.parametrize("by_id", [False, True])
def test_a_session_does_not_change_how_it_names_topics(sessions, by_id):
    session = sessions.begin(wanted(0), by_id=by_id, now=0)
    code = refusal(lambda: resume(sessions, session, 1, by_id=not by_id))
    assert code == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR


def test_a_session_in_use_is_not_thrown_out_for_a_new_one(sessions):
    first, second = (sessions.begin(wanted(0), by_id=False, now=0) for _ in range(2))
    assert sessions.begin(wanted(0), by_id=False, now=EVICTION_IDLE_S) is None
    resume(sessions, first, 1, now=10)
    third = sessions.begin(wanted(0), by_id=False, now=EVICTION_IDLE_S + 1)
    assert third is not None
    assert refusal(lambda: resume(sessions, second, 1)) == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    resume(sessions, first, 2)
    assert len(sessions) == 2


def test_no_slots_no_sessions():
    assert FetchSessions(0, random.Random(1)).begin(wanted(0), by_id=False, now=0) is None


def test_partitions_of_all_sessions_are_bounded(sessions, monkeypatch):
    monkeypatch.setattr(subject, "PARTITIONS_MAX", 10)
    session = sessions.begin(wanted(*range(6)), by_id=False, now=0)
    assert sessions.begin(wanted(*range(5)), by_id=False, now=0) is None
    other = sessions.begin(wanted(*range(4)), by_id=False, now=0)
    # To swap one for another is fine, to have one more is not: that reader starts again without a session.
    resume(sessions, session, 1, wanted(6), [("t", [0])])
    assert refusal(lambda: resume(sessions, session, 2, wanted(7))) == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    resume(sessions, other, 1, wanted(4, 5, 6))
    sessions.end(other.session_id)
    assert sessions.begin(wanted(*range(10)), by_id=False, now=0) is not None


def test_those_that_gave_records_go_to_the_back_of_the_line(sessions):
    session = sessions.begin(wanted(0, 1, 2, 3), by_id=False, now=0)
    session.rotate([("t", 0), ("t", 2), ("gone", 0)])
    assert [index for _, index in session.partitions] == [1, 3, 0, 2]


def test_what_a_reader_must_hear():
    cached = Cached(want(0))
    quiet = FetchedPartition(0, 0, 5, 5, 0)
    assert cached.update(quiet), "the first answer"
    assert not cached.update(quiet), "the same again"
    assert cached.update(quiet._replace(records=b"r")), "records"
    assert cached.update(quiet._replace(high_watermark=6)), "a new high watermark"
    assert cached.update(quiet._replace(high_watermark=6, log_start_offset=2)), "a new log start"
    assert cached.update(FetchedPartition(0, 6)), "an error"
    assert cached.update(FetchedPartition(0, 6)), "the same error again"
    told = quiet._replace(high_watermark=6, log_start_offset=2)
    assert cached.update(told), "the end of an error"
    assert not cached.update(told)
    assert cached.update(told._replace(diverging_epoch=(1, 2)))
    assert cached.update(told._replace(snapshot_id=(1, 2)))
    assert cached.update(told._replace(preferred_read_replica=2))


def test_a_session_has_only_so_many_partitions(sessions, monkeypatch):
    """Each of its requests, however short, looks at all of them (SEC-L2)."""
    monkeypatch.setattr(subject, "SESSION_PARTITIONS_MAX", 5)
    assert sessions.begin(wanted(*range(6)), by_id=False, now=0) is None
    session = sessions.begin(wanted(*range(4)), by_id=False, now=0)
    resume(sessions, session, 1, wanted(4))
    assert refusal(lambda: resume(sessions, session, 2, wanted(5))) == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert len(sessions) == 0
