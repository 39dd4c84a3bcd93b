"""What a query is refused for before a record is read.

Always true: the text is one line that names the option or the topic-partition, and what to do about it.
"""

from __future__ import annotations

from strandline.ids import TopicPartition


class SparkError(ValueError):
    """One line; Spark shows it under its own error class."""


class OptionError(SparkError):
    """An option that is unknown, malformed, or contradicts another."""


class TopicError(SparkError):
    """A topic or partition that the options name and the cluster does not have."""


class DataLoss(SparkError):
    """Records that the query was to read are not there, and failOnDataLoss is true."""


def shown(partitions: list[TopicPartition], most: int = 8) -> str:
    """Partitions as Kafka writes them, in order; many are cut short so that the line can be read."""
    names = [f"{topic}-{partition}" for topic, partition in sorted(partitions)]
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")
