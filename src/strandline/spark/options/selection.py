"""Which topics and partitions a query reads: exactly one of subscribe, subscribePattern and assign.

Always true: a topic that is named must be there when the query starts; a pattern takes what matches, now and later, and never
an internal topic. A pattern is found anywhere in the name, as Spark's Kafka connector does: anchor it with ^ and $.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping

from strandline.ids import TopicPartition
from strandline.spark.errors import OptionError
from strandline.spark.options import values


@dataclasses.dataclass(frozen=True, slots=True)
class Subscribe:
    topics: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class SubscribePattern:
    pattern: str

    def matches(self, topic: str) -> bool:
        return re.search(self.pattern, topic) is not None


@dataclasses.dataclass(frozen=True, slots=True)
class Assign:
    partitions: frozenset[TopicPartition]

    @property
    def topics(self) -> tuple[str, ...]:
        return tuple(sorted({topic for topic, _ in self.partitions}))


Selection = Subscribe | SubscribePattern | Assign

OPTIONS = ("subscribe", "subscribePattern", "assign")


def selection(options: Mapping[str, str]) -> Selection:
    """From options under their canonical names."""
    given = [name for name in OPTIONS if name in options]
    if not given:
        raise OptionError("say what to read with one of the options 'subscribe', 'subscribePattern' and 'assign'")
    if len(given) > 1:
        both = " and ".join(f"'{name}'" for name in given)
        raise OptionError(f"options {both} contradict each other; keep one of them")
    text = options[given[0]].strip()
    match given[0]:
        case "subscribe":
            topics = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
            if not topics:
                raise OptionError(
                    f"option 'subscribe' names no topic; write topic names with commas between, not '{text}'"
                )
            return Subscribe(topics)
        case "subscribePattern":
            if not text:
                raise OptionError("option 'subscribePattern' is empty; write a regular expression such as ^orders-.*$")
            try:
                re.compile(text)
            except re.error as error:
                raise OptionError(f"option 'subscribePattern' is no regular expression: {error} in '{text}'") from None
            return SubscribePattern(text)
    return Assign(values.partitions("assign", text))
