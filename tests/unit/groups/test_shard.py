# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

import pytest

from strandline.coordinator.record import CoordinatorRecord
from strandline.errors import ErrorCode, KafkaError
from strandline.groups.classic import rebalance
from strandline.groups.classic.group import ClassicGroup
from strandline.groups.consumer.group import ConsumerGroup
from strandline.groups.records import (
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from strandline.groups.shard import GroupShard
from tests.unit.groups.classic.transcript import Stage
from tests.unit.groups.shell import Shell

OFFSET = CoordinatorRecord(
    OffsetCommitKey(group="g", topic="t", partition=0), OffsetCommitValue(offset=5, metadata="", commit_timestamp=1)
)
CLASSIC = CoordinatorRecord(
    GroupMetadataKey(group="g"),
    GroupMetadataValue(protocol_type="consumer", generation=3, protocol=None, leader=None, members=()),
)
CONSUMER = CoordinatorRecord(ConsumerGroupMetadataKey(group_id="g"), ConsumerGroupMetadataValue(epoch=4))


def gone(record: CoordinatorRecord) -> CoordinatorRecord:
    return CoordinatorRecord(record.key, None)


def test_a_record_makes_the_group_that_it_speaks_of():
    shell = Shell()
    shell.write([CLASSIC])
    assert isinstance(shell.shard.classic_group("g"), ClassicGroup)
    with pytest.raises(KafkaError) as refused:
        shell.shard.consumer_group("g")
    assert refused.value.code is ErrorCode.GROUP_ID_NOT_FOUND
    shell.write([gone(CLASSIC), CONSUMER])
    assert isinstance(shell.shard.consumer_group("g"), ConsumerGroup)
    with pytest.raises(KafkaError) as refused:
        shell.shard.classic_group("g")
    assert refused.value.code is ErrorCode.GROUP_ID_NOT_FOUND
    shell.write([gone(CONSUMER)])
    assert shell.shard.groups == {}
    assert shell.shard.classic_group("g") is None
    assert shell.shard.consumer_group("g") is None


def test_a_group_that_has_offsets_exists_whatever_becomes_of_its_protocol():
    shell = Shell()
    shell.write([CLASSIC, OFFSET])
    for _ in range(2):
        shell.write([gone(CLASSIC)])
        assert shell.shard.groups["g"].protocol_type == ""
        shell.write([CONSUMER])
        assert shell.shard.groups["g"].group_type == "consumer"
        shell.write([gone(CONSUMER)])
        assert shell.shard.groups["g"].group_type == "classic"
        shell.write([CLASSIC])
        shell.reload()
    shell.write([gone(OFFSET), gone(CLASSIC)])
    assert shell.shard.groups == {}


def test_tombstones_of_what_is_not_there_change_nothing():
    shell = Shell()
    shell.write([gone(OFFSET), gone(CLASSIC), gone(CONSUMER)])
    shell.write([CoordinatorRecord(ConsumerGroupTargetAssignmentMetadataKey(group_id="g"), None)])
    assert shell.shard.groups == {}


def test_nothing_is_due_once_it_is_unloaded():
    shell = Shell()
    shell.shard.timers.schedule(("any",), 1.0, lambda at: None)
    shell.shard.unload()
    assert shell.shard.timers.next_s is None


def shard_in(state: str) -> GroupShard:
    """Of the group g, which has an offset and two members, and is in the midst of a rebalance."""
    stage = Stage()
    for line in ("join a v=3", "join b v=3", "tick 6"):
        stage.perform(line)
    if state == "joining":
        stage.perform("sync a a=0 b=1")
        stage.perform("join a")
    stage.driver.shard.replay(OFFSET, 0)
    return stage.driver.shard


@pytest.mark.parametrize(
    ("state", "break_it", "what"),
    [
        ("syncing", lambda shard: shard.groups.update(h=shard.groups["g"]), "g is kept as h"),
        ("syncing", lambda shard: shard.groups["g"].die(), "is still there"),
        ("syncing", lambda shard: shard.groups.clear(), "group g has offsets, and does not exist"),
        ("syncing", lambda shard: setattr(shard.offsets, "count", 0), "1 offsets"),
        ("syncing", lambda shard: shard.groups["g"].pending_join.add("c"), "c has no session timer"),
        ("syncing", lambda shard: shard.timers.cancel(rebalance.sync_key("g")), "no timer ends the syncs"),
        ("joining", lambda shard: shard.timers.cancel(rebalance.join_key("g")), "no timer ends the joins"),
        (
            "joining",
            lambda shard: shard.timers.cancel(rebalance.session_key("g", shard.groups["g"].leader_id)),
            "has no session timer",
        ),
    ],
)
def test_a_shard_that_is_not_as_it_should_be(state, break_it, what):
    shard = shard_in(state)
    shard.check_invariants()
    break_it(shard)
    with pytest.raises(AssertionError, match=what):
        shard.check_invariants()
