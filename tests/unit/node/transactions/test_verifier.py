"""Questions of this node's partitions to the coordinators of other brokers."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from strandline.api.groups.placement import partition_of
from strandline.errors import ErrorCode
from strandline.ids import TopicPartition
from strandline.node.transactions.verifier import TransactionVerifier
from strandline.transactions.metadata import ProducerIdAndEpoch
from strandline.wire import messages

from .other_brokers import AskedBroker, PlayedBrokers, image_of

NONE, ABORTABLE = ErrorCode.NONE, ErrorCode.TRANSACTION_ABORTABLE
A, B = ("a", 0), ("a", 1)
Codes = dict[TopicPartition, ErrorCode]


class Asking:
    def __init__(self) -> None:
        self.brokers = PlayedBrokers()
        self.image = image_of(3, __transaction_state=(2, 3))
        self.verifier = TransactionVerifier(
            1,
            lambda: self.image,
            None,  # type: ignore[arg-type]  # no coordinator is here
            self.brokers,
            lambda: 30.0,
            self.brokers.spawn,
        )

    def ask(self, *partitions: TopicPartition, tid: str = "t", verify_only: bool = True) -> asyncio.Task[Any]:
        question = self.verifier.verify(tid, ProducerIdAndEpoch(7, 0), frozenset(partitions), verify_only=verify_only)
        return asyncio.get_running_loop().create_task(question)


@pytest.fixture
async def asking() -> Any:
    asking = Asking()
    yield asking
    for task in tuple(asking.brokers.tasks):
        task.cancel()


def answer(asked: AskedBroker, codes: Codes) -> None:
    response = messages.response(24)
    reply = response()
    for transaction in asked.message.transactions:
        topics = [
            response.AddPartitionsToTxnTopicResult(
                name=topic.name,
                results_by_partition=[
                    response.AddPartitionsToTxnPartitionResult(
                        partition_index=index, partition_error_code=codes[topic.name, index]
                    )
                    for index in topic.partitions
                ],
            )
            for topic in transaction.topics
        ]
        result = response.AddPartitionsToTxnResult(transactional_id=transaction.transactional_id, topic_results=topics)
        reply.results_by_transaction.append(result)
    asked.answer.set_result(reply)


async def test_txn_v7_the_coordinator_is_asked_and_what_comes_meanwhile_is_gathered(asking: Asking) -> None:
    first = asking.ask(A)
    [asked] = await asking.brokers.next()
    assert asked.broker_id == (2, 3)[partition_of("t", 2)]
    [transaction] = asked.message.transactions
    assert (transaction.transactional_id, transaction.producer_id, transaction.verify_only) == ("t", 7, True)
    second, third = asking.ask(A), asking.ask(B)
    await asyncio.sleep(0)
    assert not asking.brokers.asked
    answer(asked, {A: NONE})
    assert await first == {A: NONE}
    [asked] = await asking.brokers.next()
    [transaction] = asked.message.transactions
    assert [list(topic.partitions) for topic in transaction.topics] == [[0, 1]]
    answer(asked, {A: NONE, B: ABORTABLE})
    assert (await second, await third) == ({A: NONE}, {B: ABORTABLE})


async def test_no_answer_is_a_network_error(asking: Asking) -> None:
    found = asking.ask(A, B)
    [asked] = await asking.brokers.next()
    asked.refuse()
    assert await found == {A: ErrorCode.NETWORK_EXCEPTION, B: ErrorCode.NETWORK_EXCEPTION}


async def test_an_error_of_the_whole_request_is_everyones(asking: Asking) -> None:
    found = asking.ask(A)
    [asked] = await asking.brokers.next()
    asked.answer.set_result(messages.response(24)(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED))
    assert await found == {A: ErrorCode.INVALID_TXN_STATE}, "producers would take the other for their own"


@pytest.mark.parametrize("leaders", [(), (9, 9)])
async def test_without_a_coordinator_it_is_not_available(asking: Asking, leaders: tuple[int, ...]) -> None:
    asking.image = image_of(3, **({"__transaction_state": leaders} if leaders else {}))
    assert await asking.ask(A) == {A: ErrorCode.COORDINATOR_NOT_AVAILABLE}
