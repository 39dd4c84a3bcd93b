"""Fetching a range through every kind of trouble: each offset once and in order, or a clear reason why not."""

# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

import random
from typing import Any

import pytest

from strandline.client.config import ConsumerConfig
from strandline.client.core.backoff import Backoff
from strandline.client.core.connection import RawReply
from strandline.client.core.range_fetch import FIRST_FETCH_BYTES, SPARE_BYTES, FetchedBytes, RangeCall, RangeFetch
from strandline.client.errors import ConnectionLost, LogTruncated, OffsetOutOfRange, TimedOut, TopicRecreated
from strandline.errors import ErrorCode, KafkaError
from strandline.ids import ZERO_UUID, Uuid
from strandline.records.batch import BatchBuilder
from strandline.records.errors import CorruptRecord
from strandline.wire import messages

from .broker import TOPIC_ID, cluster, metadata

VERSION = 17
OTHER_ID = Uuid(b"another-topic-id")


def batch(base_offset: int, count: int = 10, epoch: int = 0, value: bytes = b"v") -> bytes:
    builder = BatchBuilder()
    for _ in range(count):
        builder.append(None, value, (), 7)
    return bytes(builder.build(base_offset=base_offset, leader_epoch=epoch))


class Story:
    """A range, its clock, and what the leader says."""

    def __init__(self, start: int = 0, end: int = 100, *, topic_id: Uuid | None = None, **config: Any) -> None:
        self.cluster = cluster({0: (1, 0)})
        self.now = 0.0
        self.range = RangeFetch(
            self.cluster,
            "t",
            0,
            start,
            end,
            ConsumerConfig(**config),
            topic_id=topic_id,
            timeout_s=30,
            frame_bytes_max=1 << 24,
            backoff=Backoff(100, 1000),
            randomness=random.Random(0),
        )
        self.range.wait_from(0.0)

    def ask(self) -> RangeCall:
        leader = self.range.leader()
        assert leader is not None
        return self.range.request(leader)

    def answer(self, records: bytes = b"", code: int = 0, **fields: Any) -> FetchedBytes | None:
        """To what is asked now."""
        return self.answer_to(self.ask(), records, code, **fields)

    def answer_to(self, call: RangeCall, records: bytes = b"", code: int = 0, **fields: Any) -> FetchedBytes | None:
        Fetch = messages.response(1)
        offsets = {"high_watermark": 1_000, "last_stable_offset": 1_000, "log_start_offset": 0}
        partition = Fetch.PartitionData(partition_index=0, error_code=code, records=records, **(offsets | fields))
        topic = Fetch.FetchableTopicResponse(topic_id=TOPIC_ID, partitions=[partition])
        return self.reply(call, Fetch(responses=[topic]))

    def reply(self, call: RangeCall, message: Any) -> FetchedBytes | None:
        frame = memoryview(messages.encode_response(1, VERSION, message))
        return self.range.answered(call, RawReply(VERSION, frame, 0), self.now)


def asked(call: RangeCall) -> Any:
    ((partition,),) = [topic.partitions for topic in call.message.topics]
    return partition


# What comes


def test_pieces_follow_each_other_until_the_end_is_passed():
    story = Story(3, 25)
    first = story.answer(batch(0) + batch(10))
    assert first is not None
    assert (first.offset, first.next_offset, bytes(first.data)) == (3, 20, batch(0) + batch(10))
    assert (first.log_start_offset, first.high_watermark, first.aborted) == (0, 1_000, None)
    call = story.ask()
    assert (asked(call).fetch_offset, asked(call).last_fetched_epoch) == (20, 0)
    last = story.answer_to(call, batch(20) + batch(30))
    assert last is not None
    assert bytes(last.data) == batch(20), "what begins at the end or later is not handed out"
    assert story.range.is_done


def test_nothing_is_asked_for_an_empty_range():
    assert Story(5, 5).range.is_done


def test_a_gap_over_the_end_ends_the_range():
    story = Story(0, 50)
    assert story.answer(batch(90)) is None
    assert story.range.is_done


def test_a_range_of_which_compaction_left_nothing_ends_when_answers_stay_empty():
    story = Story(0, 50)
    story.answer(batch(0))
    story.range.wait_from(story.now)
    while not story.range.is_done:
        assert story.range.patience_s(story.now) > 0
        assert story.answer(high_watermark=50) is None
        assert story.range.retry_at > story.now, "one who has nothing to wait for answers at once"
        ended, story.now = story.now, story.range.retry_at
    assert 30 <= ended < 32


def test_a_leader_that_reads_slowly_answers_empty_for_a_while_and_nothing_is_left_out():
    story = Story(0, 50)
    for base_offset in (0, 10, 20, 30, 40):
        for _ in range(29):
            story.now += 1
            assert story.answer(high_watermark=50) is None
        piece = story.answer(batch(base_offset), high_watermark=50)
        assert piece is not None
        assert piece.offset == base_offset


def test_empty_answers_below_the_end_are_waited_out():
    story = Story(0, 50)
    for number in range(20):
        story.now = number
        assert story.answer(high_watermark=49) is None
    assert not story.range.is_done
    story.now = 30
    with pytest.raises(TimedOut, match=r"t-0 from offset 0: nothing came for 30 s; .* high watermark is 49"):
        story.range.patience_s(story.now)


def test_a_leader_that_stays_behind_the_end_may_lead_no_longer():
    story = Story(0, 50)
    refreshed_at = []
    for story.now in range(12):
        assert story.answer(high_watermark=0) is None
        if story.range.wants_metadata:
            refreshed_at.append(story.now)
            story.cluster.update(metadata({0: (1, 0)} if story.now < 10 else {0: (2, 1)}))
            story.range.metadata_changed(story.now)
            assert not story.range.wants_metadata
    assert refreshed_at == [5, 10]
    assert story.ask().node_id == 2


def test_read_committed_waits_for_the_last_stable_offset_and_names_aborted_transactions():
    story = Story(0, 50, isolation_level="read_committed")
    assert story.ask().message.isolation_level == 1
    for _ in range(5):
        story.answer(last_stable_offset=10)
    assert not story.range.is_done
    aborted = [messages.response(1).AbortedTransaction(producer_id=7, first_offset=3)]
    piece = story.answer(batch(0), aborted_transactions=aborted)
    assert piece is not None
    assert piece.aborted == [(7, 3)]
    none = story.answer(batch(10), aborted_transactions=None)
    assert none is not None
    assert none.aborted == []


# How much is asked for


def test_after_the_first_fetch_no_more_is_asked_for_than_the_range_seems_to_need():
    story = Story(0, 20, max_partition_fetch_bytes=1 << 23)
    assert asked(story.ask()).partition_max_bytes == FIRST_FETCH_BYTES
    story.answer(batch(0))
    needed = asked(story.ask()).partition_max_bytes
    assert len(batch(0)) < needed < 2 * len(batch(0)) + SPARE_BYTES
    small = Story(0, 20, max_partition_fetch_bytes=500)
    assert asked(small.ask()).partition_max_bytes == 500


def test_a_batch_that_does_not_fit_is_asked_for_whole():
    story = Story(0, 50, max_partition_fetch_bytes=500)
    large = batch(0, value=bytes(100))
    assert story.answer(large[:500]) is None
    assert asked(story.ask()).partition_max_bytes == story.ask().message.max_bytes == len(large)
    assert story.answer(large) is not None
    assert asked(story.ask()).partition_max_bytes == 500


def test_a_batch_that_no_frame_can_bring_is_refused():
    huge = bytearray(batch(0))
    huge[8:12] = (1 << 25).to_bytes(4, "big")
    with pytest.raises(KafkaError, match=r"RECORD_LIST_TOO_LARGE.*t-0 from offset 0.*frame_bytes_max"):
        Story(0, 50).answer(bytes(huge))


def test_a_leader_that_cuts_what_was_asked_for_whole_is_not_asked_at_once():
    story = Story(0, 50)
    story.answer(batch(0)[:60])
    assert story.range.retry_at == 0
    story.answer(batch(0)[:60])
    assert story.range.retry_at > story.now


# Trouble


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.OFFSET_NOT_AVAILABLE,
    ],
)
def test_after_an_election_metadata_is_asked_for_and_the_new_leader_goes_on(code: ErrorCode):
    story = Story()
    story.answer(batch(0))
    assert story.answer(code=code) is None
    assert story.range.wants_metadata
    assert story.range.retry_at > story.now
    story.cluster.update(metadata({0: (2, 1)}))
    story.range.metadata_changed(story.now)
    call = story.ask()
    assert (call.node_id, asked(call).current_leader_epoch, asked(call).fetch_offset) == (2, 1, 10)
    assert story.answer_to(call, batch(10, epoch=1)) is not None


def test_a_leader_that_is_named_is_asked_at_once():
    story = Story()
    leader = messages.response(1).LeaderIdAndEpoch(leader_id=2, leader_epoch=5)
    assert story.answer(code=ErrorCode.NOT_LEADER_OR_FOLLOWER, current_leader=leader) is None
    assert not story.range.wants_metadata
    assert story.range.retry_at == 0
    assert story.ask().node_id == 2


def test_a_lost_connection_is_tried_again_later_and_later():
    story = Story()
    waits = []
    for _ in range(4):
        story.range.lost(ConnectionLost("127.0.0.1:9092 closed the connection"), story.now)
        assert story.range.wants_metadata
        waits.append(story.range.retry_at - story.now)
    assert waits == sorted(waits)
    assert waits[0] < 0.2 < waits[3]
    with pytest.raises(TimedOut, match=r"t-0 from offset 0.*127\.0\.0\.1:9092"):
        story.range.patience_s(30.0)


def test_time_that_nobody_waits_does_not_count():
    story = Story()
    story.range.wait_from(1_000.0)
    assert story.range.patience_s(1_029.0) == pytest.approx(1.0)


def test_a_partition_without_a_leader_is_waited_for():
    story = Story()
    story.cluster.update(metadata({0: (-1, 1)}))
    assert story.range.leader() is None
    assert story.range.wants_metadata
    for _ in range(20):
        story.range.metadata_changed(story.now)
    assert story.range.retry_at > story.now
    story.cluster.update(metadata({0: (1, 2)}))
    story.range.metadata_changed(story.now)
    assert story.ask().node_id == 1


def test_a_broker_that_throttles_is_left_alone_for_as_long_as_it_says():
    story = Story()
    assert story.reply(story.ask(), messages.response(1)(throttle_time_ms=2_000)) is None
    assert story.range.retry_at == pytest.approx(2.0)
    assert not story.range.wants_metadata


def test_an_offset_that_is_not_there_is_said_at_once():
    story = Story(40, 60)
    with pytest.raises(OffsetOutOfRange) as caught:
        story.answer(code=ErrorCode.OFFSET_OUT_OF_RANGE, high_watermark=-1)
    assert (caught.value.topic, caught.value.partition, caught.value.offset) == ("t", 0, 40)


def test_a_log_that_was_truncated_is_not_read_on():
    story = Story()
    story.answer(batch(0, epoch=3))
    assert asked(story.ask()).last_fetched_epoch == 3
    parted = messages.response(1).EpochEndOffset(epoch=2, end_offset=4)
    with pytest.raises(LogTruncated, match="truncated at offset 4"):
        story.answer(diverging_epoch=parted)


def test_a_damaged_log_is_said_after_a_few_answers():
    story = Story(40, 60)
    for _ in range(2):
        assert story.answer(code=ErrorCode.CORRUPT_MESSAGE) is None
    with pytest.raises(CorruptRecord, match="t-0: the leader's log is damaged at offset 40"):
        story.answer(code=ErrorCode.CORRUPT_MESSAGE)


def test_bytes_that_are_no_batch_are_said_with_their_place():
    with pytest.raises(CorruptRecord, match=r"t-0 at offset 40: .* length of 0"):
        Story(40, 60).answer(bytes(100))


def test_an_error_that_waiting_does_not_mend_is_raised_with_the_place():
    with pytest.raises(KafkaError, match="TOPIC_AUTHORIZATION_FAILED: fetching t-0 from offset 0"):
        Story().answer(code=ErrorCode.TOPIC_AUTHORIZATION_FAILED)


# The topic


def test_a_topic_is_asked_for_by_its_id_where_there_are_ids():
    assert (Story().ask().topic_id, Story().ask().version_max) == (TOPIC_ID, None)
    story = Story()
    story.cluster.update(metadata({0: (1, 0)}, topic_id=ZERO_UUID))
    assert story.ask().version_max == 12


def refresh(story: Story, **fields: Any) -> None:
    story.cluster.update(metadata({0: (1, 0)}, **fields))
    story.range.metadata_changed(story.now)


def test_another_topic_of_that_name_is_never_read():
    story = Story(topic_id=OTHER_ID)
    assert story.range.leader() is None
    assert story.range.wants_metadata, "what we know may be older than what the caller knows"
    for _ in range(4):
        refresh(story)
        assert story.range.leader() is None
    with pytest.raises(TopicRecreated, match=rf"'t' was deleted.* was {OTHER_ID}, and is {TOPIC_ID} now"):
        refresh(story)


def test_a_topic_that_is_made_again_between_the_choice_of_a_leader_and_the_request_is_not_asked_for():
    story = Story(topic_id=TOPIC_ID)
    leader = story.range.leader()
    assert leader is not None
    story.cluster.update(metadata({0: (1, 0)}, topic_id=Uuid(b"another-topic-id")))
    assert story.range.request(leader).topic_id == TOPIC_ID


def test_metadata_that_was_old_is_mended_by_newer():
    story = Story(topic_id=OTHER_ID)
    assert story.range.leader() is None
    refresh(story, topic_id=OTHER_ID)
    assert story.ask().topic_id == OTHER_ID


def test_a_topic_that_is_made_again_while_it_is_read_is_not_read_on():
    story = Story()
    story.answer(batch(0))
    assert story.answer(code=ErrorCode.UNKNOWN_TOPIC_ID) is None
    for _ in range(4):
        refresh(story, topic_id=OTHER_ID)
    with pytest.raises(TopicRecreated):
        refresh(story, topic_id=OTHER_ID)


def test_a_topic_that_was_made_again_before_anything_was_read_is_taken_as_it_is():
    story = Story()
    story.answer(code=ErrorCode.UNKNOWN_TOPIC_ID)
    refresh(story, topic_id=OTHER_ID)
    assert story.ask().topic_id == OTHER_ID


def test_a_topic_that_is_gone_is_named_after_a_few_answers():
    story = Story()
    for _ in range(4):
        refresh(story, error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    with pytest.raises(KafkaError, match="UNKNOWN_TOPIC_OR_PARTITION: topic 't'"):
        refresh(story, error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def test_a_partition_that_the_topic_does_not_have_is_named():
    story = Story()
    story.range.partition = 7
    for _ in range(4):
        refresh(story)
    with pytest.raises(KafkaError, match="topic 't' has 1 partitions, no 7"):
        refresh(story)


def test_a_topic_that_we_may_not_see_is_said_at_once():
    with pytest.raises(KafkaError, match="TOPIC_AUTHORIZATION_FAILED: topic 't'"):
        refresh(Story(), error=ErrorCode.TOPIC_AUTHORIZATION_FAILED)


CODES = (
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.UNKNOWN_TOPIC_ID,
)


@pytest.mark.parametrize("seed", range(20))
def test_whatever_happens_each_offset_comes_once_and_in_order(seed: int):
    chance = random.Random(seed)
    log, offset = [], 0
    while offset < 300:
        count = chance.randrange(1, 12)
        log.append((offset, offset + count, batch(offset, count, value=bytes(chance.randrange(200)))))
        offset += count + (chance.randrange(30) if chance.random() < 0.2 else 0)
    start, end = sorted(chance.sample(range(300), 2))
    story = Story(start, end, max_partition_fetch_bytes=chance.choice((70, 500, 5_000)))
    seen: list[int] = []
    for _ in range(5_000):
        if story.range.is_done:
            break
        story.now = max(story.now, story.range.retry_at)
        if story.range.wants_metadata:
            story.cluster.update(metadata({0: (chance.choice((1, 2)), 0)}))
            story.range.metadata_changed(story.now)
            continue
        call, roll = story.ask(), chance.random()
        if roll < 0.1:
            story.range.lost(ConnectionLost("cut"), story.now)
            continue
        if roll < 0.2:
            assert story.answer_to(call, code=chance.choice(CODES)) is None
            continue
        wanted = asked(call)
        rest = b"".join(data for _, following, data in log if following > wanted.fetch_offset)
        piece = story.answer_to(call, rest[: wanted.partition_max_bytes], high_watermark=offset)
        if piece is not None:
            position = 0
            while position < len(piece.data):
                base, following, data = next(
                    entry for entry in log if bytes(piece.data[position:]).startswith(entry[2])
                )
                seen += range(max(base, piece.offset), min(following, end))
                position += len(data)
    assert story.range.is_done
    assert seen == [o for base, following, _ in log for o in range(base, following) if start <= o < end]
