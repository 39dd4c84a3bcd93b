"""Each anomaly of a client history is found under its name, and a sound history has none."""

from __future__ import annotations

from strandline.histories.judges import clients
from strandline.histories.record_history import RecordPosition

from .recording import KEY, RecordedHistory, at


def sound() -> RecordedHistory:
    return RecordedHistory().send("a", 0).send("b", 1).poll(a=0, b=1).send("c", 2).poll(c=2).stored("a", "b", "c")


def test_a_sound_history_has_none() -> None:
    story = sound()
    story.history.note_caught_up("reader")
    assert not clients.judge(story.history)
    assert story.history.operations == 5


def test_inconsistent_offsets_between_two_reads() -> None:
    story = RecordedHistory().send("a").send("b").poll(a=0)
    story.history.note_begin("other", {KEY: 0})
    story.history.note_poll("other", [(at(0), b"b")])
    assert "inconsistent-offsets" in story.stored("a").found()


def test_inconsistent_offsets_between_an_acknowledgement_and_what_is_stored() -> None:
    assert "inconsistent-offsets" in RecordedHistory().send("a", 0).send("b", 1).stored("b", "a").found()


def test_lost_write() -> None:
    assert "lost-write" in RecordedHistory().send("a", 0).send("b", 1).stored("a").found()


def test_what_only_the_leader_acknowledged_may_be_lost() -> None:
    story = RecordedHistory().send("a", 0, by_all=False, idempotent=False).send("b", 0)
    assert not story.stored("b").found()


def test_what_nobody_knows_of_may_be_there_or_not() -> None:
    assert not RecordedHistory().send("a").send("b").stored("a").found()


def test_what_an_allowed_loss_took_is_excused_and_the_rest_is_not() -> None:
    story = RecordedHistory().send("a", 0).send("b", 1).poll(a=0, b=1).send("late")
    story.history.note_loss("t", 0, 1)
    story.history.note_begin("reader", {KEY: 0})
    story.history.note_acknowledged(b"late", at(2))  # it was on its way
    story.send("c", 1).poll(a=0, c=1).stored("a", "c")
    assert not story.found()
    assert story.history.sends[b"b"].is_excused
    story.history.stored.pop(at(0))
    assert story.found() >= {"lost-write", "unrepeatable-read"}


def test_unseen() -> None:
    story = RecordedHistory().send("a", 0).send("b", 1).poll(a=0).stored("a", "b")
    assert not story.found()
    story.history.note_caught_up("reader")
    assert story.found() == {"unseen"}


def test_duplicate_of_an_idempotent_producer() -> None:
    assert RecordedHistory().send("a", 0).stored("a", "a").found() == {"duplicate"}


def test_a_plain_retry_may_leave_a_duplicate() -> None:
    assert not RecordedHistory().send("a", 1, idempotent=False).stored("a", "a").found()


def test_aborted_read() -> None:
    story = RecordedHistory().send("a")
    story.history.note_failed(b"a", surely=True)
    assert story.poll(a=0).stored("a").found() == {"aborted-read"}


def test_a_send_that_failed_may_be_there_if_nobody_knows() -> None:
    story = RecordedHistory().send("a")
    story.history.note_failed(b"a")
    assert not story.poll(a=0).stored("a").found()


def test_invented() -> None:
    assert sound().poll(x=3).stored("a", "b", "c", "x").found() == {"invented"}


def test_invented_in_another_partition() -> None:
    story = RecordedHistory().send("a")
    story.history.note_stored(RecordPosition("t", 1, 0), b"a")
    assert story.found() == {"invented"}


def test_unrepeatable_read() -> None:
    assert RecordedHistory().send("a").poll(a=0).found() == {"unrepeatable-read"}


def test_dirty_read() -> None:
    story = RecordedHistory().send("a")
    story.committed = 0
    assert story.poll(a=0).stored("a").found() == {"dirty-read"}


def test_early_ack() -> None:
    story = RecordedHistory()
    story.committed = 0
    assert story.send("a", 0).stored("a").found() == {"early-ack"}
    story = RecordedHistory()
    story.committed = 0
    assert not story.send("a", 0, by_all=False, idempotent=False).stored("a").found()


def test_int_poll_skip() -> None:
    assert sound().send("d").send("e").poll(e=4).stored("d", "e", first=3).found() == {"poll-skip"}
    story = RecordedHistory().send("a").send("b").send("c").poll(a=0, c=2).stored("a", "b", "c")
    assert story.found() == {"int-poll-skip"}


def test_offsets_without_a_value_are_no_skip() -> None:
    assert not RecordedHistory().send("a").send("b").poll(a=0, b=5).stored("a").stored("b", first=5).found()


def test_int_nonmonotonic_poll() -> None:
    story = RecordedHistory().send("a").send("b").poll(b=1, a=0).stored("a", "b")
    assert story.found() == {"int-nonmonotonic-poll", "poll-skip"}


def test_poll_skip_at_the_beginning() -> None:
    assert RecordedHistory().send("a").send("b").poll(b=1).stored("a", "b").found() == {"poll-skip"}


def test_nonmonotonic_poll() -> None:
    assert RecordedHistory().send("a").send("b").poll(a=0, b=1).poll(a=0).stored("a", "b").found() == {
        "nonmonotonic-poll"
    }


def test_a_consumer_that_begins_anew_may_read_again() -> None:
    story = RecordedHistory().send("a").send("b").poll(a=0, b=1)
    story.history.note_begin("reader", {KEY: 0})
    assert not story.poll(a=0, b=1).stored("a", "b").found()


def test_nonmonotonic_send() -> None:
    assert RecordedHistory().send("a").send("b").stored("b", "a").found() == {"nonmonotonic-send"}


def test_int_nonmonotonic_send() -> None:
    assert RecordedHistory().together("a", "b").stored("b", "a").found() == {"int-nonmonotonic-send"}


def test_sends_of_two_producers_come_in_any_order() -> None:
    assert not RecordedHistory().send("a").send("b", who="other").stored("b", "a").found()


def test_plain_sends_come_in_any_order() -> None:
    assert not RecordedHistory().send("a", idempotent=False).send("b", idempotent=False).stored("b", "a").found()


def test_a_problem_says_when() -> None:
    story = RecordedHistory().send("a", 0)
    assert [problem.at for problem in clients.judge(story.history)] == [1.0]


def test_falling_end() -> None:
    assert not RecordedHistory().end(1).end(1, who="other").end(3).found()
    assert RecordedHistory().end(1).end(3).end(2, who="other").found() == {"falling-end"}


def test_the_end_of_a_leader_that_does_not_know_of_the_next_may_be_old() -> None:
    """Seed 800513: it had stood still, and clients that stood still with it asked it first."""
    assert (
        not RecordedHistory().end(1, leader_epoch=4).end(3, leader_epoch=5).end(2, leader_epoch=4, who="other").found()
    )
    assert RecordedHistory().end(3, leader_epoch=4).end(2, leader_epoch=5).found() == {"falling-end"}
    story = RecordedHistory().end(1, leader_epoch=4).end(3, leader_epoch=5).end(2, leader_epoch=4)
    assert story.end(1, leader_epoch=4).found() == {"falling-end"}


def test_ends_that_were_asked_for_at_once_may_come_in_any_order() -> None:
    assert not RecordedHistory().end(1).end(3).end(2, since=1.5).found()
    assert RecordedHistory().end(2).end(3).end(1, since=1.5).found() == {"falling-end"}


def test_after_an_allowed_loss_the_end_may_have_fallen() -> None:
    story = RecordedHistory().end(3)
    story.history.note_loss("t", 0, 1)
    story.end(3, since=0.5).end(1)
    assert not story.found()
    assert story.end(0).found() == {"falling-end"}
