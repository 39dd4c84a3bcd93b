# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

import pytest

from strandline.cli.errors import CommandRefused
from strandline.cli.reassignment.reassignment_throttles import ThrottledMove, moves, parse_rate, topic_configs
from strandline.client.flow.descriptions import Reassignment


def test_what_moves_is_copied_from_where_it_is_to_where_it_is_not():
    moving = moves({}, {("t", 0): [2, 3]}, {("t", 0): [1, 2]})
    assert moving == {("t", 0): ThrottledMove(frozenset({1, 2}), frozenset({3}))}


def test_a_move_that_is_changed_on_its_way_still_comes_from_the_old_replicas():
    under_way = {("t", 0): Reassignment((3, 1, 2), (3,), (1,)), ("u", 0): Reassignment((1, 4), (4,), (1,))}
    moving = moves(under_way, {("t", 0): [4, 2]}, {("t", 0): [3, 1, 2]})
    assert moving["t", 0] == ThrottledMove(frozenset({1, 2}), frozenset({4}))
    assert moving["u", 0] == ThrottledMove(frozenset({1}), frozenset({4}))


def test_topics_name_the_replicas_that_are_throttled():
    moving = {
        ("t", 10): ThrottledMove(frozenset({1}), frozenset({2})),
        ("t", 2): ThrottledMove(frozenset({1, 3}), frozenset({2})),
        ("u", 0): ThrottledMove(frozenset({1}), frozenset()),
    }
    leaders, followers = "leader.replication.throttled.replicas", "follower.replication.throttled.replicas"
    assert topic_configs(moving) == {
        "t": {leaders: "10:1,2:1,2:3", followers: "10:2,2:2"},
        "u": {leaders: "0:1", followers: ""},
    }


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("1000", 1000),
        ("10MB/s", 10_000_000),
        ("1.5 mb", 1_500_000),
        ("512KiB/s", 524_288),
        ("2Gi", 2**31),
        ("1k", 1000),
        ("7B/s", 7),
    ],
)
def test_rates(text, rate):
    assert parse_rate(text) == rate


@pytest.mark.parametrize("text", ["", "fast", "-1", "0", "10 MB per second", "10TB"])
def test_what_is_no_rate(text):
    with pytest.raises(CommandRefused, match="is not a rate; write it like 10MB/s"):
        parse_rate(text)
