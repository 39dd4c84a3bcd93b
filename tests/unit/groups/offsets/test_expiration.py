# mypy: allow-incomplete-defs, allow-untyped-defs, disable-error-code="attr-defined"

from __future__ import annotations

import pytest

from strandline.coordinator.record import CoordinatorRecord
from strandline.groups.group import OffsetExpiration
from strandline.groups.offsets import expiration
from strandline.groups.offsets.expiration import LOST_AFTER_MS, TOMBSTONES_BYTES_MAX, TOMBSTONES_MAX, is_expired
from strandline.groups.records import OffsetCommitKey, OffsetCommitValue
from strandline.ids import ZERO_UUID, Uuid
from tests.unit.groups.shell import Shell

RETENTION_MS = 100
FROM_COMMIT, FROM_EMPTY_AT_500 = OffsetExpiration(since_ms=None), OffsetExpiration(since_ms=500)


@pytest.mark.parametrize(
    ("committed_ms", "expire_ms", "expiration", "now_ms", "expired"),
    [
        (1000, -1, FROM_COMMIT, 1099, False),
        (1000, -1, FROM_COMMIT, 1100, True),
        (1000, -1, FROM_COMMIT, 900, False),  # a clock that went back
        (1000, -1, FROM_EMPTY_AT_500, 599, False),
        (1000, -1, FROM_EMPTY_AT_500, 600, True),  # committed since, but nobody came back
        (100, -1, FROM_EMPTY_AT_500, 599, False),  # committed long ago, but there were members until just now
        (1000, 1010, FROM_COMMIT, 1009, False),
        (1000, 1010, FROM_COMMIT, 1010, True),
        (1000, 5000, FROM_COMMIT, 4999, False),
        (1000, 5000, FROM_EMPTY_AT_500, 4999, False),
        (1000, 5000, FROM_EMPTY_AT_500, 5000, True),
    ],
)
def test_when_an_offset_expires(committed_ms, expire_ms, expiration, now_ms, expired):
    value = OffsetCommitValue(offset=1, metadata="", commit_timestamp=committed_ms, expire_timestamp=expire_ms)
    assert is_expired(value, expiration, now_ms, RETENTION_MS) is expired


def commit(shell: Shell, count: int, *, topic_id: Uuid = ZERO_UUID, group: str = "g", topic: str = "t") -> None:
    value = OffsetCommitValue(offset=1, metadata="", commit_timestamp=shell.at.wall_ms, topic_id=topic_id)
    shell.write(
        [
            CoordinatorRecord(OffsetCommitKey(group=group, topic=topic, partition=partition), value)
            for partition in range(count)
        ]
    )
    shell.batches.clear()


def test_what_one_batch_can_not_hold_follows_when_it_is_committed():
    shell = Shell(offsets_retention_minutes="1")
    commit(shell, 2 * TOMBSTONES_MAX + 5)
    shell.elapse(60_000)
    shell.carry_out(shell.shard.expire_offsets(shell.at))
    assert shell.batches == [TOMBSTONES_MAX, TOMBSTONES_MAX, 6]
    assert shell.shard.offsets.count == 0
    assert shell.shard.groups == {}


def test_long_names_make_batches_of_fewer():
    shell = Shell(offsets_retention_minutes="1")
    commit(shell, 50, group="g" * 20_000)
    shell.elapse(60_000)
    shell.carry_out(shell.shard.expire_offsets(shell.at))
    assert all(count * 20_000 <= TOMBSTONES_BYTES_MAX + 20_000 for count in shell.batches)
    assert shell.shard.groups == {}


def test_when_a_batch_can_not_be_written_the_rest_is_left_for_the_next_time():
    shell = Shell(offsets_retention_minutes="1")
    commit(shell, 2 * TOMBSTONES_MAX)
    shell.elapse(60_000)
    result = shell.shard.expire_offsets(shell.at)
    assert result is not None
    shell.write(result.records)
    assert result.done(expiration.ErrorCode.NOT_COORDINATOR, shell.at) is None
    assert shell.shard.offsets.count == TOMBSTONES_MAX


def test_offsets_of_a_deleted_topic_go_but_not_those_of_its_successor():
    shell = Shell()
    old = shell.dependencies.create("t", 2)
    shell.dependencies.delete("t")
    new = shell.dependencies.create("t", 2)
    commit(shell, 1, topic_id=old.topic_id, group="of old")
    commit(shell, 1, topic_id=new.topic_id, group="of new")
    commit(shell, 1, group="of before there were ids")
    commit(shell, 1, topic_id=old.topic_id, group="of another name", topic="u")
    result = shell.shard.metadata_changed(
        shell.dependencies.image, frozenset({("t", old.topic_id), ("t", Uuid(b"twice in one go!"))}), shell.at
    )
    shell.carry_out(result)
    assert sorted(shell.shard.offsets.groups()) == ["of another name", "of new"]
    assert shell.shard.metadata_changed(shell.dependencies.image, frozenset(), shell.at) is None


def test_what_was_committed_for_topics_that_are_no_more_goes_once_it_is_sure_that_they_are():
    shell = Shell()
    there = shell.dependencies.create("t", 1)
    commit(shell, 1, topic_id=there.topic_id, group="of what is there")
    commit(shell, 1, topic_id=Uuid(b"once was a topic"), group="of what was")
    commit(shell, 1, group="of before there were ids", topic="nowhere")
    shell.reload()
    shell.elapse(LOST_AFTER_MS - 1)
    shell.carry_out(shell.shard.expire_offsets(shell.at))
    assert "of what was" in shell.shard.groups, "our image may be older than the commit"
    shell.elapse(1)
    shell.carry_out(shell.shard.expire_offsets(shell.at))
    assert sorted(shell.shard.groups) == ["of before there were ids", "of what is there"]
