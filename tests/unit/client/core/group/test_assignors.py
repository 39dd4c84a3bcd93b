"""Who gets what: evenly, to subscribers only, and as it was where that can be."""

# mypy: allow-incomplete-defs, allow-untyped-defs, disable-error-code="index"

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from strandline.client.core.group import sticky_assignor
from strandline.client.core.group.assignors import ASSIGNORS, is_cooperative
from strandline.client.core.group.subscription import Subscription


def subscription(*topics: str, owned: str = "", generation: int = -1, instance: str | None = None) -> Subscription:
    """`owned` is `t0 t1 u0`."""
    keys = frozenset((word[:-1], int(word[-1])) for word in owned.split())
    return Subscription(frozenset(topics), keys, generation, None, instance)


def assign(name: str, counts: dict[str, int], **members: Subscription) -> dict[str, str]:
    assigned = ASSIGNORS[name].assign(counts, members)
    return {m: " ".join(f"{topic}{partition}" for topic, partition in keys) for m, keys in assigned.items()}


def test_range_gives_neighbours_of_each_topic():
    both = subscription("t", "u")
    assert assign("range", {"t": 3, "u": 2}, a=both, b=both) == {"a": "t0 t1 u0", "b": "t2 u1"}
    assert assign("range", {"t": 1}, a=both, b=both) == {"a": "t0", "b": ""}


def test_static_members_come_first_and_by_their_instance_ids():
    members = {
        "a": subscription("t"),
        "x": subscription("t", instance="2"),
        "y": subscription("t", instance="1"),
    }
    assert assign("range", {"t": 3}, **members) == {"y": "t0", "x": "t1", "a": "t2"}


def test_roundrobin_passes_over_those_who_did_not_subscribe():
    members = {"a": subscription("t", "u"), "b": subscription("u")}
    assert assign("roundrobin", {"t": 2, "u": 3}, **members) == {"a": "t0 t1 u1", "b": "u0 u2"}


def test_topics_that_do_not_exist_are_left_out():
    for name in ASSIGNORS:
        assert assign(name, {"t": 1}, a=subscription("t", "gone")) == {"a": "t0"}


def test_cooperative_sticky_takes_away_first_and_gives_the_next_time():
    had = subscription("t", owned="t0 t1 t2 t3", generation=3)
    assert assign("cooperative-sticky", {"t": 4}, a=had, b=subscription("t")) == {"a": "t0 t1", "b": ""}
    kept = subscription("t", owned="t0 t1", generation=4)
    assert assign("cooperative-sticky", {"t": 4}, a=kept, b=subscription("t")) == {"a": "t0 t1", "b": "t2 t3"}


def test_of_two_claims_the_later_generation_holds_and_of_equals_none():
    old = subscription("t", owned="t0 t1", generation=3)
    new = subscription("t", owned="t0", generation=4)
    assert sticky_assignor.owners({"a": old, "b": new}, sticky_assignor.owned) == {("t", 0): "b", ("t", 1): "a"}
    assert sticky_assignor.owners({"a": new, "b": new}, sticky_assignor.owned) == {}
    assert sticky_assignor.owners({"a": new, "b": new, "c": old}, sticky_assignor.owned) == {("t", 1): "c"}


def test_sticky_remembers_through_bytes_of_its_own():
    had = frozenset({("t", 0), ("t", 5), ("u", 1)})
    data = sticky_assignor.encode_previous(had, 9)
    member = Subscription(frozenset({"t", "u"}), user_data=data)
    assert sticky_assignor.previous(member) == (had, 9)
    assert sticky_assignor.previous(member._replace(user_data=data[:-4])) == (had, -1), (
        "the first version had no generation"
    )
    assert sticky_assignor.encode_previous((), 9) is None
    claim = sticky_assignor.encode_previous({("t", 1), ("t", 2)}, 1)
    members = {"a": subscription("t"), "b": Subscription(frozenset({"t"}), user_data=claim)}
    assert assign("sticky", {"t": 4}, **members) == {"a": "t0 t3", "b": "t1 t2"}


@given(st.binary(max_size=40))
def test_bytes_of_a_stranger_are_no_claim_or_a_claim(data):
    partitions, generation = sticky_assignor.previous(Subscription(frozenset({"t"}), user_data=data))
    assert isinstance(partitions, frozenset)
    assert isinstance(generation, int)


@given(st.data())
def test_every_partition_has_one_owner_among_its_subscribers_and_as_evenly_as_it_can_be(data):
    counts = {topic: data.draw(st.integers(0, 5)) for topic in "tuv"}
    members = {
        f"m{index}": subscription(*data.draw(st.sets(st.sampled_from("tuv"))))
        for index in range(data.draw(st.integers(1, 5)))
    }
    for name in ("range", "roundrobin", "sticky", "cooperative-sticky"):
        assigned = ASSIGNORS[name].assign(counts, members)
        given_out = [key for keys in assigned.values() for key in keys]
        wanted = {topic for member in members.values() for topic in member.topics}
        assert sorted(given_out) == sorted((t, p) for t in wanted for p in range(counts[t]))
        assert all(topic in members[m].topics for m, keys in assigned.items() for topic, _ in keys)
    for giver, keys in assigned.items():
        for taker in members:
            if any(topic in members[taker].topics for topic, _ in keys):
                assert len(keys) - len(assigned[taker]) < 2, f"{giver} could give one to {taker}"


@given(st.integers(1, 20), st.integers(1, 6), st.integers(0, 6), st.integers(0, 3))
def test_sticky_moves_no_more_than_it_must(partitions, members_count, joining, leaving):
    counts = {"t": partitions}
    names = [f"m{index}" for index in range(members_count)]
    before = ASSIGNORS["cooperative-sticky"].assign(counts, {name: subscription("t") for name in names})
    stay = names[leaving:] if leaving < len(names) else names
    members = {n: Subscription(frozenset({"t"}), frozenset(before[n]), 1) for n in stay}
    members |= {f"new{index}": subscription("t") for index in range(joining)}
    after = sticky_assignor.balance(
        counts, members, sorted(members), sticky_assignor.owners(members, sticky_assignor.owned)
    )
    most = -(-partitions // len(members))
    least = partitions // len(members)
    assert all(least <= len(keys) <= most for keys in after.values())
    had_more = sum(len(before[name]) > least for name in stay)
    kept_max = sum(min(len(before[name]), least) for name in stay) + min(had_more, partitions - least * len(members))
    assert sum(len(set(before[name]) & set(after[name])) for name in stay) == kept_max


def test_rebalances_are_cooperative_only_if_every_strategy_is():
    assert not is_cooperative(("range", "cooperative-sticky"))
    assert is_cooperative(("cooperative-sticky",))
