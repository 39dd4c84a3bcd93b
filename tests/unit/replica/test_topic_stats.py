# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

from strandline.replica.topic_stats import COUNTS, BrokerTopicStats, TopicStats


def test_a_topic_begins_with_nothing():
    stats = BrokerTopicStats()
    assert all(getattr(stats["t"], name) == 0 for name in COUNTS)
    assert stats["t"] is stats["t"]


def test_what_a_deleted_topic_did_stays_in_the_total():
    stats = BrokerTopicStats()
    stats["a"].bytes_in += 10
    stats["b"].bytes_in += 1
    stats.forget("a")
    stats.forget("never")
    assert list(stats) == ["b"]
    assert stats.total().bytes_in == 11
    assert stats["a"].bytes_in == 0


def test_sums_have_every_count():
    one, other = TopicStats(), TopicStats()
    for number, name in enumerate(COUNTS, 1):
        setattr(other, name, number)
    one.add(other)
    one.add(other)
    assert [getattr(one, name) for name in COUNTS] == [2 * number for number in range(1, len(COUNTS) + 1)]
