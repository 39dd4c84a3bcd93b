"""What was written to and read from topics, counted by the broker that did it.

Always true: counts only rise, and belong to one node; a topic that is deleted takes its own with it, and stays in the total.
Counting is one addition to a plain number, so that it may be done per batch.
"""

from __future__ import annotations

COUNTS = (
    "messages_in",
    "bytes_in",
    "bytes_out",
    "bytes_rejected",
    "replication_bytes_in",
    "replication_bytes_out",
    "failed_produce_requests",
    "failed_fetch_requests",
    "total_produce_requests",
    "total_fetch_requests",
)
"""Kafka's BrokerTopicMetrics, of which clients' and followers' bytes are told apart; a request counts once for each partition."""


class TopicStats:
    __slots__ = COUNTS

    messages_in: int
    bytes_in: int
    bytes_out: int
    bytes_rejected: int
    replication_bytes_in: int
    replication_bytes_out: int
    failed_produce_requests: int
    failed_fetch_requests: int
    total_produce_requests: int
    total_fetch_requests: int

    def __init__(self) -> None:
        for name in COUNTS:
            setattr(self, name, 0)

    def add(self, other: TopicStats) -> None:
        for name in COUNTS:
            setattr(self, name, getattr(self, name) + getattr(other, name))


class BrokerTopicStats(dict[str, TopicStats]):
    """By topic; `stats[topic]` begins with nothing. What can't be said of a topic that is there is counted in `of_no_topic`."""

    def __init__(self) -> None:
        super().__init__()
        self.of_no_topic = TopicStats()

    def __missing__(self, topic: str) -> TopicStats:
        stats = self[topic] = TopicStats()
        return stats

    def forget(self, topic: str) -> None:
        """The topic is not on this node any more."""
        if (stats := self.pop(topic, None)) is not None:
            self.of_no_topic.add(stats)

    def total(self) -> TopicStats:
        total = TopicStats()
        for stats in (self.of_no_topic, *self.values()):
            total.add(stats)
        return total
