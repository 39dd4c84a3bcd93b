# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

from typing import Any

from strandline.coordinator.record import CoordinatorRecord
from strandline.errors import ErrorCode
from strandline.groups.caller import Caller
from strandline.groups.offsets.offset_commit import refused
from strandline.groups.records import GroupMetadataKey, GroupMetadataValue, MemberMetadata
from strandline.wire import messages
from tests.unit.groups.shell import Shell

OFFSET_COMMIT = 8
SESSION_MS = 45_000


def commit_of(member_id: str, generation: int, *topics: str) -> Any:
    request = messages.request(OFFSET_COMMIT)
    partition = request.OffsetCommitRequestPartition(partition_index=0, committed_offset=5)
    return request(
        group_id="g",
        member_id=member_id,
        generation_id_or_member_epoch=generation,
        topics=[request.OffsetCommitRequestTopic(name=topic, partitions=[partition]) for topic in topics],
    )


def a_group_of_one(shell: Shell) -> None:
    member = MemberMetadata(
        member_id="m",
        client_id="c",
        client_host="/h",
        rebalance_timeout=60_000,
        session_timeout=SESSION_MS,
        subscription=b"",
        assignment=b"",
    )
    value = GroupMetadataValue(protocol_type="x", generation=3, protocol="p", leader="m", members=(member,))
    shell.write([CoordinatorRecord(GroupMetadataKey(group="g"), value)])
    shell.reload()


def fire(shell: Shell) -> None:
    while (callback := shell.shard.timers.take(shell.at.now)) is not None:
        shell.carry_out(callback(shell.at))


def test_a_member_that_commits_is_alive():
    for commits in (False, True):
        shell = Shell()
        shell.dependencies.create("t", 1)
        a_group_of_one(shell)
        shell.elapse(SESSION_MS - 1)
        fire(shell)
        if commits:
            response = shell.ask(shell.shard.commit_offsets, commit_of("m", 3, "t"), version=9)
            assert response.topics[0].partitions[0].error_code == ErrorCode.NONE
        shell.elapse(SESSION_MS - 1)
        fire(shell)
        assert shell.shard.groups["g"].is_empty() is not commits


def test_nothing_is_said_before_it_is_committed():
    shell = Shell()
    shell.dependencies.create("t", 1)
    answers: list[Any] = []
    result = shell.shard.commit_offsets(commit_of("", -1, "t"), Caller("c", "/h", 9), shell.at, answers.append)
    assert result is not None
    assert answers == []
    assert shell.shard.groups == {}
    shell.carry_out(result)
    assert len(answers) == 1
    assert list(shell.shard.groups) == ["g"]


def test_what_is_refused_is_refused_for_every_partition():
    response = refused(commit_of("m", 3, "t", "u"), ErrorCode.ILLEGAL_GENERATION)
    assert [
        (topic.name, partition.partition_index, partition.error_code)
        for topic in response.topics
        for partition in topic.partitions
    ] == [
        ("t", 0, ErrorCode.ILLEGAL_GENERATION),
        ("u", 0, ErrorCode.ILLEGAL_GENERATION),
    ]
