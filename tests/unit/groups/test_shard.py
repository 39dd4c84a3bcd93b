# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

import pytest

from strandline.errors import ErrorCode, KafkaError
from strandline.groups.classic.group import ClassicGroup
from strandline.groups.consumer.group import ConsumerGroup
from strandline.groups.records import (
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    CoordinatorRecord,
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from strandline.groups.result import coordinator_error
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


@pytest.mark.parametrize(
    ("code", "is_told"),
    [
        (ErrorCode.NONE, ErrorCode.NONE),
        (ErrorCode.NOT_COORDINATOR, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
def test_what_is_wrong_with_the_log_is_told_as_what_is_wrong_with_the_coordinator(code, is_told):
    assert coordinator_error(code) is is_told
