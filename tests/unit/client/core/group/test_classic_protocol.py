"""Classic membership, told as it happens: eager, cooperative, static, fenced, and without a poll."""

# mypy: allow-incomplete-defs, allow-untyped-defs, disable-error-code="arg-type, attr-defined, type-arg"

from __future__ import annotations

import pytest

from strandline.client.core.cluster_metadata import ClusterMetadata
from strandline.client.core.group.classic_protocol import (
    DESCRIBE_GROUPS,
    HEARTBEAT,
    JOIN_GROUP,
    LEAVE_GROUP,
    SYNC_GROUP,
)
from strandline.client.core.group.subscription import decode_subscription
from strandline.errors import ErrorCode

from .classic_group import ClassicGroup
from .play import Play

COOPERATIVE = {"partition_assignment_strategy": ("cooperative-sticky",)}


def member_id(play: Play, name: str) -> str:
    return play.members[name].member_id


def requests(play: Play, name: str, api_key: int) -> list:
    return [request for who, key, request in play.sent if (who, key) == (name, api_key)]


def test_the_first_is_told_its_member_id_and_gets_all():
    play = Play(ClassicGroup())
    play.join("a")
    assert play.run() == ["a assigned 0 1 2 3"]
    asked, joined = requests(play, "a", JOIN_GROUP)
    assert (asked.member_id, joined.member_id) == ("", "member-1")
    assert play.members["a"].metadata == ("g", 1, "member-1", None)
    assert [p.name for p in joined.protocols] == ["range", "cooperative-sticky"]


def test_eager_members_give_up_everything_before_they_rejoin():
    play = Play(ClassicGroup())
    play.join("a")
    play.run()
    play.join("b")
    assert play.run(4.0) == ["a revoked 0 1 2 3", "b assigned 2 3", "a assigned 0 1"]
    last = requests(play, "a", JOIN_GROUP)[-1]
    assert decode_subscription(last.protocols[0].metadata).owned == frozenset()
    play.leave("a")
    assert play.run(4.0) == ["b revoked 2 3", "b assigned 0 1 2 3"]


def test_cooperative_members_keep_what_stays_and_move_in_two_steps():
    play = Play(ClassicGroup(), **COOPERATIVE)
    play.join("a")
    assert play.run() == ["a assigned 0 1 2 3"]
    play.join("b")
    told = play.run(6.0)
    # First it is taken from a, while b gets nothing; then a rejoins, and b gets it.
    assert told == ["b assigned", "a revoked 2 3", "a assigned", "a assigned", "b assigned 2 3"]
    assert play.owned() == {"a": [0, 1], "b": [2, 3]}
    owned = [decode_subscription(r.protocols[0].metadata).owned for r in requests(play, "a", JOIN_GROUP)]
    assert [sorted(p for _, p in keys) for keys in owned] == [[], [], [0, 1, 2, 3], [0, 1]]


def test_at_no_time_two_own_a_partition():
    play = Play(ClassicGroup(), partitions=7, **COOPERATIVE)
    for name in "abc":
        play.join(name)
        for _ in range(60):
            play.run(0.1)
            owned = [key for member in play.members.values() for key in member.owned]
            assert len(owned) == len(set(owned))
    assert sorted(len(p) for p in play.owned().values()) == [2, 2, 3]
    play.leave("a")
    play.run(10.0)
    assert sorted(len(p) for p in play.owned().values()) == [3, 4]


def test_heartbeats_go_on_while_the_application_is_waited_for():
    play = Play(ClassicGroup())
    play.join("a")
    play.run()
    play.busy.add("a")
    play.join("b")
    assert play.run(10.0) == []
    assert len(requests(play, "a", HEARTBEAT)) >= 3
    assert len(requests(play, "a", JOIN_GROUP)) == 2, "it has not given up its partitions yet, so it does not rejoin"
    play.busy.clear()
    assert play.run(2.0)[0] == "a revoked 0 1 2 3"


def test_who_does_not_poll_leaves_and_is_told_what_it_lost():
    play = Play(ClassicGroup(), max_poll_interval_ms=20_000)
    play.join("a")
    play.run()
    play.busy.add("a")
    assert play.run(25.0) == []
    (left,) = requests(play, "a", LEAVE_GROUP)
    assert [m.member_id for m in left.members] == ["member-1"]
    assert play.members["a"].metadata.generation_id == -1
    heartbeats = len(requests(play, "a", HEARTBEAT))
    play.run(10.0)
    assert len(requests(play, "a", HEARTBEAT)) == heartbeats
    play.busy.clear()
    assert play.run() == ["a lost 0 1 2 3", "a assigned 0 1 2 3"]
    assert member_id(play, "a") == "member-2"


@pytest.mark.parametrize(
    ("code", "rejoins_as"), [(ErrorCode.UNKNOWN_MEMBER_ID, ""), (ErrorCode.ILLEGAL_GENERATION, "member-1")]
)
def test_who_is_fenced_loses_all_and_rejoins(code, rejoins_as):
    play = Play(ClassicGroup())
    play.join("a")
    play.run()
    play.coordinator.refuse_next[HEARTBEAT] = code
    assert play.run(6.0) == ["a lost 0 1 2 3", "a assigned 0 1 2 3"]
    assert requests(play, "a", JOIN_GROUP)[2].member_id == rejoins_as


def test_a_fenced_member_does_not_rejoin_before_the_application_knows():
    play = Play(ClassicGroup())
    play.join("a")
    play.run()
    play.busy.add("a")
    play.coordinator.refuse_next[HEARTBEAT] = ErrorCode.UNKNOWN_MEMBER_ID
    play.run(6.0)
    assert len(requests(play, "a", JOIN_GROUP)) == 2
    assert play.members["a"].owned


def test_another_process_under_the_same_instance_id_ends_this_one():
    play = Play(ClassicGroup(), group_instance_id="i")
    play.join("a")
    play.run()
    play.coordinator.refuse_next[HEARTBEAT] = ErrorCode.FENCED_INSTANCE_ID
    assert play.run(6.0) == ["a lost 0 1 2 3"]
    error = play.members["a"].error
    assert error is not None
    assert error.code is ErrorCode.FENCED_INSTANCE_ID
    assert play.members["a"].plan(play.now) is None


def test_a_static_member_comes_back_without_a_rebalance_and_does_not_leave():
    play = Play(ClassicGroup())
    play.join("a", group_instance_id="i")
    play.join("b", group_instance_id="j")
    play.run(6.0)
    owned = play.owned()
    generation = play.coordinator.generation
    play.leave("a")
    assert requests(play, "a", LEAVE_GROUP) == []
    play.join("a", group_instance_id="i")
    assert play.run(6.0) == [f"a assigned {' '.join(map(str, owned['a']))}"]
    assert play.owned() == owned
    assert play.coordinator.generation == generation


def test_a_static_leader_that_knows_no_topic_yet_comes_back_without_a_rebalance():
    play = Play(ClassicGroup())
    play.join("a", group_instance_id="i")
    play.run(6.0)
    generation = play.coordinator.generation
    play.leave("a")
    play.cluster = ClusterMetadata()  # that of a new process
    play.join("a", group_instance_id="i")
    assert play.run(2.0) == []
    play.partitions(4)
    assert play.run(6.0) == ["a assigned 0 1 2 3"]
    assert play.coordinator.generation == generation


@pytest.mark.parametrize("refused", [None, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS])
@pytest.mark.parametrize("others", [(), ("b",)])
def test_a_static_leader_sees_on_its_return_that_a_topic_has_grown_meanwhile(others, refused):
    """Seed 300070: nobody else looks, and the partitions that are new were read by nobody."""
    play = Play(ClassicGroup(), **COOPERATIVE)
    for name in ("a", *others):
        play.join(name, group_instance_id=f"instance-{name}")
    play.run(12.0)
    play.leave("a")
    play.partitions(6)
    if refused is not None:
        play.coordinator.refuse_next[DESCRIBE_GROUPS] = refused
    play.join("a", group_instance_id="instance-a")
    play.run(12.0)
    assert sorted(index for owned in play.owned().values() for index in owned) == list(range(6))
    assert len(requests(play, "a", DESCRIBE_GROUPS)) == (1 if refused is None else 2)


def test_a_group_that_may_not_be_described_goes_on_as_it_is():
    play = Play(ClassicGroup())
    play.join("a", group_instance_id="i")
    play.run(6.0)
    play.leave("a")
    play.partitions(6)
    play.coordinator.refuse_next[DESCRIBE_GROUPS] = ErrorCode.GROUP_AUTHORIZATION_FAILED
    play.join("a", group_instance_id="i")
    assert play.run(12.0) == ["a assigned 0 1 2 3"]
    assert play.members["a"].error is None


def test_a_leader_rejoins_for_a_static_member_that_gave_up_something_and_forgot_to_rejoin():
    """Seed 301022: it died in between, and came back without a rebalance; what it had given up was read by nobody."""
    play = Play(ClassicGroup(), partitions=2, **COOPERATIVE)
    play.partitions(4, "u")
    play.join("a", topics=("t",), group_instance_id="i")
    play.join("b", topics=("u",), group_instance_id="j")
    play.run(12.0)
    assert play.owned() == {"a": [0, 1], "b": [0, 1, 2, 3]}
    play.join("c", topics=("u",))
    play.busy.add("b")
    while play.members["b"].change() is None:
        play.run(0.1)
        assert play.now < 30, play.told
    play.leave("b")
    play.busy.clear()
    play.join("b", topics=("u",), group_instance_id="j")
    play.run(play.members["a"].config.session_timeout_ms / 1000 - 10)
    assert play.owned() == {"a": [0, 1], "b": [0, 1], "c": []}
    play.run(20)
    assert {name: len(owned) for name, owned in play.owned().items()} == {"a": 2, "b": 2, "c": 2}


def test_an_ordinary_cooperative_rebalance_costs_its_two_generations_and_no_more():
    play = Play(ClassicGroup(), **COOPERATIVE)
    play.join("a")
    play.run()
    play.join("b")
    play.run(12.0)
    generation = play.coordinator.generation
    play.run(2 * play.members["a"].config.session_timeout_ms / 1000)
    assert play.coordinator.generation == generation == 3


def test_a_description_is_not_waited_for_until_the_session_is_over():
    """Heartbeats wait behind it."""
    play = Play(ClassicGroup(), session_timeout_ms=6000, heartbeat_interval_ms=2000)
    play.join("a", group_instance_id="i")
    play.run(6.0)
    play.leave("a")
    play.join("a", group_instance_id="i")
    play.run(0.5)
    assert play.timeouts_ms[DESCRIBE_GROUPS] == play.timeouts_ms[HEARTBEAT][:1]
    assert play.timeouts_ms[DESCRIBE_GROUPS][0] < 6000


def test_a_new_coordinator_hears_from_a_member_at_once():
    play = Play(ClassicGroup())
    play.join("a")
    play.run(2.0)
    before = len(requests(play, "a", HEARTBEAT))
    play.cut("a")
    assert play.run(0.2) == []
    assert len(requests(play, "a", HEARTBEAT)) == before + 1


@pytest.mark.parametrize("api_key", [JOIN_GROUP, SYNC_GROUP, HEARTBEAT])
@pytest.mark.parametrize("code", [ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS])
def test_a_coordinator_that_is_none_yet_changes_nothing(api_key, code):
    play = Play(ClassicGroup())
    play.coordinator.refuse_next[api_key] = code
    play.join("a")
    assert play.run(8.0) == ["a assigned 0 1 2 3"]
    assert play.coordinator.refuse_next == {}


def test_the_leader_rejoins_when_a_topic_grows():
    play = Play(ClassicGroup(), **COOPERATIVE)
    play.join("a")
    play.run()
    play.partitions(6)
    assert play.run() == ["a assigned 4 5"]


def test_a_leader_learns_of_the_topics_of_others_before_it_assigns():
    play = Play(ClassicGroup())
    play.join("a")
    play.run()
    play.join("b", topics=("other",))
    play.run(4.0)
    leader = play.members["a"]
    assert leader.lacks_topics
    assert leader.wanted_topics == {"t", "other"}
    assert len(requests(play, "a", SYNC_GROUP)) == 1
    leader.refreshed(frozenset({"t"}))
    assert len(requests(play, "a", SYNC_GROUP)) == 1
    play.partitions(2, "other")
    assert play.run(1.0) == ["b assigned 0 1", "a assigned 0 1 2 3"]


def test_topics_that_match_a_pattern_are_joined_as_they_come():
    play = Play(ClassicGroup(), **COOPERATIVE)
    play.join("a", topics=(), pattern="t.*")
    assert play.run() == ["a assigned 0 1 2 3"]
    play.partitions(1, "another")
    play.partitions(1, "tt")
    assert play.run() == ["a assigned 0"]
    assert play.members["a"].topics == {"t", "tt"}


def test_cooperative_partitions_of_a_dropped_topic_are_given_up_before_the_rejoin():
    play = Play(ClassicGroup(), **COOPERATIVE)
    play.partitions(1, "u")
    member = play.join("a", topics=("t", "u"))
    play.run()
    member.subscribe(("u",), None, play.now)
    assert play.run(4.0)[0] == "a revoked 0 1 2 3"
    assert member.owned == {("u", 0)}


def test_an_assignment_that_was_not_given_yet_is_forgotten_by_the_next_rebalance():
    play = Play(ClassicGroup(), **COOPERATIVE)
    play.busy.add("a")
    play.join("a")
    play.run()
    play.join("b")
    play.run(6.0)
    play.busy.clear()
    play.run(6.0)
    assert sorted(play.owned()["a"] + play.owned()["b"]) == [0, 1, 2, 3]
    assert len(play.owned()["a"]) == 2
