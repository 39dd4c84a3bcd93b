"""Consuming without I/O: positions, errors, truncation."""

# mypy: allow-incomplete-defs, allow-untyped-defs, disable-error-code="arg-type"

from __future__ import annotations

import random
from typing import Any

import pytest

from strandline.client.config import ConsumerConfig
from strandline.client.core.backoff import Backoff
from strandline.client.core.consumer import ConsumerCore, FetchCall
from strandline.client.core.positions import EARLIEST, PositionState
from strandline.client.errors import LogTruncated, OffsetOutOfRange
from strandline.errors import ErrorCode, KafkaError
from strandline.wire import messages

from .broker import TOPIC_ID, cluster, metadata
from .test_completed_fetch import batch

Fetch = messages.response(1)


class Story:
    def __init__(self, **config) -> None:
        self.cluster = cluster({0: (1, 4), 1: (2, 4)})
        self.core = ConsumerCore(ConsumerConfig(**config), self.cluster, Backoff(100, 1000), random.Random(1))
        self.core.assign([("t", 0)])
        self.state = self.core.state("t", 0)
        self.now = 0.0

    def fetch(self) -> FetchCall:
        (call,) = self.core.plan(self.now)
        return call

    def answer(self, call: FetchCall, records: bytes = b"", code: int = 0, session: int = 7, **fields: Any) -> None:
        data = Fetch.PartitionData(partition_index=0, error_code=code, records=records, high_watermark=99, **fields)
        response = Fetch(
            session_id=session, responses=[Fetch.FetchableTopicResponse(topic_id=TOPIC_ID, partitions=[data])]
        )
        read = messages.decode_response(1, 17, messages.encode_response(1, 17, response))
        self.core.answered(call, read, self.now)

    def take(self) -> list[int]:
        return [record.offset for record in self.core.take(100)]


def asked(call: FetchCall) -> tuple[int, int, int]:
    (topic,) = messages.decode_request(1, 17, messages.encode_request(1, 17, call.message)).topics
    (p,) = topic.partitions
    return p.fetch_offset, p.current_leader_epoch, p.last_fetched_epoch


def test_records_are_fetched_ahead_and_taken_in_order():
    story = Story()
    story.core.state("t", 0).seek(1)
    call = story.fetch()
    assert asked(call) == (1, 4, -1)
    assert story.core.plan(0.0) == [], "one fetch per node"
    story.answer(call, batch(0, 3))
    following = story.fetch()
    assert asked(following) == (3, 4, 3)
    assert story.take() == [1, 2]
    assert story.state.position == 3
    assert story.state.high_watermark == 99
    story.answer(following)
    assert story.take() == []


def test_a_reply_to_an_earlier_seek_is_dropped():
    story = Story()
    story.state.seek(0)
    call = story.fetch()
    story.state.seek(50)
    story.answer(call, batch(0, 3))
    assert story.take() == []
    assert asked(story.fetch())[0] == 50


def test_a_partition_is_not_fetched_further_ahead_than_its_bound():
    story = Story(max_partition_fetch_bytes=100)
    story.state.seek(0)
    story.answer(story.fetch(), batch(0, 10))
    assert story.core.plan(0.0) == []
    story.take()
    assert asked(story.fetch())[0] == 10


def test_paused_partitions_are_neither_fetched_nor_shown():
    story = Story()
    story.state.seek(0)
    story.answer(story.fetch(), batch(0, 2))
    story.state.is_paused = True
    assert story.take() == []
    assert story.core.plan(0.0) == []
    story.state.is_paused = False
    assert story.take() == [0, 1]


def test_without_a_position_the_policy_says_where_to_begin():
    story = Story(auto_offset_reset="earliest")
    assert story.core.resetting(0.0) == [story.state]
    assert story.state.reset_timestamp == EARLIEST
    assert story.core.plan(0.0) == []
    story.state.found(5, 4)
    assert asked(story.fetch())[0] == 5
    with pytest.raises(OffsetOutOfRange, match="no position yet"):
        Story(auto_offset_reset="none").take()


def test_out_of_range_is_reset_or_raised():
    story = Story(auto_offset_reset="earliest")
    story.state.seek(1000)
    story.answer(story.fetch(), code=ErrorCode.OFFSET_OUT_OF_RANGE)
    assert story.state.state is PositionState.RESETTING
    story = Story(auto_offset_reset="none")
    story.state.seek(1000)
    story.answer(story.fetch(), code=ErrorCode.OFFSET_OUT_OF_RANGE)
    with pytest.raises(OffsetOutOfRange, match="no offset 1000"):
        story.take()


def test_a_moved_leader_is_looked_for():
    story = Story()
    story.state.seek(0)
    story.answer(story.fetch(), code=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert story.core.wants_topics == {"t"}
    assert story.core.plan(0.0) == [], "it backs off"
    story.cluster.update(metadata({0: (2, 5)}))
    assert story.core.plan(1.0)[0].node_id == 2


def test_what_cannot_be_helped_is_raised():
    story = Story()
    story.state.seek(0)
    story.answer(story.fetch(), code=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    with pytest.raises(KafkaError, match="TOPIC_AUTHORIZATION_FAILED: fetching t-0 from offset 0"):
        story.take()


def consumed_three(**config) -> Story:
    story = Story(**config)
    story.state.seek(0)
    story.answer(story.fetch(), batch(0, 3))
    assert story.take() == [0, 1, 2]
    return story


def test_a_new_leader_epoch_is_validated_first():
    story = consumed_three()
    story.cluster.update(metadata({0: (2, 5)}))
    assert story.core.plan(0.0) == []
    assert story.core.validating(0.0) == [story.state]
    story.core.validated(story.state, 3, 3)
    assert asked(story.fetch()) == (3, 5, 3)


def test_truncation_is_an_error_without_a_policy_and_stays_one_until_a_seek():
    story = consumed_three(auto_offset_reset="none")
    story.cluster.update(metadata({0: (2, 5)}))
    story.core.plan(0.0)
    for _ in range(2):
        story.core.validated(story.state, 2, 1)
        with pytest.raises(LogTruncated, match="truncated at offset 1, below the position 3"):
            story.take()
        assert story.core.validating(0.0) == [story.state]
    story.state.seek(1)
    assert asked(story.fetch())[0] == 1


def test_truncation_goes_back_to_where_the_logs_part_with_a_policy():
    story = consumed_three(auto_offset_reset="latest")
    Diverging = Fetch.EpochEndOffset
    story.answer(story.fetch(), diverging_epoch=Diverging(epoch=2, end_offset=1))
    assert story.state.position == 1
    assert asked(story.fetch())[0] == 1


def test_a_lost_fetch_is_asked_again_in_full():
    story = Story()
    story.state.seek(0)
    story.answer(story.fetch(), batch(0, 1))
    call = story.fetch()
    assert call.message.session_epoch == 1
    story.core.lost(call, 0.0)
    again = story.core.plan(1.0)[0]
    assert (again.message.session_id, again.message.session_epoch) == (7, 0)
    assert asked(again)[0] == 1


def test_a_batch_that_does_not_fit_is_named():
    story = Story()
    story.state.seek(0)
    story.answer(story.fetch(), batch(0, 10)[:70])
    with pytest.raises(KafkaError, match="raise max_partition_fetch_bytes"):
        story.take()


def test_an_old_leader_that_answers_after_the_new_one_shows_nothing_twice():
    story = Story()
    story.state.seek(0)
    old = story.fetch()
    story.cluster.update(metadata({0: (2, 5), 1: (2, 4)}))
    new = story.fetch()
    assert (old.node_id, new.node_id) == (1, 2)
    story.answer(new, batch(0, 3))
    story.answer(old, batch(0, 3))
    assert story.take() == [0, 1, 2]


def test_a_topic_that_was_made_anew_is_asked_for_by_its_new_id_and_not_at_once():
    story = Story()
    story.state.seek(0)
    story.answer(story.fetch())
    call = story.fetch()
    story.cluster.update(metadata({0: (1, 0), 1: (2, 0)}, "t", topic_id=b"n" * 16))
    story.answer(call, code=ErrorCode.UNKNOWN_TOPIC_ID)  # of the old id, which the session still has
    assert story.core.wants_topics == {"t"}
    assert story.core.plan(story.now) == []
    story.now += 2
    again = story.fetch()
    assert again.message.session_epoch == 0
    assert [topic.topic_id for topic in again.message.topics] == [b"n" * 16]
