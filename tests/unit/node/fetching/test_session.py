"""Whom to name, whom to forget, who rests: a fetch session without a connection."""

# mypy: disable-error-code="unreachable"

from __future__ import annotations

from typing import Any

from strandline.ids import Uuid
from strandline.node.fetching.session import EPOCH_MAX, NAMED_MAX, FetcherRequest, FetcherSession, Followed
from strandline.wire import fetch
from strandline.wire.fetch import FetchPartition, FetchRequest
from strandline.wire.fetch_asking import write_request

TOPIC_ID = Uuid(b"t" * 16)


class Position:
    """As much of a partition as a session looks at."""

    def __init__(self, index: int = 0, topic: str = "t") -> None:
        self.topic, self.index, self.topic_id = topic, index, Uuid(topic.encode() * 16)
        self.offset: int | None = 0

    def fetch_position(self, max_bytes: int) -> FetchPartition | None:
        return None if self.offset is None else FetchPartition(self.index, 5, self.offset, 4, 0, max_bytes)


class Story:
    def __init__(self, count: int = 3) -> None:
        self.session = FetcherSession(1000)
        self.partitions: list[Any] = [Position(index) for index in range(count)]
        self.blocked: list[Followed] = []
        self.holds = False
        for partition in self.partitions:
            self.session.follow(partition)

    def ask(self, **options: Any) -> FetcherRequest | None:
        return self.session.next_request(self._on_blocked, **options)

    def _on_blocked(self, blocked: list[Followed]) -> bool:
        self.blocked += blocked
        for followed in blocked:
            self.session.rest(followed)
        return self.holds

    def open(self) -> None:
        """The first request, and its answer."""
        assert self.ask() is not None
        self.session.answered(77)

    def member(self, index: int) -> Followed:
        return self.session.members[self.partitions[index]]


def named(request: FetcherRequest | None) -> list[tuple[int, int]] | None:
    """Partitions and their offsets."""
    return None if request is None else [(p.partition, p.fetch_offset) for _, ps in request.topics for p in ps]


def forgotten(request: FetcherRequest | None) -> list[int]:
    assert request is not None
    return [index for _, indexes in request.forgotten for index in indexes]


def test_the_first_request_names_all_and_the_next_ones_what_changed() -> None:
    story = Story()
    first = story.ask()
    assert first is not None
    assert (first.session_id, first.epoch, named(first)) == (0, 0, [(0, 0), (1, 0), (2, 0)])
    assert first.topics[0][0] == TOPIC_ID
    story.session.answered(77)
    second = story.ask()
    assert second == (2, 77, 1, [], [])
    story.partitions[1].offset = 10
    story.session.name(story.member(1))
    third = story.ask()
    assert third is not None
    assert (third.session_id, third.epoch, named(third)) == (77, 2, [(1, 10)])


def test_topics_are_grouped_and_named_as_the_version_names_them() -> None:
    session = FetcherSession(1000)
    for topic in ("a", "b", "a"):
        session.follow(Position(len(session.members), topic))  # type: ignore[arg-type]
    session.begin(13)
    request = session.next_request(lambda blocked: False)
    assert request is not None
    assert [(topic, [p.partition for p in ps]) for topic, ps in request.topics] == [
        (b"a" * 16, [0, 2]),
        (b"b" * 16, [1]),
    ]
    session.begin(12)
    request = session.next_request(lambda blocked: False)
    assert request is not None
    assert [topic for topic, _ in request.topics] == ["a", "b"]
    assert session.find("b", 1, request.number) is not None
    assert session.find(b"b" * 16, 1, request.number) is None


def test_nobody_to_ask_for_is_no_request() -> None:
    session = FetcherSession(1000)
    assert session.next_request(lambda blocked: False) is None
    story = Story(1)
    story.session.unfollow(story.partitions[0])
    assert story.ask() is None


def test_one_that_rests_is_forgotten_and_comes_back_in_its_time() -> None:
    story = Story()
    story.open()
    story.session.rest(story.member(1), until=10.0)
    assert story.session.next_wake() == 10.0
    assert forgotten(story.ask()) == [1]
    story.session.wake(9.9)
    assert named(story.ask()) == []
    story.session.wake(10.0)
    request = story.ask()
    assert (named(request), forgotten(request)) == ([(1, 0)], [])
    assert story.session.next_wake() is None


def test_one_that_comes_back_before_it_was_forgotten_is_only_named() -> None:
    story = Story()
    story.open()
    story.session.rest(story.member(1), until=1.0)
    story.session.wake(1.0)
    request = story.ask()
    assert (named(request), forgotten(request)) == ([(1, 0)], [])


def test_a_rest_that_was_cut_short_does_not_wake_anybody_later() -> None:
    story = Story()
    story.open()
    turn = story.session.rest(story.member(1), until=1.0)
    story.session.follow(story.partitions[1])
    assert named(story.ask()) == [(1, 0)]
    assert story.session.next_wake() is None
    story.session.wake(2.0)
    assert not story.session.wake_turn(story.member(1), turn)
    assert named(story.ask()) == []
    later = story.session.rest(story.member(1))
    followed = story.member(1)
    story.session.unfollow(story.partitions[1])
    assert not story.session.wake_turn(followed, later)


def test_one_without_a_position_is_told_of_and_left_out() -> None:
    story = Story()
    story.partitions[2].offset = None
    assert named(story.ask()) == [(0, 0), (1, 0)]
    assert story.blocked == [story.member(2)]


def test_the_others_can_wait_with_it() -> None:
    story = Story()
    story.partitions[2].offset = None
    story.holds = True
    assert story.ask() is None
    story.partitions[2].offset = 3
    story.session.name(story.member(2))
    request = story.ask()
    assert request is not None
    assert (request.epoch, named(request)) == (0, [(0, 0), (1, 0), (2, 3)])


def test_a_throttled_one_rests_until_it_may_go_on() -> None:
    story = Story()
    story.open()
    for index in (0, 1):
        story.session.name(story.member(index))
    request = story.ask(rest_until=lambda followed: 5.0 if followed.partition.index == 1 else None)
    assert (named(request), forgotten(request)) == ([(0, 0)], [1])
    story.session.wake(5.0)
    assert named(story.ask(rest_until=lambda followed: None)) == [(1, 0)]


def test_an_answer_counts_only_for_the_last_request_that_named_its_partition() -> None:
    story = Story()
    story.open()
    story.session.name(story.member(1))
    second = story.ask()
    assert second is not None
    assert story.session.find(TOPIC_ID, 1, second.number - 1) is None
    assert story.session.find(TOPIC_ID, 1, second.number) is story.member(1)
    assert story.session.find(TOPIC_ID, 0, second.number) is story.member(0)
    assert story.session.find(TOPIC_ID, 9, second.number) is None
    # Gone and come back, it is another.
    story.session.unfollow(story.partitions[0])
    story.session.follow(story.partitions[0])
    assert story.session.find(TOPIC_ID, 0, second.number) is None
    request = story.ask()
    assert (named(request), forgotten(request)) == ([(0, 0)], [])


def test_one_that_is_unfollowed_is_forgotten() -> None:
    story = Story()
    story.open()
    story.session.unfollow(story.partitions[1])
    assert story.session.find(TOPIC_ID, 1, 100) is None
    assert forgotten(story.ask()) == [1]
    story.session.unfollow(story.partitions[1])
    assert forgotten(story.ask()) == []


def test_a_session_that_begins_anew_names_all_but_those_that_rest() -> None:
    story = Story()
    story.open()
    story.session.rest(story.member(1), until=1.0)
    story.session.begin()
    assert not story.session.is_open
    request = story.ask()
    assert request is not None
    assert (request.session_id, request.epoch, named(request), forgotten(request)) == (77, 0, [(0, 0), (2, 0)], [])
    assert story.session.first_number == request.number
    story.session.begin(forget_id=True)
    again = story.ask()
    assert again is not None
    assert (again.session_id, again.epoch) == (0, 0)


def test_without_a_session_every_request_names_all() -> None:
    story = Story()
    assert story.ask() is not None
    story.session.answered(0)
    request = story.ask()
    assert request is not None
    assert (request.session_id, request.epoch, named(request)) == (0, 0, [(0, 0), (1, 0), (2, 0)])


def test_a_second_request_is_sent_only_for_somebody() -> None:
    story = Story()
    assert story.ask() is not None
    assert not story.session.is_open  # its id is not known yet
    story.session.answered(77)
    assert story.session.is_open
    assert not story.session.is_due
    assert story.ask(only_if_named=True) is None
    story.session.rest(story.member(0))
    story.session.name(story.member(1))
    assert story.session.is_due
    request = story.ask(only_if_named=True)
    assert (named(request), forgotten(request)) == ([(1, 0)], [0])


def test_the_epoch_wraps_to_one() -> None:
    story = Story()
    story.open()
    story.session._epoch = EPOCH_MAX
    epochs = [request.epoch for _ in range(2) if (request := story.ask()) is not None]
    assert epochs == [EPOCH_MAX, 1]


def test_a_topic_of_the_same_name_takes_the_place_of_the_one_before() -> None:
    session = FetcherSession(1000)
    session.begin(12)
    old, new = Position(), Position()
    session.follow(old)  # type: ignore[arg-type]
    session.next_request(lambda blocked: False)
    session.answered(77)
    session.follow(new)  # type: ignore[arg-type]
    session.unfollow(old)  # type: ignore[arg-type]
    request = session.next_request(lambda blocked: False)
    assert (named(request), forgotten(request)) == ([(0, 0)], [])


def is_decoded(request: FetcherRequest | None) -> bool:
    """By a leader that reads as much as it does from anybody."""
    assert request is not None
    asked = FetchRequest(
        1, 9, 500, 1, 1, 0, request.session_id, request.epoch, request.topics, request.forgotten, "", ""
    )
    return fetch.parse(17, memoryview(write_request(17, asked)), 0).topics == request.topics


def test_a_request_names_as_many_as_a_leader_decodes_and_the_next_one_goes_on() -> None:
    session, count = FetcherSession(1000), 3 * NAMED_MAX + 5
    partitions: list[Any] = [Position() for _ in range(count)]
    for number, partition in enumerate(partitions):
        partition.topic_id = Uuid(number.to_bytes(16, "big"))
        session.follow(partition)
    seen: list[int] = []
    for round_ in range(4):
        request = session.next_request(lambda blocked: False)
        assert request is not None
        assert (request.epoch, is_decoded(request)) == (round_, True)
        assert session.is_due == (round_ < 3)
        seen += [int.from_bytes(topic, "big") for topic, _ in request.topics if isinstance(topic, bytes)]
        session.answered(77)
    assert seen == list(range(count))
    # And as many to be forgotten.
    for partition in partitions[5:]:
        session.unfollow(partition)
    session.follow(partitions[-1])
    gone = []
    for _ in range(3):
        request = session.next_request(lambda blocked: False)
        assert is_decoded(request)
        gone += forgotten(request)
    assert len(gone) == 3 * NAMED_MAX - 1


def test_many_that_are_blocked_do_not_keep_the_others_waiting() -> None:
    story = Story(2 * NAMED_MAX + 1)
    for partition in story.partitions[: 2 * NAMED_MAX]:
        partition.offset = None
    assert named(story.ask()) == [(2 * NAMED_MAX, 0)]
    assert len(story.blocked) == 2 * NAMED_MAX


def test_without_a_session_all_have_their_turn() -> None:
    story = Story(NAMED_MAX + 7)
    seen = []
    for _ in range(3):
        request = story.ask()
        assert request is not None
        assert (request.session_id, request.epoch) == (0, 0)
        seen += [index for index, _ in named(request) or []]
        story.session.answered(0)
    assert seen[: NAMED_MAX + 7] == list(range(NAMED_MAX + 7))
    assert len(seen) == 3 * NAMED_MAX
