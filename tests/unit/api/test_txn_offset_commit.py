"""TxnOffsetCommit: its question to the transaction's coordinator, then the write, and what old producers get."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from strandline.api import txn_offset_commit
from strandline.api.requests.pending_reply import PendingReply
from strandline.api.requests.slices import settled
from strandline.errors import ErrorCode
from strandline.groups.records import GroupMetadataKey, GroupMetadataValue
from strandline.ids import TopicPartition
from strandline.transactions.metadata import ProducerIdAndEpoch
from strandline.wire import messages

from .conftest import TestBroker
from .group_side import OFFSETS, coordinating

KEY = txn_offset_commit.KEY


class Transactions:
    """The coordinator of a transaction, and what it was asked."""

    def __init__(self, code: ErrorCode = ErrorCode.NONE) -> None:
        self.code = code
        self.asked: list[tuple[str, ProducerIdAndEpoch, bool]] = []
        self.answers = asyncio.Event()
        self.answers.set()

    async def verify(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        partitions: frozenset[TopicPartition],
        *,
        verify_only: bool,
    ) -> Mapping[TopicPartition, ErrorCode]:
        assert partitions == {(OFFSETS, 0)}
        self.asked.append((transactional_id, producer, verify_only))
        await self.answers.wait()
        return dict.fromkeys(partitions, self.code)


def request_of(offset: int = 5, topic: str = "t", count: int = 1, **fields: Any) -> Any:
    Request = messages.request(KEY)
    partitions = [Request.TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=offset)] * count
    given = {"transactional_id": "tid", "group_id": "g", "producer_id": 7, "producer_epoch": 3, **fields}
    return Request(topics=[Request.TxnOffsetCommitRequestTopic(name=topic, partitions=partitions)], **given)


async def commit(broker: TestBroker, transactions: Transactions, version: int = 5, **fields: Any) -> ErrorCode:
    """The code of the first partition, by way of the bytes in this version."""
    sent = messages.encode_request(KEY, version, request_of(**fields))
    request: Any = messages.decode_request(KEY, version, sent)
    outcome: Any = txn_offset_commit.commit(request, broker.context(KEY, version), transactions.verify)
    outcome = await settled(outcome)
    body = outcome if isinstance(outcome, bytes) else messages.encode_response(KEY, version, outcome)
    reply = messages.decode_response(KEY, version, body)
    return ErrorCode(reply.topics[0].partitions[0].error_code)


def offset_in(broker: TestBroker) -> int | None:
    [shard] = broker.groups.shards()
    found = shard.offsets.get("g", "t", 0)
    return None if found is None else found.offset


def end(broker: TestBroker, epoch: int = 3, *, commit: bool = True) -> None:
    broker.groups.write_marker(0, (7, epoch), commit, 0, 0, lambda code: None)


@pytest.mark.parametrize("version", txn_offset_commit.VERSIONS)
async def test_txn_v1_every_version_asks_once_in_a_transaction(broker: TestBroker, version: int) -> None:
    await coordinating(broker)
    transactions = Transactions()
    assert await commit(broker, transactions, version) is ErrorCode.NONE
    assert await commit(broker, transactions, version, offset=6) is ErrorCode.NONE
    assert transactions.asked == [("tid", (7, 3), version < 5)]
    assert offset_in(broker) is None
    end(broker)
    assert offset_in(broker) == 6
    assert await commit(broker, transactions, version) is ErrorCode.NONE
    assert len(transactions.asked) == 2


async def test_txn_t42_the_group_is_looked_at_when_the_answer_is_there(broker: TestBroker) -> None:
    await coordinating(broker)
    [shard] = broker.groups.shards()
    transactions = Transactions()
    transactions.answers.clear()
    asking = asyncio.get_running_loop().create_task(commit(broker, transactions, member_id="m", generation_id=3))
    await asyncio.sleep(0)
    assert transactions.asked
    value = GroupMetadataValue(protocol_type="x", generation=4, protocol=None, leader=None, members=())
    shard.replay((GroupMetadataKey(group="g"), value), 0)  # type: ignore[arg-type]  # a pair will do
    transactions.answers.set()
    assert await asking is ErrorCode.UNKNOWN_MEMBER_ID
    assert not shard.offsets.has_open("g")


async def test_txn_v3_a_marker_while_the_coordinator_is_asked(broker: TestBroker) -> None:
    await coordinating(broker)
    transactions = Transactions()
    transactions.answers.clear()
    asking = asyncio.get_running_loop().create_task(commit(broker, transactions, version=4))
    await asyncio.sleep(0)
    end(broker, commit=False)
    transactions.answers.set()
    assert await asking is ErrorCode.INVALID_TXN_STATE


@pytest.mark.parametrize(
    ("code", "version", "expected"),
    [
        (ErrorCode.TRANSACTION_ABORTABLE, 4, ErrorCode.TRANSACTION_ABORTABLE),
        (ErrorCode.TRANSACTION_ABORTABLE, 3, ErrorCode.INVALID_TXN_STATE),
        (ErrorCode.PRODUCER_FENCED, 5, ErrorCode.INVALID_PRODUCER_EPOCH),
        (ErrorCode.CONCURRENT_TRANSACTIONS, 5, ErrorCode.CONCURRENT_TRANSACTIONS),
        (ErrorCode.NETWORK_EXCEPTION, 2, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
        (ErrorCode.NETWORK_EXCEPTION, 1, ErrorCode.COORDINATOR_NOT_AVAILABLE),
    ],
)
async def test_what_the_coordinator_refuses(
    broker: TestBroker, code: ErrorCode, version: int, expected: ErrorCode
) -> None:
    await coordinating(broker)
    assert await commit(broker, Transactions(code), version) is expected
    [shard] = broker.groups.shards()
    assert not shard.groups


async def test_txn_t41_a_producer_of_an_old_client_never_gets_load_in_progress(broker: TestBroker) -> None:
    broker.create("t")
    transactions = Transactions()
    assert await commit(broker, transactions) is ErrorCode.NOT_COORDINATOR
    broker.create(OFFSETS, (1,))
    assert await commit(broker, transactions, version=2) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert await commit(broker, transactions, version=1) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert transactions.asked == []


async def test_an_old_epoch_is_refused_before_the_coordinator_is_asked(broker: TestBroker) -> None:
    await coordinating(broker)
    transactions = Transactions()
    assert await commit(broker, transactions) is ErrorCode.NONE
    assert await commit(broker, transactions, producer_epoch=2) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert len(transactions.asked) == 1


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"topic": "nowhere"}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ({"group_id": ""}, ErrorCode.INVALID_GROUP_ID),
        ({"producer_id": -1}, ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        ({"producer_epoch": -1}, ErrorCode.INVALID_PRODUCER_EPOCH),
        ({"count": 10_001}, ErrorCode.INVALID_COMMIT_OFFSET_SIZE),
    ],
)
async def test_what_cannot_be_written_is_asked_about_of_no_coordinator(
    broker: TestBroker, fields: dict[str, Any], expected: ErrorCode
) -> None:
    await coordinating(broker)
    transactions = Transactions()
    assert await commit(broker, transactions, **fields) is expected
    assert transactions.asked == []
    assert len(broker.parts.hosted.by_name[OFFSETS, 0].log.guards) == 0


@pytest.mark.parametrize(("version", "asks"), [(4, False), (5, True)])
async def test_txn_v1_verification_can_be_turned_off_and_additions_cannot(
    make_broker: Any, version: int, asks: bool
) -> None:
    broker = make_broker(transaction_partition_verification_enable="false")
    await coordinating(broker)
    transactions = Transactions()
    assert await commit(broker, transactions, version) is ErrorCode.NONE
    assert bool(transactions.asked) is asks


async def test_one_that_asks_holds_up_its_connection_and_one_that_waits_for_replicas_does_not(
    broker: TestBroker,
) -> None:
    await coordinating(broker)
    asking: Any = txn_offset_commit.commit(request_of(), broker.context(KEY, 5), Transactions().verify)
    assert not isinstance(asking, PendingReply)
    later = await asking
    assert isinstance(later, PendingReply)
    assert later.may_be_overtaken
    later.cancel()
