from __future__ import annotations

from collections import deque

import pytest

from strandline.histories.exchanges import FETCH, PRODUCE, BrokerExchange
from strandline.histories.judges.replication.nothing_written_below_min_isr import NothingWrittenBelowMinIsr
from strandline.wire import messages
from strandline.wire.headers import request_header

from .stage import VERSION as FETCH_VERSION
from .stage import FakeLog, Stage, broken, stage

VERSION = 9


def produce(story: Stage, value: str, acks: int) -> None:
    log = FakeLog()
    log.append(value)
    Produce = messages.request(PRODUCE)
    partition = Produce.PartitionProduceData(index=0, records=bytes(log.inode.data))
    message = Produce(
        acks=acks, timeout_ms=1, topic_data=[Produce.TopicProduceData(name="t", partition_data=[partition])]
    )
    frame = request_header(PRODUCE, VERSION, 5, "c") + messages.encode_request(PRODUCE, VERSION, message)
    story.answer(1, BrokerExchange(FETCH, FETCH_VERSION, 0.0, deque([frame])))


def alone(*in_sync: int) -> Stage:
    story = stage(NothingWrittenBelowMinIsr)
    story.publish(isr=in_sync, partition_epoch=1)
    story.lead(1, 0)
    return story


def test_a_leader_writes_for_all_with_enough_in_sync() -> None:
    story = alone(1, 2)
    produce(story, "a", -1)
    story.append(1, "a")


def test_a_leader_writes_nothing_for_all_with_fewer() -> None:
    story = alone(1)
    produce(story, "a", -1)
    with broken(NothingWrittenBelowMinIsr):
        story.append(1, "a")


@pytest.mark.parametrize("acks", [0, 1])
def test_who_does_not_ask_for_all_may_be_served(acks: int) -> None:
    story = alone(1)
    produce(story, "a", acks)
    story.append(1, "a")
