from __future__ import annotations

import time

import pytest

from strandline.errors import ErrorCode, KafkaError
from strandline.groups import regex
from strandline.ids import Uuid
from strandline.metadata.image import MetadataImage, TopicImage


def image(*names: str) -> MetadataImage:
    topics = {name: TopicImage(name, Uuid(index.to_bytes(16, "big"))) for index, name in enumerate(names, start=1)}
    return MetadataImage(topics=topics, topics_by_id={topic.topic_id: topic for topic in topics.values()})


def test_a_pattern_matches_whole_names() -> None:
    found = regex.resolve(["foo", "foo.*", ".*o"], image("foo", "foobar", "barfoo", "bar"))
    assert found == {"foo": {"foo"}, "foo.*": {"foo", "foobar"}, ".*o": {"foo", "barfoo"}}


def test_alternatives_are_whole_names_too() -> None:
    assert regex.resolve(["a|ab"], image("a", "ab", "abc"))["a|ab"] == {"a", "ab"}


def test_a_dot_is_any_character_and_case_matters() -> None:
    found = regex.resolve([r"a.b", r"a\.b", "(?i)A.B"], image("a.b", "axb", "A.B"))
    assert found == {r"a.b": {"a.b", "axb"}, r"a\.b": {"a.b"}, "(?i)A.B": {"a.b", "axb", "A.B"}}


def test_internal_topics_match_as_any_other() -> None:
    """As in Kafka's coordinator: whether they are wanted is what the pattern says."""
    assert regex.resolve([".*", "__.*", "[^_].*"], image("t", "__consumer_offsets", "__mine")) == {
        ".*": {"t", "__consumer_offsets", "__mine"},
        "__.*": {"__consumer_offsets", "__mine"},
        "[^_].*": {"t"},
    }


def test_a_pattern_without_a_match() -> None:
    assert regex.resolve(["x+"], image("a")) == {"x+": frozenset()}
    assert regex.resolve([], image("a")) == {}


@pytest.mark.parametrize("pattern", ["(", "[a", "*a", "a**", r"(?=a)", r"(a)\1", r"(?<!a)b", "a{1,2000}", "\\"])
def test_what_re2_does_not_understand_is_refused(pattern: str) -> None:
    with pytest.raises(KafkaError) as refused:
        regex.check(pattern)
    assert refused.value.code is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert pattern in str(refused.value)


def test_a_pattern_that_compiles_to_too_much_is_refused() -> None:
    with pytest.raises(KafkaError) as refused:
        regex.check("((a{100}){100}){100}")
    assert refused.value.code is ErrorCode.INVALID_REGULAR_EXPRESSION


@pytest.mark.parametrize("pattern", ["", "a", "foo-.*", r"\d+", "(a|b)*", "(?P<name>x)", "[[:alpha:]]+"])
def test_what_re2_understands_is_taken(pattern: str) -> None:
    regex.check(pattern)


def test_a_pattern_that_backtracking_would_never_finish_is_answered_at_once() -> None:
    name = "a" * 248 + "!"
    started = time.process_time()
    assert regex.resolve(["(a+)+", "(a|a)*b", "(.*)*x"], image(name)) == {
        "(a+)+": frozenset(),
        "(a|a)*b": frozenset(),
        "(.*)*x": frozenset(),
    }
    assert time.process_time() - started < 0.5


def test_a_written_pattern_that_is_no_longer_understood_matches_nothing() -> None:
    assert regex.resolve(["(", "a"], image("a")) == {"(": frozenset(), "a": {"a"}}
