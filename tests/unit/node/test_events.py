"""The journal of a node."""

# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from strandline.ids import Uuid
from strandline.metadata.changes import changes
from strandline.metadata.image import MetadataImage, PartitionImage, TopicImage
from strandline.node.events import CHANGES_AT_ONCE_MAX, KINDS, LOGGED_MAX, Events

RUN = Uuid(bytes(15) + b"\x01")


class Clock:
    def __init__(self) -> None:
        self.ms = 1000

    def monotonic(self) -> float:
        return self.ms / 1000

    def wall_ms(self) -> int:
        return self.ms


class Log:
    def __init__(self) -> None:
        self.lines: list[tuple[str, str, dict[str, object]]] = []

    def info(self, event: str, **values: object) -> None:
        self.lines.append(("info", event, values))

    def warning(self, event: str, **values: object) -> None:
        self.lines.append(("warning", event, values))


@pytest.fixture
def log():
    return Log()


@pytest.fixture
def events(log):
    return Events(Clock(), log, RUN, events_max=5)


def sequences(events: Events, since: int) -> list[int]:
    return [event.sequence for event in events.since(since)]


def test_an_event_says_what_where_why_and_when(events, log):
    events.note("truncated", "the leader has other records", topic="t", partition=3, offset=7)
    [event] = events.since(0)
    assert event == (1, 1000, "truncated", "the leader has other records", "t", 3, {"offset": 7})
    assert log.lines == [
        ("info", "truncated", {"reason": "the leader has other records", "offset": 7, "topic": "t", "partition": 3})
    ]


def test_what_somebody_should_look_at_is_a_warning(events, log):
    events.note("dir failed", "no space left", path="/data")
    assert log.lines[0][0] == "warning"


def test_a_kind_that_nobody_knows_is_a_bug(events):
    with pytest.raises(AssertionError, match="no kind of event"):
        events.note("exploded", "why not")


def test_the_newest_are_kept(events):
    for _ in range(12):
        events.note("fenced", "gone", broker=1)
    assert sequences(events, 0) == [8, 9, 10, 11, 12]
    assert sequences(events, 9) == [10, 11, 12]
    assert sequences(events, 3) == [8, 9, 10, 11, 12]
    assert sequences(events, 12) == []
    assert [event.sequence for event in events.since(8, 2)] == [9, 10]
    assert events.counts["fenced"] == 12


def test_a_number_of_another_run_gets_everything(events):
    events.note("fenced", "gone", broker=1)
    assert sequences(events, 40) == [1]


async def test_who_waits_is_woken_by_the_next_event(events):
    waiting = asyncio.create_task(events.wait(0, 60))
    await asyncio.sleep(0)
    assert not waiting.done()
    events.note("fenced", "gone", broker=1)
    await waiting
    await events.wait(0, 60)  # there is one already


async def test_who_waits_in_vain_is_let_go(events):
    await events.wait(0, 0.001)
    await events.wait(0, 0)
    assert events.since(0) == []
    assert not events._waiting


# Images


def image(*partitions: PartitionImage) -> MetadataImage:
    topic = TopicImage("t", RUN, partitions)
    return MetadataImage(topics={"t": topic}, topics_by_id={RUN: topic})


FIRST = PartitionImage(replicas=(1, 2), isr=(1, 2), leader=1, leader_epoch=1, partition_epoch=1)


def test_what_an_image_changed_is_noted(events):
    shrunk = replace(FIRST, isr=(1,), partition_epoch=2)
    events.applied(image(FIRST), 1)
    assert events.last == 0, "how things were when the node came is no news"
    events.applied(image(shrunk), 1)
    events.applied(image(replace(FIRST, partition_epoch=3)), 1)
    assert [event.kind for event in events.since(0)] == ["isr shrunk", "isr expanded"]
    assert (events.isr_shrinks, events.isr_expands) == (1, 1)


def test_only_the_leader_counts_a_change_of_its_isr(events):
    events.applied(image(FIRST), 2)
    events.applied(image(replace(FIRST, isr=(1,), partition_epoch=2)), 2)
    assert (events.last, events.isr_shrinks) == (1, 0)


def test_what_happened_before_the_node_came_is_not_noted(events):
    events.applied(image(FIRST), 1, live=False)
    events.applied(image(replace(FIRST, isr=(1,), partition_epoch=2)), 1, live=False)
    assert events.last == 0
    events.applied(image(FIRST), 1)
    assert events.last == 1


async def test_thousands_of_changes_are_noted_in_pieces_and_not_all_logged(log):
    clock = Clock()
    events = Events(clock, log, RUN)
    many = [FIRST] * 1000
    events.applied(image(*many), 1)
    events.applied(image(*(replace(one, isr=(1,), partition_epoch=2) for one in many)), 1)
    assert events.last == CHANGES_AT_ONCE_MAX
    events.applied(image(*many), 1)  # it waits for its turn
    clock.ms += 1
    while events.last < 1000:
        await events.wait(events.last, 1)
    assert {event.kind for event in events.since(0, 1000)} == {"isr shrunk"}
    assert {event.wall_ms for event in events.since(0)} == {1000}, "as of when the images came"
    while events.last < 2000:
        await events.wait(events.last, 1)
    assert len(log.lines) == LOGGED_MAX
    events.note("dir failed", "no space left")
    assert log.lines[-1][1] == "dir failed"
    clock.ms += 1000
    events.note("fenced", "gone")
    assert [line[1:] for line in log.lines[-2:]] == [
        ("more happened than is logged; /events has it", {"events": 2000 - LOGGED_MAX}),
        ("fenced", {"reason": "gone"}),
    ]


def test_every_kind_that_changes_tell_is_known():
    moving = replace(FIRST, replicas=(1, 2, 3), adding_replicas=(3,), leader=2, leader_epoch=2, elr=(3,), isr=(2,))
    kinds = {one.kind for one in changes(image(FIRST), image(moving))}
    kinds |= {one.kind for one in changes(image(moving), image(FIRST))}
    assert {"leader elected", "isr shrunk", "isr expanded", "elr changed", "reassignment started"} < kinds <= KINDS
