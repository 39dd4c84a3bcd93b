"""What a TxnOffsetCommit comes to: records in a producer's transaction, and an answer when they are committed."""

from __future__ import annotations

from typing import Any

from strandline.coordinator.record import CoordinatorRecord
from strandline.errors import ErrorCode
from strandline.groups.caller import Caller
from strandline.groups.offsets.txn_offset_commit import names_partitions, refused
from strandline.groups.records import GroupMetadataKey, GroupMetadataValue, MemberMetadata
from strandline.log.verification_guards import VerificationGuard
from strandline.wire import messages
from tests.unit.groups.shell import Shell

SESSION_MS = 45_000
VERSION = 5


def commit_of(*topics: str, **fields: Any) -> Any:
    request = messages.request(28)
    partition = request.TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=5)
    return request(
        transactional_id="tid",
        group_id="g",
        producer_id=7,
        producer_epoch=3,
        topics=[request.TxnOffsetCommitRequestTopic(name=topic, partitions=[partition]) for topic in topics],
        **fields,
    )


def test_txn_t42_the_records_name_their_producer_and_carry_the_guard_and_the_answer_waits_for_them() -> None:
    shell = Shell()
    shell.dependencies.create("t", 1)
    answers: list[Any] = []
    guard = VerificationGuard(7, 3, "t", -1, False, 0)
    caller = Caller("c", "/h", VERSION)
    result = shell.shard.commit_txn_offsets(commit_of("t"), guard, caller, shell.at, answers.append)
    assert result is not None
    assert (result.producer, result.guard) == ((7, 3), guard)
    assert answers == []
    assert shell.shard.groups == {}
    shell.carry_out(result)
    assert [topic.partitions[0].error_code for topic in answers[0].topics] == [ErrorCode.NONE]
    assert list(shell.shard.groups) == ["g"]


def test_a_commit_in_a_transaction_is_no_heartbeat() -> None:
    shell = Shell()
    shell.dependencies.create("t", 1)
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
    shell.elapse(SESSION_MS - 1)
    request = commit_of("t", member_id="m", generation_id=3)
    response = shell.ask(lambda request, *rest: shell.shard.commit_txn_offsets(request, None, *rest), request, VERSION)
    assert response.topics[0].partitions[0].error_code == ErrorCode.NONE
    shell.elapse(1)
    while (callback := shell.shard.timers.take(shell.at.now)) is not None:
        shell.carry_out(callback(shell.at))
    assert shell.shard.groups["g"].is_empty()


def test_what_is_refused_is_refused_for_every_partition() -> None:
    response = refused(commit_of("t", "u"), ErrorCode.ILLEGAL_GENERATION)
    assert [
        (topic.name, partition.partition_index, partition.error_code)
        for topic in response.topics
        for partition in topic.partitions
    ] == [("t", 0, ErrorCode.ILLEGAL_GENERATION), ("u", 0, ErrorCode.ILLEGAL_GENERATION)]


def test_whether_anything_that_is_named_exists() -> None:
    shell = Shell()
    shell.dependencies.create("t", 1)
    image = shell.dependencies.image
    assert [names_partitions(commit_of(*topics), image) for topics in ((), ("u",), ("u", "t"))] == [False, False, True]
