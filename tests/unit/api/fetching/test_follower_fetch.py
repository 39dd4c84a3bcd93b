"""A follower's Fetch: whose position counts, what is answered at once and what waits."""

# mypy: allow-incomplete-defs, allow-untyped-calls, allow-untyped-defs, disable-error-code="arg-type, union-attr"

from __future__ import annotations

import pytest

from strandline.api.fetching.follower_sessions import SESSIONS_MAX
from strandline.errors import ErrorCode
from strandline.metadata import records as r

from ..conftest import registration
from ..leader import Leader, offsets, part

WAIT_S = 0.5
CONSUMER = -1


def told(asked):
    return asked.answer.error_code


def goes_cold(leader, index=0):
    """The log's bytes are on the device only."""
    leader.partition(index).log.segments.active.file.inode.cold.update(range(8))


# Rule A6: whose position counts


def test_a6_an_older_leader_epoch_is_fenced_at_once():
    leader = Leader()
    leader.broker.change(leader=1)
    assert told(leader.fetch(part(0, epoch=0))) == ErrorCode.FENCED_LEADER_EPOCH
    assert leader.follower().log_end_offset == -1


@pytest.mark.parametrize(
    ("replica", "epoch", "error"),
    [
        (2, 1, ErrorCode.UNKNOWN_LEADER_EPOCH),
        (4, 0, ErrorCode.UNKNOWN_LEADER_EPOCH),  # equal epoch, but no replica
        (4, -1, ErrorCode.NOT_LEADER_OR_FOLLOWER),
    ],
)
def test_a6_one_that_may_be_ahead_of_our_metadata_waits_before_it_is_refused(replica, epoch, error):
    leader = Leader()
    asked = leader.fetch(part(0, epoch=epoch), replica=replica)
    leader.loop.run(WAIT_S - 0.01)
    assert asked.is_waiting
    leader.loop.run(0.01)
    assert told(asked) == error


def test_a6_a_follower_ahead_of_our_metadata_is_served_once_we_have_it():
    leader = Leader()
    leader.append(1)
    asked = leader.fetch(part(0, epoch=1))
    leader.broker.change(leader=1)
    leader.loop.run()
    assert offsets(asked.answer) == [0]
    assert leader.follower().log_end_offset == 0


def test_a6_a_new_replica_is_served_once_we_know_that_it_is_one():
    """A reassignment that adds a replica leaves the leader epoch as it is."""
    leader = Leader((1, 2))
    leader.append(1)
    asked = leader.fetch(part(0), replica=4)
    assert asked.is_waiting
    leader.broker.change(replicas=(1, 2, 4), adding_replicas=(4,))
    leader.loop.run()
    assert offsets(asked.answer) == [0]


def test_a6_a_partition_that_we_do_not_have_yet_is_waited_for():
    leader = Leader((2, 3, 4))
    asked = leader.fetch(part(0, epoch=1))
    assert asked.is_waiting
    leader.broker.change(replicas=(1, 2, 3), leader=1, isr=(1, 2, 3))
    leader.append(1)
    leader.loop.run()
    assert offsets(asked.answer) == [0]


def test_a_topic_that_nobody_knows_is_refused_when_the_time_is_up():
    leader = Leader()
    leader.topic_id = type(leader.topic_id)(bytes([7]) * 16)
    asked = leader.fetch(part(0))
    assert asked.is_waiting
    leader.loop.run(WAIT_S)
    assert told(asked) == ErrorCode.UNKNOWN_TOPIC_ID


def test_a_leader_that_is_deposed_says_so_when_the_time_is_up():
    leader = Leader()
    asked = leader.fetch(part(0))
    leader.broker.change(leader=2)
    leader.loop.run()
    assert told(asked) == ErrorCode.FENCED_LEADER_EPOCH


# Rules A7, A8: where the logs part


def parted():
    """Epoch 0 up to 3, epoch 2 up to 5."""
    leader = Leader()
    leader.append(1, 1, 1)
    leader.broker.change(leader=1)
    leader.broker.change(leader=1)
    leader.append(1, 1)
    return leader


@pytest.mark.parametrize(
    ("offset", "last", "diverging"),
    [(4, 0, (0, 3)), (5, 1, (0, 3)), (3, 1, (0, 3)), (9, 2, (2, 5)), (3, 0, None), (4, 2, None)],
)
def test_a7_where_the_logs_part_is_told_and_the_position_does_not_count(offset, last, diverging):
    leader = parted()
    asked = leader.fetch(part(offset, epoch=2, last=last))
    if diverging is None:
        assert offsets(asked.answer)
        assert leader.follower().log_end_offset == offset
    else:
        found = asked.answer.diverging_epoch
        assert (found.epoch, found.end_offset) == diverging
        assert (told(asked), asked.answer.records) == (0, b"")
        assert leader.follower().log_end_offset == -1
        assert leader.partition().high_watermark == 0


def test_a7_one_that_has_cut_its_log_is_served():
    leader = parted()
    first = leader.fetch(part(4, epoch=2, last=0))
    assert first.answer.diverging_epoch.end_offset == 3
    second = leader.fetch(part(3, epoch=2, last=0), session=(first.session_id, 1))
    assert offsets(second.answer) == [3, 4]


def test_a8_below_the_log_start_is_out_of_range_whatever_the_epochs_say():
    leader = parted()
    for replica in (2, 3):
        leader.broker.follow(replica, 5)
    leader.partition().delete_records(4)
    asked = leader.fetch(part(3, epoch=2, last=1))
    assert told(asked) == ErrorCode.OFFSET_OUT_OF_RANGE
    assert asked.answer.diverging_epoch.epoch == -1


@pytest.mark.parametrize(("offset", "last"), [(6, -1), (1, 7)])
def test_a8_what_we_can_not_place_is_out_of_range(offset, last):
    leader = parted()
    if last == 7:
        leader.partition().log.epochs.truncate_from_end(0)
    assert told(leader.fetch(part(offset, epoch=2, last=last))) == ErrorCode.OFFSET_OUT_OF_RANGE


# Rule A15, and what a position does


def test_a15_what_is_appended_during_a_fetch_does_not_make_its_follower_late():
    leader = Leader()
    leader.append(1)
    leader.loop.run(10)
    asked = leader.fetch(part(1))
    leader.append(1)
    leader.loop.run()
    assert offsets(asked.answer) == [1]
    assert leader.follower().caught_up_at == leader.loop.now


def test_a15_a_fetch_that_does_not_name_what_it_is_sent_is_a_fetch_too():
    """Seed 500241: the leader believed its follower to have been silent since the Fetch before."""
    leader = Leader()
    begun = leader.fetch(part(0))
    leader.loop.run(WAIT_S)
    leader.append(1)
    leader.loop.run(5)
    asked = leader.fetch(session=(begun.session_id, 1))
    assert offsets(asked.answer) == [0]
    fetched_at = leader.loop.now
    leader.append(1)
    leader.loop.run(5)
    leader.fetch(part(1), session=(begun.session_id, 2))
    assert leader.follower().caught_up_at == fetched_at


def test_a15_a_fetch_that_left_before_the_last_answer_arrived_says_nothing_of_what_that_brought():
    """Two are in flight, as our own followers have them, and name two busy partitions in turn."""
    leader = Leader((1, 2, 3), (1, 2, 3))
    session_id = leader.fetch(part(0, 0), part(0, 1), max_wait_ms=0).session_id
    position, named_in = [0, 0], [0, 0]
    in_flight = []
    for number in range(1, 100):
        index = number % 2
        named_in[index] = number
        for each in (0, 1):
            leader.append(1, index=each)
        wanted = part(position[index], index, last=0 if position[index] else -1)
        in_flight.append((number, leader.fetch(wanted, session=(session_id, number)).answers))
        leader.loop.run(0.1)
        if len(in_flight) == 2:
            answered, answers = in_flight.pop(0)
            for each, answer in answers.items():
                if named_in[each] <= answered and (new := offsets(answer)):
                    position[each] = new[-1] + 1
        if number > 5:
            ages_s = [leader.loop.now - leader.follower(2, each).caught_up_at for each in (0, 1)]
            assert max(ages_s) < 0.5, number


@pytest.mark.parametrize("has_session", [True, False])
def test_a6_the_first_fetch_of_a_session_leaves_it_to_the_next_one_to_wait(has_session):
    """It is in haste to open the session, not to be refused."""
    leader = Leader()
    begun = leader.fetch(part(0, epoch=1), max_wait_ms=0, **({} if has_session else {"session": (0, -1)}))
    if not has_session:
        assert told(begun) == ErrorCode.UNKNOWN_LEADER_EPOCH
        return
    assert begun.answers == {}
    waiting = leader.fetch(session=(begun.session_id, 1))
    assert waiting.is_waiting
    leader.loop.run(WAIT_S)
    assert told(waiting) == ErrorCode.UNKNOWN_LEADER_EPOCH


def test_positions_commit_what_everybody_has():
    leader = Leader()
    leader.append(1, 1)
    leader.fetch(part(2))
    assert leader.partition().high_watermark == 0
    leader.fetch(part(1), replica=3)
    assert leader.partition().high_watermark == 1


def test_the_broker_epoch_of_a_fetch_says_who_may_join():
    leader = Leader((1, 2, 3))
    leader.broker.change(isr=(1, 3))
    leader.fetch(part(0), broker_epoch=1)
    assert not leader.broker.surroundings.wishes
    leader.fetch(part(0), broker_epoch=2)
    [wish] = leader.broker.surroundings.wishes
    assert wish.isr == ((1, 1), (3, -1), (2, 2))


# SEC-T6, SEC-T7: who may speak as a broker, and as which incarnation


def seen_of(leader):
    """What a forged Fetch must not move."""
    partition, follower = leader.partition(), leader.follower()
    known = (follower.log_end_offset, follower.broker_epoch, follower.caught_up_at, follower.fetched_at)
    wishes = [wish.replicas for wish in leader.broker.surroundings.wishes]
    return partition.high_watermark, known, wishes, len(leader.broker.parts.followers.sessions)


@pytest.mark.parametrize("version", [4, 7, 12, 17])
@pytest.mark.parametrize("epoch", [-1, 2, 2**62])
def test_sec_t6_on_a_listener_for_clients_nobody_is_a_follower(version, epoch):
    leader = Leader((1, 2), (1, 2))
    leader.append(1)
    before = seen_of(leader)
    leader.listener = "OTHER"
    asked = leader.fetch(part(1), part(0, 1), version=version, broker_epoch=epoch)
    refused = {index: (answer.error_code, answer.records) for index, answer in asked.answers.items()}
    assert refused == dict.fromkeys((0, 1), (ErrorCode.TOPIC_AUTHORIZATION_FAILED, b""))
    assert asked.session_id == 0
    assert seen_of(leader) == before


def test_sec_t6_on_a_listener_for_clients_nobody_ends_or_continues_a_followers_session():
    leader = Leader((1, 2))
    leader.append(2)
    first = leader.fetch(part(1))
    session = leader.session(first)
    before = seen_of(leader), session.epoch, session.fetched_at
    leader.listener = "OTHER"
    leader.loop.run(1)
    for epoch in (1, 0, -1):
        leader.fetch(part(2), session=(first.session_id, epoch))
        leader.fetch(session=(first.session_id, epoch))
    assert (seen_of(leader), session.epoch, session.fetched_at) == before
    leader.listener = "PLAINTEXT"
    leader.fetch(part(2), session=(first.session_id, 1))
    assert leader.partition().high_watermark == 2


@pytest.mark.parametrize(("epoch", "version"), [(-1, 17), (1, 17), (-1, 14)])
def test_sec_t7_none_or_an_earlier_broker_epoch_is_refused_and_counts_for_nothing(epoch, version):
    leader = Leader((1, 2))
    leader.append(1)
    before = seen_of(leader)
    asked = leader.fetch(part(1), broker_epoch=epoch, version=version)
    leader.append(1)
    leader.loop.run()
    assert asked.is_waiting, "a second look does not take it for counted"
    leader.loop.run(WAIT_S)
    assert (told(asked), asked.answer.records) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, b"")
    assert seen_of(leader) == before


def test_sec_t7_before_kip_903_no_follower_says_its_epoch():
    leader = Leader((1, 2))
    leader.broker.commit([r.FeatureLevelRecord(name="metadata.version", feature_level=9)])
    leader.append(1)
    leader.fetch(part(1), version=14)
    assert leader.partition().high_watermark == 1


def test_sec_t7_a_later_broker_epoch_is_answered_and_not_counted():
    leader = Leader((1, 2))
    leader.append(1)
    before = seen_of(leader)
    assert offsets(leader.fetch(part(0), broker_epoch=2**62).answer) == [0]
    leader.fetch(part(1), broker_epoch=2**62)
    leader.append(1)
    leader.loop.run(WAIT_S)
    assert seen_of(leader) == before
    leader.fetch(part(2))
    assert leader.partition().high_watermark == 2, "the follower itself is not locked out"


def test_sec_t7_a_follower_that_restarted_counts_as_soon_as_its_registration_is_known():
    leader = Leader((1, 2), (1, 2))
    leader.append(1)
    leader.append(1, index=1)
    asked = leader.fetch(part(1), part(1, 1), broker_epoch=50)
    assert (asked.is_waiting, leader.partition().high_watermark) == (True, 0)
    leader.broker.commit([registration(2, epoch=50)])
    leader.loop.run()
    assert asked.is_waiting, "there is nothing to tell"
    assert [leader.partition(index).high_watermark for index in (0, 1)] == [1, 1]


def test_sec_t7_a_session_that_an_earlier_incarnation_goes_on_with_says_nothing_of_the_next():
    leader = Leader((1, 2))
    leader.append(1)
    first = leader.fetch(part(1))
    leader.loop.run(1)
    leader.broker.commit([registration(2, epoch=50)])
    before = seen_of(leader)
    leader.fetch(session=(first.session_id, 1))
    leader.append(1)
    leader.loop.run(1)
    assert seen_of(leader) == before


def test_sec_t7_a_session_belongs_to_one_incarnation():
    leader = Leader((1, 2))
    first = leader.fetch(part(0))
    leader.loop.run(1)
    for epoch in (1, 3, -1):
        refused = leader.fetch(part(0), session=(first.session_id, 1), broker_epoch=epoch)
        assert refused.reply.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert leader.fetch(session=(first.session_id, 1)).is_waiting


def test_sec_t7_one_who_is_not_the_registered_incarnation_pushes_out_no_session():
    leader = Leader((1, 2))
    first = leader.fetch(part(0))
    leader.loop.run(1)
    for epoch in range(50, 50 + 2 * SESSIONS_MAX):
        leader.fetch(part(0), broker_epoch=epoch)
        leader.fetch(part(0), broker_epoch=-1)
    assert leader.fetch(session=(first.session_id, 1)).is_waiting


# Waiting


def test_what_is_appended_in_one_turn_goes_in_one_reply():
    leader = Leader()
    asked = leader.fetch(part(0))
    leader.append(1, 1, 1)
    assert asked.is_waiting
    leader.loop.run()
    assert offsets(asked.answer) == [0, 1, 2]


def test_a_reply_is_not_due_below_min_bytes():
    leader = Leader()
    asked = leader.fetch(part(0), min_bytes=100_000)
    leader.append(1)
    leader.loop.run(WAIT_S - 0.01)
    assert asked.is_waiting
    leader.loop.run(0.01)
    assert offsets(asked.answer) == [0]


def test_a_newer_watermark_alone_is_told_when_the_time_is_up():
    leader = Leader()
    leader.append(1)
    first = leader.fetch(part(1))
    leader.loop.run(WAIT_S)
    assert first.answer.high_watermark == 0
    second = leader.fetch(session=(first.session_id, 1))
    leader.fetch(part(1), replica=3)
    assert second.is_waiting
    leader.loop.run(WAIT_S)
    assert second.answer.high_watermark == 1


def test_the_time_is_up_with_nothing_to_say():
    leader = Leader()
    first = leader.fetch(part(0))
    leader.loop.run(WAIT_S)
    second = leader.fetch(session=(first.session_id, 1))
    leader.loop.run(WAIT_S)
    assert second.answers == {}


def test_one_bad_partition_does_not_hold_up_the_others():
    leader = Leader((1, 2), (1, 2), (1, 2))
    leader.append(1, index=2)
    asked = leader.fetch(part(0, 0, epoch=1), part(9, 1), part(0, 2))
    assert {index: a.error_code for index, a in asked.answers.items()} == {1: ErrorCode.OFFSET_OUT_OF_RANGE, 2: 0}
    assert offsets(asked.answers[2]) == [0]
    again = leader.fetch(part(1, 2), session=(asked.session_id, 1))
    leader.broker.change(leader=1)
    leader.append(1, index=0)
    leader.loop.run()
    assert offsets(again.answers[0]) == [0]


def test_a_log_dir_that_fails_is_told_at_once():
    leader = Leader()
    asked = leader.fetch(part(0))
    leader.partition().fail()
    leader.loop.run()
    assert told(asked) == ErrorCode.KAFKA_STORAGE_ERROR


def test_a_consumer_hears_of_a_commit_of_what_was_appended_before_the_commit_before():
    leader = Leader((1, 2))
    first = leader.fetch(part(0))
    leader.append(1, 1)
    leader.loop.run()
    leader.fetch(part(1, last=0), session=(first.session_id, 1))
    assert leader.partition().high_watermark == 1, "the follower took the first batch only"
    consumer = leader.fetch(part(1, epoch=-1), replica=CONSUMER, session=(0, -1))
    assert consumer.is_waiting
    leader.fetch(part(2, last=0), session=(first.session_id, 2))
    assert leader.partition().high_watermark == 2
    leader.loop.run(WAIT_S - 0.1)
    assert offsets(consumer.answer) == [1], "it sleeps though the second record is committed"


# Sessions


def test_a_thousand_idle_partitions_are_not_looked_at():
    leader = Leader(*[(1, 2)] * 1000)
    first = leader.fetch(*[part(0, index) for index in range(1000)])
    leader.loop.run(WAIT_S)
    session = leader.session(first)
    assert len(session.watches) == 1000
    assert not session.dirty
    second = leader.fetch(session=(first.session_id, 1))
    assert not session.dirty
    leader.append(1, index=7)
    assert [watch.place[1] for watch in session.dirty] == [7]
    leader.loop.run()
    assert offsets(second.answer) == [0]


def test_idle_followers_are_not_late():
    leader = Leader()
    asked = leader.fetch(part(0))
    for epoch in range(1, 100):
        leader.loop.run(WAIT_S)
        asked = leader.fetch(session=(asked.session_id, epoch))
    leader.append(1)
    leader.loop.run(1)
    leader.partition().shrink_isr(leader.loop.now)
    assert [wish.replicas for wish in leader.broker.surroundings.wishes] == [(1, 2)], "3 has never fetched, 2 has"


def test_a_fetch_is_answered_when_the_next_one_of_its_session_comes():
    leader = Leader((1, 2), (1, 2))
    begun = leader.fetch(part(0, 0))
    leader.loop.run(WAIT_S)
    waiting = leader.fetch(session=(begun.session_id, 1))
    leader.append(1, index=1)
    following = leader.fetch(part(0, 1), session=(begun.session_id, 2))
    assert waiting.answers == {}
    assert offsets(following.answer) == [0]


def test_news_that_came_before_an_interruption_go_with_the_next_fetch():
    leader = Leader((1, 2), (1, 2))
    begun = leader.fetch(part(0, 0))
    leader.loop.run(WAIT_S)
    leader.fetch(session=(begun.session_id, 1))
    leader.append(1)
    following = leader.fetch(part(0, 1), session=(begun.session_id, 2))
    assert offsets(following.answers[0]) == [0]
    leader.loop.run(1)


def test_records_that_were_sent_and_not_asked_on_from_are_sent_again():
    leader = Leader()
    leader.append(1)
    first = leader.fetch(part(0))
    assert offsets(first.answer) == [0]
    again = leader.fetch(session=(first.session_id, 1))
    assert offsets(again.answer) == [0]
    on = leader.fetch(part(1), session=(first.session_id, 2))
    assert on.is_waiting


def test_what_found_no_room_comes_with_the_next_reply():
    leader = Leader((1, 2), (1, 2))
    leader.append(1, index=0)
    leader.append(1, index=1)
    first = leader.fetch(part(0, 0), part(0, 1), max_bytes=10)
    assert {index: offsets(answer) for index, answer in first.answers.items()} == {0: [0]}
    second = leader.fetch(part(1, 0), session=(first.session_id, 1), max_bytes=10)
    assert {index: offsets(answer) for index, answer in second.answers.items()} == {1: [0], 0: []}
    assert second.answers[0].high_watermark == 1


def test_a_partition_that_is_followed_no_more_is_not_told_of():
    leader = Leader((1, 2), (1, 2))
    first = leader.fetch(part(0, 0), part(0, 1))
    leader.loop.run(WAIT_S)
    second = leader.fetch(session=(first.session_id, 1), forget=(1,))
    leader.append(1, index=1)
    leader.loop.run()
    assert second.is_waiting
    assert not leader.partition(1).watchers


def test_a_connection_that_closes_ends_its_session():
    leader = Leader()
    first = leader.fetch(part(0))
    leader.loop.run(WAIT_S)
    second = leader.fetch(session=(first.session_id, 1))
    second.later.cancel()
    assert len(leader.broker.parts.followers.sessions) == 0
    assert not leader.partition().watchers
    leader.append(1)
    leader.loop.run(1)
    third = leader.fetch(part(0), session=(first.session_id, 2))
    assert third.reply.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_without_a_session_nothing_stays():
    leader = Leader()
    leader.append(1)
    assert offsets(leader.fetch(part(0), session=(0, -1)).answer) == [0]
    waiting = leader.fetch(part(1), session=(0, -1))
    leader.append(1)
    leader.loop.run()
    assert offsets(waiting.answer) == [1]
    assert (waiting.session_id, len(leader.broker.parts.followers.sessions)) == (0, 0)
    assert not leader.partition().watchers


@pytest.mark.parametrize("version", [4, 6, 7, 11, 12, 13, 14, 15, 16, 17, 18])
def test_every_version(version):
    leader = Leader()
    if version < 15:  # whose followers say no broker epoch
        leader.broker.commit([r.FeatureLevelRecord(name="metadata.version", feature_level=9)])
    leader.append(2)
    epoch = -1 if version < 9 else 0
    asked = leader.fetch(part(0, epoch=epoch), version=version)
    assert offsets(asked.answer) == [0]
    leader.fetch(part(2, epoch=epoch), version=version)
    assert leader.follower().log_end_offset == 2


# The device


def test_a_cold_read_does_not_hold_up_the_others():
    leader = Leader((1, 2), (1, 2))
    leader.append(1, index=0)
    leader.append(1, index=1)
    goes_cold(leader, 0)
    first = leader.fetch(part(0, 0), part(0, 1))
    assert {index: offsets(answer) for index, answer in first.answers.items()} == {1: [0]}
    second = leader.fetch(part(1, 1), session=(first.session_id, 1))
    assert second.is_waiting
    leader.run_beside()
    leader.loop.run()
    assert offsets(second.answers[0]) == [0]


def test_a_partition_that_is_forgotten_while_its_bytes_are_read_stays_forgotten():
    leader = Leader((1, 2), (1, 2))
    leader.append(1, index=0)
    goes_cold(leader, 0)
    first = leader.fetch(part(0, 0), part(0, 1))
    leader.loop.run(WAIT_S)
    second = leader.fetch(session=(first.session_id, 1), forget=(0,))
    leader.run_beside()
    leader.loop.run(WAIT_S)
    assert 0 not in second.answers
    assert not leader.partition(0).watchers


# The leader's throttle


def test_a_throttle_holds_back_those_who_are_not_in_sync():
    leader = Leader()
    leader.append(1, 1)
    leader.broker.change(isr=(1, 2))
    over = True
    leader.broker.parts.followers.is_throttled = lambda partition: over
    assert offsets(leader.fetch(part(0), replica=2).answer) == [0, 1]
    held = leader.fetch(part(0), replica=3)
    leader.loop.run(WAIT_S)
    assert held.answers == {}
    over = False
    assert offsets(leader.fetch(session=(held.session_id, 1), replica=3).answer) == [0, 1]
