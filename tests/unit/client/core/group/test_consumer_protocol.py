"""KIP-848 membership, told as it happens: epochs, reconciling, fencing, leaving."""

# mypy: allow-incomplete-defs, allow-untyped-defs, disable-error-code="attr-defined, type-arg, unreachable"

from __future__ import annotations

import pytest

from strandline.errors import ErrorCode
from strandline.ids import Uuid

from ..broker import TOPIC_ID
from .consumer_group import HEARTBEAT, ConsumerGroup
from .play import Play

OTHER_ID = Uuid(b"other--id-16byte")


def made(partitions: int = 4, **config) -> Play:
    return Play(ConsumerGroup(partitions), partitions, group_protocol="consumer", **config)


def heartbeats(play: Play, name: str) -> list:
    return [request for who, key, request in play.sent if (who, key) == (name, HEARTBEAT)]


def owned_told(request) -> list[int] | None:
    if request.topic_partitions is None:
        return None
    return [p for t in request.topic_partitions for p in t.partitions]


def test_the_first_joins_with_epoch_0_and_says_at_once_what_it_took():
    play = made(group_remote_assignor="range", max_poll_interval_ms=7_000)
    member = play.join("a")
    assert play.run(0.5) == ["a assigned 0 1 2 3"]
    joined, acknowledged = heartbeats(play, "a")[:2]
    assert (joined.member_epoch, joined.rebalance_timeout_ms, joined.server_assignor) == (0, 7_000, "range")
    assert (joined.subscribed_topic_names, joined.subscribed_topic_regex) == (["t"], None)
    assert len(Uuid.parse(joined.member_id)) == 16
    assert acknowledged.member_epoch == 2
    assert owned_told(acknowledged) == [0, 1, 2, 3]
    assert acknowledged.topic_partitions[0].topic_id == TOPIC_ID
    assert acknowledged.subscribed_topic_names is None
    assert acknowledged.rebalance_timeout_ms == -1
    assert member.metadata == ("g", 2, joined.member_id, None)


def test_a_heartbeat_without_news_names_nothing():
    play = made()
    play.join("a")
    play.run(1.0)
    before = len(heartbeats(play, "a"))
    play.run(3.0)
    quiet = heartbeats(play, "a")[before:]
    assert 2 <= len(quiet) <= 4
    assert all(owned_told(r) is None and r.subscribed_topic_names is None for r in quiet)


def test_partitions_move_once_they_were_given_up():
    play = made()
    play.join("a")
    play.run(1.0)
    play.join("b")
    assert play.run(4.0) == ["a revoked 1 3", "b assigned 1 3"]
    assert play.owned() == {"a": [0, 2], "b": [1, 3]}
    assert play.members["a"].metadata.generation_id == play.members["b"].metadata.generation_id == 3


def test_at_no_time_two_own_a_partition():
    play = made(7)
    for name in "abc":
        play.join(name)
        for _ in range(40):
            play.run(0.1)
            owned = [key for member in play.members.values() for key in member.owned]
            assert len(owned) == len(set(owned))
    play.leave("b")
    play.run(5.0)
    assert sorted(len(p) for p in play.owned().values()) == [3, 4]


def test_heartbeats_go_on_in_the_old_epoch_while_the_application_is_waited_for():
    play = made()
    play.join("a")
    play.run(1.0)
    play.busy.add("a")
    play.join("b")
    before = len(heartbeats(play, "a"))
    assert play.run(5.0) == []
    waiting = heartbeats(play, "a")[before:]
    assert len(waiting) >= 4
    assert {r.member_epoch for r in waiting} == {2}
    assert {tuple(owned_told(r) or ()) for r in waiting} == {()}
    play.busy.clear()
    assert play.run(3.0) == ["a revoked 1 3", "b assigned 1 3"]


@pytest.mark.parametrize("code", [ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID])
def test_who_is_fenced_loses_all_and_joins_again_under_its_member_id(code):
    play = made()
    member = play.join("a")
    play.run(1.0)
    before = len(heartbeats(play, "a"))
    play.coordinator.refuse_next = code
    assert play.run(3.0) == ["a lost 0 1 2 3", "a assigned 0 1 2 3"]
    again = next(r for r in heartbeats(play, "a")[before:] if r.member_epoch == 0)
    assert again.member_id == member.member_id
    assert owned_told(again) == []
    assert again.subscribed_topic_names == ["t"]


@pytest.mark.parametrize("code", [ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS])
def test_a_coordinator_that_is_none_yet_is_told_everything_the_next_time(code):
    play = made()
    play.join("a")
    play.run(1.0)
    before = len(heartbeats(play, "a"))
    play.coordinator.refuse_next = code
    assert play.run(3.0) == []
    refused, full = heartbeats(play, "a")[before : before + 2]
    assert owned_told(refused) is None
    assert owned_told(full) == [0, 1, 2, 3]
    assert full.subscribed_topic_names == ["t"]
    assert full.member_epoch == 2


def test_a_new_coordinator_hears_from_a_member_at_once_and_everything():
    play = made()
    play.join("a")
    play.run(1.0)
    before = len(heartbeats(play, "a"))
    play.cut("a")
    play.run(0.1)
    assert len(heartbeats(play, "a")) == before + 1


@pytest.mark.parametrize(
    "code", [ErrorCode.UNSUPPORTED_ASSIGNOR, ErrorCode.UNRELEASED_INSTANCE_ID, ErrorCode.GROUP_AUTHORIZATION_FAILED]
)
def test_what_cannot_be_helped_is_for_the_application(code):
    play = made()
    member = play.join("a")
    play.coordinator.refuse_next = code
    play.run(1.0)
    assert member.error is not None
    assert member.error.code is code
    assert len(heartbeats(play, "a")) == 1
    member.subscribe(("t",), None, play.now)
    assert play.run(1.0) == ["a assigned 0 1 2 3"]


@pytest.mark.parametrize(("instance_id", "epoch"), [(None, -1), ("i", -2)])
def test_leaving_for_good_or_for_a_while(instance_id, epoch):
    play = made(group_instance_id=instance_id)
    play.join("a")
    play.run(1.0)
    play.leave("a")
    last = heartbeats(play, "a")[-1]
    assert (last.member_epoch, last.instance_id) == (epoch, instance_id)


def test_who_does_not_poll_leaves_and_is_told_what_it_lost():
    play = made(max_poll_interval_ms=5_000)
    play.join("a")
    play.run(1.0)
    play.busy.add("a")
    play.run(8.0)
    assert heartbeats(play, "a")[-1].member_epoch == -1
    assert play.members["a"].metadata.generation_id == -1
    play.busy.clear()
    assert play.run(1.0) == ["a lost 0 1 2 3", "a assigned 0 1 2 3"]


def test_a_pattern_goes_to_the_coordinator_and_its_topics_are_learnt_by_id():
    play = made()
    play.coordinator.topic_id = OTHER_ID
    member = play.join("a", topics=(), pattern="o.*")
    assert play.run(1.0) == []
    joined = heartbeats(play, "a")[0]
    assert (joined.subscribed_topic_names, joined.subscribed_topic_regex) == ([], "o.*")
    assert member.lacks_topics
    assert member.wants_all_topics
    play.partitions(4, "other", OTHER_ID)
    assert not member.lacks_topics
    assert play.run(0.5) == ["a assigned 0 1 2 3"]
    assert heartbeats(play, "a")[-1].topic_partitions[0].topic_id == OTHER_ID
    member.subscribe(("t",), None, play.now)
    play.run(0.2)
    assert heartbeats(play, "a")[-1].subscribed_topic_regex == ""


def test_a_topic_that_was_made_anew_is_given_up_as_the_old_one_and_taken_as_the_new():
    play = made()
    play.join("a")
    play.run(1.0)
    play.partitions(4, topic_id=OTHER_ID)
    play.coordinator.topic_id = OTHER_ID
    play.coordinator.members[play.members["a"].member_id]["given"] = None
    assert play.run(2.0) == ["a revoked 0 1 2 3", "a assigned 0 1 2 3"]
    assert heartbeats(play, "a")[-1].topic_partitions is None
    told = [r for r in heartbeats(play, "a") if r.topic_partitions]
    assert told[-1].topic_partitions[0].topic_id == OTHER_ID


def test_an_epoch_that_changed_is_asked_for_at_once():
    play = made()
    member = play.join("a")
    play.run(1.0)
    before = len(heartbeats(play, "a"))
    member.epoch_changed()
    play.run(0.1)
    assert len(heartbeats(play, "a")) == before + 1
