"""Partitions by topic: each topic once, in the order in which they came."""

from __future__ import annotations

from strandline.client.core.by_topic import by_topic


def test_topics_and_their_partitions_keep_their_order() -> None:
    found = by_topic([("b", 2), ("a", 0), ("b", 1)])
    assert list(found.items()) == [("b", [2, 1]), ("a", [0])]


def test_nothing_has_no_topics() -> None:
    assert by_topic([]) == {}
