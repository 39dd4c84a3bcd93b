"""Which topics a query reads."""

from __future__ import annotations

import pytest

from strandline.spark.errors import OptionError
from strandline.spark.options.selection import Assign, Subscribe, SubscribePattern, selection


def test_each_of_the_three() -> None:
    assert selection({"subscribe": " a, b,,a "}) == Subscribe(("a", "b"))
    assert selection({"subscribePattern": " ^a "}) == SubscribePattern("^a")
    assert selection({"assign": '{"a":[0,1],"b":[2]}'}) == Assign(frozenset({("a", 0), ("a", 1), ("b", 2)}))


def test_a_pattern_is_found_anywhere_in_the_name() -> None:
    assert SubscribePattern("rder").matches("orders")
    assert not SubscribePattern("^rder").matches("orders")


def test_the_topics_of_an_assignment() -> None:
    assert Assign(frozenset({("b", 0), ("a", 1), ("a", 0)})).topics == ("a", "b")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({}, "'subscribe', 'subscribePattern' and 'assign'"),
        ({"subscribe": "a", "assign": '{"a":[0]}'}, "'subscribe' and 'assign' contradict"),
        ({"subscribe": "a", "subscribePattern": "a"}, "'subscribe' and 'subscribePattern' contradict"),
        ({"subscribe": " , "}, "'subscribe' names no topic"),
        ({"subscribePattern": " "}, "'subscribePattern' is empty"),
        ({"subscribePattern": "a("}, "'subscribePattern' is no regular expression"),
        ({"assign": "a"}, "'assign' is JSON such as"),
        ({"assign": "{}"}, "'assign' names no partition"),
    ],
)
def test_what_is_refused(options: dict[str, str], says: str) -> None:
    with pytest.raises(OptionError, match=says):
        selection(options)
