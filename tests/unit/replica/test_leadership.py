"""A leader's followers: who may join the ISR, who must leave it, one proposal at a time."""

from __future__ import annotations

import pytest

from strandline.errors import ErrorCode, KafkaError
from strandline.replica.isr_state import IsrAnswer

from .bench import Bench, image


def joining(on: Bench) -> list[tuple[int, ...]]:
    return [proposal.replicas for proposal in on.proposals]


def test_b1_who_has_all_that_is_committed_and_all_from_before_the_epoch_may_join() -> None:
    on = Bench(image(isr=(1, 2)))
    on.append(3)
    on.fetched(2, 2)
    on.fetched(3, 1)
    assert joining(on) == [], "behind the watermark"
    on.fetched(3, 2)
    assert joining(on) == [(1, 2, 3)]
    assert on.proposals[0].isr == ((1, 100), (2, 200), (3, 300))


def test_b1_the_start_of_the_epoch_has_to_be_reached() -> None:
    on = Bench(image(isr=(1, 2)))
    on.append(3)
    on.partition.apply(image(2, epoch=6, partition_epoch=2))
    on.partition.apply(image(1, epoch=7, partition_epoch=3, isr=(1, 2)))
    on.fetched(3, 2)
    assert (on.partition.high_watermark, joining(on)) == (0, []), (
        "what the leader before committed may be more than ours"
    )
    on.fetched(3, 3)
    assert joining(on) == [(1, 2, 3)]


def test_b1_who_is_fenced_or_of_another_incarnation_may_not() -> None:
    on = Bench(image(isr=(1, 2)))
    epoch = on.epochs.pop(3)
    on.fetched(3, 0, broker_epoch=epoch)
    assert joining(on) == []
    on.epochs[3] = on.registered[3] = epoch + 1
    on.partition.brokers_changed()
    assert joining(on) == [], "it restarted since"


def test_b1_who_was_level_joins_once_it_is_unfenced_though_nothing_is_written() -> None:
    on = Bench(image(isr=(1, 2)))
    epoch = on.epochs.pop(3)
    on.fetched(3, 0, broker_epoch=epoch)
    on.epochs[3] = epoch
    on.leadership.expand_isr()
    assert joining(on) == [(1, 2, 3)]


def test_b2_who_has_all_is_never_late() -> None:
    on = Bench()
    on.loop.run(1000)
    on.fetched(2, 0)
    on.fetched(3, 0)
    on.loop.run(1000)
    on.partition.shrink_isr(on.now())
    assert on.proposals == []


def test_b2_who_was_not_level_for_too_long_leaves() -> None:
    on = Bench()
    on.fetched(2, 0)
    on.fetched(3, 0)
    on.append()
    on.loop.run(30)
    on.fetched(2, 1)
    on.partition.shrink_isr(on.now())
    assert on.proposals == [], "not longer than replica.lag.time.max.ms"
    on.loop.run(0.1)
    on.partition.shrink_isr(on.now())
    assert joining(on) == [(1, 2)]
    assert "replica 3 is at 0 of 1" in on.proposals[0].reason


def test_b2_who_never_fetched_is_given_its_time() -> None:
    on = Bench()
    on.append()
    on.loop.run(29)
    on.partition.shrink_isr(on.now())
    assert on.proposals == []
    on.loop.run(2)
    on.partition.shrink_isr(on.now())
    assert joining(on) == [(1,)]


def test_b2_who_left_for_being_late_is_not_proposed_again_before_it_fetches() -> None:
    on = Bench()
    on.fetched(2, 0)
    on.fetched(3, 0)
    on.append()
    on.fetched(2, 1)
    on.loop.run(31)
    on.fetched(2, 1)
    on.partition.shrink_isr(on.now())
    on.partition.isr_answered(on.proposals[0], IsrAnswer(1, 5, (1, 2), 0, 2))
    assert joining(on) == [(1, 2)]
    assert on.offsets == (1, 1)
    on.leadership.expand_isr()
    assert joining(on) == [(1, 2)]


def test_b2_nor_while_the_watermark_stands_still_under_min_isr() -> None:
    on = Bench(min_isr=3)
    on.fetched(3, 0)
    on.append()
    on.fetched(2, 1)
    on.loop.run(31)
    on.fetched(2, 1)
    on.partition.shrink_isr(on.now())
    on.partition.isr_answered(on.proposals[0], IsrAnswer(1, 5, (1, 2), 0, 2))
    on.leadership.expand_isr()
    assert joining(on) == [(1, 2)]


@pytest.mark.parametrize("is_answered", [True, False])
def test_b2_who_joined_without_being_level_is_given_its_time(is_answered: bool) -> None:
    """Seed 300260: it left with the next check, having joined with all that was committed and no more."""
    on = Bench(image(isr=(1, 2)))
    on.append(3)
    on.fetched(2, 2)
    on.fetched(3, 2)
    if is_answered:
        on.partition.isr_answered(on.proposals[0], IsrAnswer(1, 5, (1, 2, 3), 0, 2))
    else:
        on.partition.apply(image(isr=(1, 2, 3), partition_epoch=2))
    on.loop.run(29)
    on.fetched(2, 3)
    on.partition.shrink_isr(on.now())
    assert joining(on) == [(1, 2, 3)]
    on.loop.run(2)
    on.partition.shrink_isr(on.now())
    assert joining(on) == [(1, 2, 3), (1, 2)]


def test_b3_one_proposal_at_a_time() -> None:
    on = Bench(image(isr=(1,)))
    on.fetched(2, 0)
    on.fetched(3, 0)
    on.loop.run(100)
    on.append()
    on.partition.shrink_isr(on.now())
    assert joining(on) == [(1, 2)]
    on.partition.isr_answered(on.proposals[0], IsrAnswer(1, 5, (1, 2), 0, 2))
    assert on.leadership.isr.isr == (1, 2)


def test_b3_the_next_in_line_is_proposed_when_the_proposal_before_is_answered() -> None:
    on = Bench(image(isr=(1,)))
    on.fetched(2, 0)
    on.fetched(3, 0)
    on.partition.isr_answered(on.proposals[0], IsrAnswer(1, 5, (1, 2), 0, 2))
    assert joining(on) == [(1, 2), (1, 2, 3)]


def test_b3_who_joins_counts_at_once_and_who_leaves_until_it_is_done() -> None:
    on = Bench(image(isr=(1, 2)))
    on.append(2)
    on.fetched(2, 1)
    on.fetched(3, 1)
    on.fetched(2, 2)
    assert on.offsets == (1, 2), "3 is only proposed, and counts"
    on.partition.isr_answered(on.proposals[0], IsrAnswer(1, 5, (1, 2, 3), 0, 2))
    on.loop.run(31)
    on.partition.shrink_isr(on.now())
    assert on.offsets == (1, 2), "3 is about to leave, and still counts"
    on.partition.apply(image(isr=(1, 2), partition_epoch=3))
    assert on.offsets == (2, 2)


@pytest.mark.parametrize("code", [ErrorCode.INELIGIBLE_REPLICA, ErrorCode.OPERATION_NOT_ATTEMPTED])
def test_b5_what_was_surely_not_done_is_rolled_back(code: ErrorCode) -> None:
    on = Bench(image(isr=(1, 2)))
    on.fetched(3, 0)
    on.partition.isr_answered(on.proposals[0], code)
    isr = on.leadership.isr
    assert (isr.isr, isr.maximal, isr.pending) == ((1, 2), (1, 2), None)


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
    ],
)
def test_b5_what_may_have_been_done_stays_pending_until_the_metadata_tells(code: ErrorCode) -> None:
    on = Bench(image(isr=(1, 2)))
    on.fetched(3, 0)
    on.partition.isr_answered(on.proposals[0], code)
    assert on.leadership.isr.maximal == (1, 2, 3)
    assert on.leadership.isr.pending is on.proposals[0]
    on.partition.apply(image(isr=(1, 2, 3), partition_epoch=2))
    assert on.leadership.isr.pending is None


@pytest.mark.parametrize("code", [ErrorCode.NOT_CONTROLLER, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.STALE_BROKER_EPOCH])
def test_b5_anything_else_is_sent_again(code: ErrorCode) -> None:
    on = Bench(image(isr=(1, 2)))
    on.fetched(3, 0)
    on.partition.isr_answered(on.proposals[0], code)
    assert on.proposals == [on.proposals[0], on.proposals[0]]
    assert on.leadership.isr.maximal == (1, 2, 3)


def test_b5_an_answer_that_the_metadata_overtook_changes_nothing() -> None:
    on = Bench(image(isr=(1, 2)))
    on.fetched(3, 0)
    on.partition.apply(image(isr=(1, 2, 3), partition_epoch=2))
    on.partition.isr_answered(on.proposals[0], ErrorCode.INELIGIBLE_REPLICA)
    on.partition.isr_answered(on.proposals[0], IsrAnswer(1, 5, (1, 2), 0, 2))
    assert on.leadership.isr.isr == (1, 2, 3)


@pytest.mark.parametrize("broker_epoch", [199, -1])
def test_sec_t7_a_fetch_of_an_earlier_incarnation_or_of_none_does_not_count(broker_epoch: int) -> None:
    on = Bench()
    on.append(2)
    on.fetched(2, 1)
    with pytest.raises(KafkaError) as refused:
        on.fetched(2, 2, broker_epoch=broker_epoch)
    assert refused.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    on.fetched(3, 2)
    assert on.offsets == (1, 2)


def test_sec_t7_a_fetch_of_a_later_incarnation_does_not_count_and_locks_nobody_out() -> None:
    on = Bench()
    on.append(2)
    on.fetched(3, 2)
    for offset in (1, 2):
        assert not on.fetched(2, offset, broker_epoch=2**62)
        assert (on.offsets, on.follower(2).log_end_offset) == ((0, 2), -1)
    assert on.fetched(2, 2)
    assert on.offsets == (2, 2)


@pytest.mark.parametrize("broker_epoch", [199, 200, 201])
def test_sec_t7_only_the_registered_incarnation_is_known_to_have_been_level(broker_epoch: int) -> None:
    on = Bench()
    on.fetched(2, 0)
    fetched_at = on.now()
    on.partition.follower_was_caught_up(2, broker_epoch, fetched_at + 9)
    assert on.follower(2).caught_up_at == fetched_at + (9 if broker_epoch == 200 else 0)
    on.registered[2] = 202
    on.partition.follower_was_caught_up(2, 200, fetched_at + 20)
    assert on.follower(2).caught_up_at < fetched_at + 20, "it restarted since"


def test_b1_one_that_was_taken_away_and_came_back_between_two_images_has_nothing() -> None:
    on = Bench()
    on.append(5)
    on.fetched(2, 5)
    on.fetched(3, 5)
    assert on.offsets == (5, 5)
    # Reassigned to (1, 2) and back to (1, 2, 3): node 3 deleted its log and began an empty one.
    # This node was busy and sees only the last of these images.
    on.partition.apply(image(epoch=6, partition_epoch=5, replicas=(1, 2, 3), isr=(1, 2)))
    on.fetched(2, 5)
    on.leadership.expand_isr()
    assert joining(on) == [], "3 has not fetched since, and its log is empty"


def some_time_passes(on: Bench) -> None:
    for _ in range(20):
        on.loop.run(15)
        on.partition.shrink_isr(on.now())


def caught_up_but_for_the_proposal() -> Bench:
    """2 is proposed; 3 fetched meanwhile, and says nothing more while nothing is written."""
    on = Bench(image(isr=(1,)), min_isr=2)
    on.fetched(2, 0)
    on.fetched(3, 0)
    assert joining(on) == [(1, 2)]
    return on


def test_b3_the_next_in_line_is_not_forgotten_when_the_first_is_fenced() -> None:
    on = caught_up_but_for_the_proposal()
    del on.epochs[2]
    on.leadership.expand_isr()  # the metadata comes before the answer
    on.partition.isr_answered(on.proposals[0], ErrorCode.INELIGIBLE_REPLICA)
    some_time_passes(on)
    with pytest.raises(KafkaError) as refused:
        on.append(for_all=True)
    assert refused.value.code is ErrorCode.NOT_ENOUGH_REPLICAS, "nobody has joined yet"
    assert joining(on)[1:2] == [(1, 3)], "3 was never proposed"


@pytest.mark.parametrize("code", [ErrorCode.INELIGIBLE_REPLICA, ErrorCode.OPERATION_NOT_ATTEMPTED])
def test_b3_a_new_incarnation_is_asked_for_as_soon_as_the_old_one_is_refused(code: ErrorCode) -> None:
    """It restarted while AlterPartition named its old epoch, has fetched since, and says nothing more while nothing is written."""
    on = Bench(image(isr=(1,), replicas=(1, 2)), min_isr=2)
    on.fetched(2, 0)
    on.epochs[2] = on.registered[2] = 201
    on.fetched(2, 0)
    on.partition.isr_answered(on.proposals[0], code)
    assert [proposal.isr for proposal in on.proposals] == [((1, 100), (2, 200)), ((1, 100), (2, 201))]
    on.partition.isr_answered(on.proposals[1], IsrAnswer(1, 5, (1, 2), 0, 2))
    on.append(for_all=True)


def test_b3_what_was_refused_is_not_asked_for_again_until_something_changes() -> None:
    """The controller knows more than our metadata does: asked at once it would say the same, as fast as the network goes."""
    on = Bench(image(isr=(1,)), min_isr=2)
    on.fetched(2, 0)
    on.partition.isr_answered(on.proposals[0], ErrorCode.INELIGIBLE_REPLICA)
    assert len(on.proposals) == 1
    on.fetched(3, 0)
    assert joining(on)[1:] == [(1, 2, 3)]
    on.partition.isr_answered(on.proposals[1], ErrorCode.INELIGIBLE_REPLICA)
    assert len(on.proposals) == 2
    del on.epochs[2]  # the metadata comes: 2 is fenced
    on.leadership.expand_isr()
    assert joining(on)[2:] == [(1, 3)]


@pytest.mark.parametrize("is_refused", [False, True], ids=["lost", "refused as stale"])
def test_b3_the_next_in_line_is_not_forgotten_when_the_metadata_comes_instead_of_the_answer(is_refused: bool) -> None:
    on = caught_up_but_for_the_proposal()
    on.partition.apply(image(isr=(1, 2), partition_epoch=2))
    if is_refused:
        on.partition.isr_answered(on.proposals[0], ErrorCode.INVALID_UPDATE_VERSION)
    some_time_passes(on)
    assert joining(on)[1:2] == [(1, 2, 3)], "3 was never proposed"


def test_txn_t40_the_age_of_a_leadership_is_that_of_its_epoch() -> None:
    on = Bench(image())
    role = on.partition.leadership
    assert role is not None
    on.loop.now += 5
    assert role.age_ms == 5000
    on.partition.apply(image(epoch=5, partition_epoch=2, isr=(1, 2)))
    assert role.age_ms == 5000, "the epoch is the same"
    on.partition.apply(image(epoch=6, partition_epoch=3))
    assert (role.age_ms, on.partition.leadership) == (0, role)
