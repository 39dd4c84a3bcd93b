"""Subscriptions and assignments as bytes: what the Java client writes is read, whatever its version;
rubbish is named so.
"""

# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.client.core.group.subscription import (
    Subscription,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from strandline.wire.errors import MalformedRequest


def test_a_subscription_goes_there_and_comes_back():
    told = Subscription(frozenset({"t", "u"}), frozenset({("t", 0), ("t", 2), ("u", 1)}), 7, b"data")
    assert decode_subscription(encode_subscription(told), "instance") == told._replace(group_instance_id="instance")
    assert encode_subscription(told)[:2] == b"\x00\x03"


def test_versions_that_know_less_or_more_are_read():
    first = b"\x00\x00" + b"\x00\x00\x00\x01\x00\x01t" + b"\xff\xff\xff\xff"
    assert decode_subscription(first) == Subscription(frozenset({"t"}))
    newest = encode_subscription(Subscription(frozenset({"t"}), generation=4))
    assert decode_subscription(b"\x00\x09" + newest[2:] + b"more").generation == 4


def test_an_assignment_goes_there_and_comes_back():
    assert decode_assignment(encode_assignment([("t", 1), ("u", 0), ("t", 0)])) == [("t", 0), ("t", 1), ("u", 0)]
    assert decode_assignment(encode_assignment([])) == []
    assert decode_assignment(b"") == []


@given(st.binary(max_size=60))
def test_rubbish_is_malformed_or_means_something(data):
    for decode in (decode_subscription, decode_assignment):
        try:
            decode(data)
        except MalformedRequest:
            pass


@pytest.mark.parametrize("data", [b"\x00", b"\xff\xff\x00\x00\x00\x00"])
def test_without_a_version_it_is_no_assignment(data):
    with pytest.raises(MalformedRequest):
        decode_assignment(data)
