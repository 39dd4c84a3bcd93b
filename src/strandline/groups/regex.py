"""Subscriptions by pattern: which topics a regular expression stands for.

Always true: patterns are RE2's, whose time grows with the text and not with the pattern's tricks, and match a topic's
whole name, be the topic internal or not, as in Kafka's coordinator: a pattern that is to leave internal topics out says
so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import re2

from strandline.errors import ErrorCode, KafkaError
from strandline.metadata.image import MetadataImage

RE2_MEMORY_BYTES_MAX = 8 << 20
"""A pattern that compiles to more than this is refused."""


PATTERN_CHARACTERS_MAX = 4096
"""Of a pattern that a member subscribes by: sixteen names of topics fit, of the longest there are."""


def check(pattern: str) -> None:
    """INVALID_REGULAR_EXPRESSION if RE2 does not understand the pattern, or finds it too large."""
    if len(pattern) > PATTERN_CHARACTERS_MAX:
        raise KafkaError(
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            f"SubscribedTopicRegex has {len(pattern)} characters, more than {PATTERN_CHARACTERS_MAX}.",
        )
    _compile(pattern)


def matcher(pattern: str) -> Callable[[str], bool]:
    """Whether a whole text matches; INVALID_REGULAR_EXPRESSION if RE2 does not understand the pattern."""
    check(pattern)
    matches = _compile(pattern)
    return lambda text: matches(text) is not None


def resolve(patterns: Iterable[str], image: MetadataImage) -> dict[str, frozenset[str]]:
    """The names of the topics that each pattern matches. A pattern that can't be compiled matches none."""
    names = list(image.topics)
    resolved: dict[str, frozenset[str]] = {}
    for pattern in patterns:
        try:
            matches = _compile(pattern)
        except KafkaError:
            # Members' patterns were checked; what another version wrote into the log may not have been, and must not
            # stop us.
            resolved[pattern] = frozenset()
        else:
            resolved[pattern] = frozenset(name for name in names if matches(name))
    return resolved


def _compile(pattern: str) -> Callable[[str], object]:
    """What is true of a text that matches as a whole."""
    options = re2.Options()
    options.log_errors = False
    options.max_mem = RE2_MEMORY_BYTES_MAX
    try:
        matches: Callable[[str], object] = re2.compile(pattern, options).fullmatch
    except re2.error as error:
        reason = error.args[0]
        text = reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
        raise KafkaError(
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            f"SubscribedTopicRegex `{pattern}` is not a valid regular expression: {text}.",
        ) from error
    return matches
