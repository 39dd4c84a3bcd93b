from __future__ import annotations

from strandline.histories.exchanges import LATEST, LIST_OFFSETS, AskedPosition, BrokerExchange
from strandline.histories.judges.replication.end_does_not_fall import EndDoesNotFall
from strandline.wire import messages

from .stage import Stage, broken, stage

VERSION = 9


def answer_end(story: Stage, node_id: int, end: int, *, code: int = 0, timestamp: int = LATEST) -> None:
    Response = messages.response(LIST_OFFSETS)
    answer = Response.ListOffsetsPartitionResponse(partition_index=0, offset=end, error_code=code)
    response = Response(topics=[Response.ListOffsetsTopicResponse(name="t", partitions=[answer])])
    exchange = BrokerExchange(LIST_OFFSETS, VERSION, 0.0)
    exchange.asked = {("t", 0): AskedPosition(-1, timestamp=timestamp)}
    exchange.response = bytes(5) + messages.encode_response(LIST_OFFSETS, VERSION, response)
    story.answer(node_id, exchange)


def two_epochs() -> Stage:
    """Broker 1 has answered the end 5 in epoch 0; broker 2 leads in epoch 1."""
    story = stage(EndDoesNotFall)
    answer_end(story, 1, 5)
    story.publish(leader=2, leader_epoch=1, partition_epoch=1)
    story.lead(2, 1)
    return story


def test_a_new_leader_tells_no_less() -> None:
    story = two_epochs()
    answer_end(story, 2, 5)
    with broken(EndDoesNotFall):
        answer_end(story, 2, 4)


def test_it_may_say_that_it_does_not_know_or_tell_where_the_log_begins() -> None:
    story = two_epochs()
    answer_end(story, 2, -1, code=78)
    answer_end(story, 2, 0, timestamp=-2)


def test_one_that_was_deposed_may_tell_what_it_knew() -> None:
    story = two_epochs()
    answer_end(story, 2, 9)
    answer_end(story, 1, 5)
