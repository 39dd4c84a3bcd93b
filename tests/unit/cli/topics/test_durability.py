# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

import pytest

from strandline.cli.topics.durability import judge


@pytest.mark.parametrize(
    ("replication_factor", "min_insync", "unclean", "can_lose", "rule"),
    [
        (3, 2, False, False, "survives the loss of 1 broker"),
        (5, 3, False, False, "survives the loss of 2 brokers"),
        (1, 1, False, True, "ReplicationFactor 1"),
        (3, 1, False, True, "min.insync.replicas=1"),
        (3, 2, True, True, "unclean.leader.election.enable=true"),
        (2, 2, False, False, "with one broker down acks=all is refused"),
        (3, 3, False, False, "with one broker down acks=all is refused"),
        # More than there are replicas can't be in sync: all of them is meant.
        (1, 2, False, True, "ReplicationFactor 1"),
        (2, 3, False, False, "survives the loss of 1 broker, but with one broker down acks=all is refused"),
        (2, 1, False, True, "min.insync.replicas=1"),
    ],
)
def test_the_rule_behind_each_verdict(replication_factor, min_insync, unclean, can_lose, rule):
    verdict = judge(replication_factor, min_insync, unclean)
    assert verdict.can_lose is can_lose
    assert rule in verdict.rule


def test_only_the_recipe_is_ok():
    assert judge(3, 2, False).level == "ok"
    assert judge(2, 2, False).level == "warn"
    assert judge(3, 1, False).level == "warn"


def test_what_can_be_better_says_how():
    for settings in [(1, 1, False), (3, 1, False), (2, 1, False), (3, 2, True), (2, 2, False), (3, 3, False)]:
        assert judge(*settings).advice
    assert not judge(3, 2, False).advice
