"""Events of several nodes, each once and in order."""

# mypy: allow-incomplete-defs, allow-untyped-defs, disable-error-code="typeddict-item"

from __future__ import annotations

from typing import Any

from strandline.cli.monitoring.event_merging import EventMerger, events_in


def event(sequence: int, wall_ms: int, kind: str = "leader elected", **values: Any) -> dict[str, Any]:
    given = {"reason": "why", "topic": "t", "partition": 0, "facts": {"leader_epoch": 1, "partition_epoch": 1}}
    return {"sequence": sequence, "wall_ms": wall_ms, "kind": kind} | given | values


def answer(node_id: int, *events: dict[str, Any]) -> list[Any]:
    return events_in({"node_id": node_id, "events": list(events)})


def epochs(leader_epoch: int, partition_epoch: int) -> dict[str, int]:
    return {"leader_epoch": leader_epoch, "partition_epoch": partition_epoch}


def test_an_event_of_several_nodes_is_shown_once_from_the_first():
    new = EventMerger().add([*answer(1, event(1, 1005)), *answer(2, event(9, 1001)), *answer(3, event(4, 1009))])
    assert [(one.node_id, one.wall_ms) for one in new] == [(2, 1001)]


def test_an_event_that_is_reported_later_is_not_shown_again():
    story = EventMerger()
    assert len(story.add(answer(1, event(1, 1000)))) == 1
    assert story.add(answer(2, event(1, 2000))) == []
    assert len(story.add(answer(2, event(2, 2001, facts=epochs(1, 2))))) == 1


def test_changes_of_other_partitions_kinds_and_epochs_are_others():
    events = [
        event(1, 1000),
        event(2, 1000, partition=1),
        event(3, 1000, topic="u"),
        event(4, 1000, "isr shrunk"),
        event(5, 1000, facts=epochs(2, 2)),
        event(6, 1000, "fenced", topic=None, partition=None, facts={"broker": 1, "broker_epoch": 5}),
        event(7, 1000, "fenced", topic=None, partition=None, facts={"broker": 2, "broker_epoch": 5}),
    ]
    assert len(EventMerger().add(answer(1, *events))) == len(events)


def test_what_a_node_did_itself_is_its_own():
    new = EventMerger().add([*answer(1, event(1, 1000, "truncated")), *answer(2, event(1, 1000, "truncated"))])
    assert [one.node_id for one in new] == [1, 2]


def test_a_node_that_is_asked_from_its_beginning_again_repeats_nothing():
    story = EventMerger()
    both = answer(1, event(1, 1000, "truncated"), event(2, 1001))
    assert len(story.add(both)) == 2
    assert story.add(both) == []


def test_order_is_by_time():
    new = EventMerger().add([*answer(1, event(1, 3000)), *answer(2, event(7, 1000, facts=epochs(0, 0)))])
    assert [one.wall_ms for one in new] == [1000, 3000]


def test_a_topics_story_has_the_brokers_in_it():
    events = [event(1, 1000), event(2, 1001, topic="u"), event(3, 1002, "fenced", topic=None, partition=None)]
    assert [one.sequence for one in EventMerger("t").add(answer(1, *events))] == [1, 3]


def test_what_is_too_old_is_left_out():
    assert [
        one.wall_ms for one in EventMerger(since_ms=2000).add(answer(1, event(1, 1999), event(2, 2000, partition=1)))
    ] == [2000]
