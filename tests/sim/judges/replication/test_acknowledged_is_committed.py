from __future__ import annotations

import pytest

from strandline.histories.exchanges import PRODUCE, BrokerExchange
from strandline.histories.judges.replication.acknowledged_is_committed import AcknowledgedIsCommitted
from strandline.wire import messages

from .stage import KEY, Stage, broken, committed_by_all, stage

VERSION = 9


def two_committed() -> Stage:
    story = stage(AcknowledgedIsCommitted)
    committed_by_all(story, "a", "b")
    story.observed.committed[KEY].end_offset = 2  # as LogMatching keeps it
    return story


def acknowledge(story: Stage, offset: int, *, acks: int = -1, code: int = 0) -> None:
    """Broker 1 answers a Produce."""
    Response = messages.response(PRODUCE)
    answer = Response.PartitionProduceResponse(index=0, base_offset=offset, error_code=code)
    response = Response(responses=[Response.TopicProduceResponse(name="t", partition_responses=[answer])])
    exchange = BrokerExchange(PRODUCE, VERSION, 0.0)
    exchange.acks = acks
    exchange.response = bytes(5) + messages.encode_response(PRODUCE, VERSION, response)
    story.answer(1, exchange)


def test_what_is_committed_may_be_acknowledged() -> None:
    story = two_committed()
    acknowledge(story, 1)


@pytest.mark.parametrize("sound", [{"acks": 1}, {"code": 7}])
def test_so_may_what_only_the_leader_promised_and_nobody_else_is_told_of(sound: dict[str, int]) -> None:
    story = stage(AcknowledgedIsCommitted)
    story.append(1, "a")
    acknowledge(story, 0, **sound)


def test_what_the_others_lack_may_not() -> None:
    story = two_committed()
    story.append(1, "c")
    with broken(AcknowledgedIsCommitted):
        acknowledge(story, 2)
