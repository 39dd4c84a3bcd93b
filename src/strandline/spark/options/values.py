"""An option's text and what it means: numbers, yes and no, times, sizes, JSON by topic and partition.

Always true: a text that is refused is refused with the option's name, what is expected, and what was given.
Times ("15m") and sizes ("10g") are written as Spark writes them: whole numbers with a unit, sizes in powers of 1024.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from strandline.ids import TopicPartition
from strandline.spark.errors import OptionError

EARLIEST, LATEST = -2, -1
"""How startingOffsets and endingOffsets write the two ends of a log in JSON."""

INT_MAX, LONG_MAX = 2**31 - 1, 2**63 - 1

_TIME_UNITS_MS = {"ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
_SIZE_SHIFTS = {"b": 0} | {name: 10 * power for power, unit in enumerate("kmgtp", 1) for name in (unit, f"{unit}b")}


def whole(name: str, text: str, at_least: int, at_most: int = LONG_MAX) -> int:
    if not re.fullmatch(r"[+-]?[0-9]{1,20}", text.strip()):
        raise OptionError(f"option '{name}' is a whole number, not '{text}'")
    number = int(text)
    if not at_least <= number <= at_most:
        bound = f"at least {at_least}" if number < at_least else f"at most {at_most}"
        raise OptionError(f"option '{name}' is {bound}, not {number}")
    return number


def yes(name: str, text: str) -> bool:
    match text.strip().lower():
        case "true":
            return True
        case "false":
            return False
    raise OptionError(f"option '{name}' is true or false, not '{text}'")


def time_ms(name: str, text: str) -> int:
    """Without a unit: milliseconds."""
    found = re.fullmatch(r"([0-9]{1,15})\s*([a-z]*)", text.strip().lower())
    if not found or (found[2] or "ms") not in _TIME_UNITS_MS:
        raise OptionError(f"option '{name}' is a time such as 500ms, 30s, 15m or 1h, not '{text}'")
    return int(found[1]) * _TIME_UNITS_MS[found[2] or "ms"]


def size_bytes(name: str, text: str) -> int:
    """Without a unit: bytes."""
    found = re.fullmatch(r"([0-9]{1,19})\s*([a-z]*)", text.strip().lower())
    if not found or (found[2] or "b") not in _SIZE_SHIFTS:
        raise OptionError(f"option '{name}' is a size such as 1048576, 512k, 64m or 1g, not '{text}'")
    size = int(found[1]) << _SIZE_SHIFTS[found[2] or "b"]
    if not 1 <= size <= LONG_MAX:
        raise OptionError(f"option '{name}' is a size of at least 1 byte and less than 8192p, not '{text}'")
    return size


def one_of(name: str, text: str, *choices: str) -> str:
    for choice in choices:
        if text.strip().lower() == choice.lower():
            return choice
    raise OptionError(f"option '{name}' is {' or '.join(choices)}, not '{text}'")


def partitions(name: str, text: str) -> frozenset[TopicPartition]:
    """{"topic": [0, 1]}."""
    example = '{"topicA":[0,1],"topicB":[2]}'
    found: set[TopicPartition] = set()
    for topic, numbers in _topics(name, text, example).items():
        if not isinstance(numbers, list) or not all(type(n) is int and 0 <= n <= INT_MAX for n in numbers):
            raise OptionError(f"option '{name}' is JSON such as {example}; '{topic}' has no list of partition numbers")
        found |= {(topic, number) for number in numbers}
    if not found:
        raise OptionError(f"option '{name}' names no partition; write it as {example}")
    return frozenset(found)


def offsets(name: str, text: str) -> dict[TopicPartition, int]:
    """{"topic": {"0": 23, "1": -1}}."""
    return _numbers(name, text, '{"topicA":{"0":23,"1":-1},"topicB":{"0":-2}}', EARLIEST)


def timestamps(name: str, text: str) -> dict[TopicPartition, int]:
    """{"topic": {"0": milliseconds since 1970}}."""
    return _numbers(name, text, '{"topicA":{"0":1700000000000,"1":1700000000000}}', 0)


def _numbers(name: str, text: str, example: str, at_least: int) -> dict[TopicPartition, int]:
    found: dict[TopicPartition, int] = {}
    for topic, entries in _topics(name, text, example).items():
        if not isinstance(entries, dict):
            raise OptionError(f"option '{name}' is JSON such as {example}; '{topic}' has no numbers by partition")
        for partition, number in entries.items():
            if not re.fullmatch(r"[0-9]{1,10}", partition):
                raise OptionError(f"option '{name}': '{partition}' under '{topic}' is not a partition number")
            if type(number) is not int or not at_least <= number <= LONG_MAX:
                raise OptionError(f"option '{name}': {topic}-{partition} has a whole number of at least {at_least}")
            if (topic, int(partition)) in found:
                raise OptionError(f"option '{name}' has {topic}-{int(partition)} twice")
            found[topic, int(partition)] = number
    if not found:
        raise OptionError(f"option '{name}' names no partition; write it as {example}")
    return dict(sorted(found.items()))


def _topics(name: str, text: str, example: str) -> Mapping[str, object]:
    def once(pairs: list[tuple[str, object]]) -> dict[str, object]:
        names = [key for key, _ in pairs]
        if len(set(names)) < len(names):
            repeated = next(key for key in names if names.count(key) > 1)
            raise OptionError(f"option '{name}' has '{repeated}' twice")
        return dict(pairs)

    try:
        value = json.loads(text, object_pairs_hook=once)
    except (json.JSONDecodeError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise OptionError(f"option '{name}' is JSON such as {example}, not '{text}'")
    return value
