from __future__ import annotations

import pytest

from strandline.groups.migration import embedded_protocol
from strandline.ids import Uuid
from strandline.wire import messages
from strandline.wire.errors import MalformedRequest
from tests.unit.groups.migration.consumers import assigned_in, image_of, subscription_of

IMAGE = image_of(a=4, b=2)
A, B = IMAGE.topics["a"].topic_id, IMAGE.topics["b"].topic_id


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_subscription_tells_what_is_wanted_and_owned(version: int) -> None:
    found = embedded_protocol.subscription(
        subscription_of(["a", "gone"], [("a", 2), ("a", 1), ("gone", 0)], version), IMAGE
    )
    assert found == embedded_protocol.EmbeddedSubscription(("a", "gone"), {A: frozenset({1, 2})}, None)


def test_version_0_owns_nothing() -> None:
    assert embedded_protocol.subscription(subscription_of(["a"], [("a", 1)], 0), IMAGE).owned == {}


def test_version_3_has_a_rack() -> None:
    Subscription = messages.data("ConsumerProtocolSubscription")
    body = messages.encode_data(
        "ConsumerProtocolSubscription", 3, Subscription(topics=["a"], user_data=None, rack_id="r")
    )
    assert embedded_protocol.subscription(b"\x00\x03" + body, IMAGE).rack_id == "r"


def test_a_version_to_come_is_read_as_the_newest() -> None:
    newest = subscription_of(["a"], [("a", 1)], 3)
    assert embedded_protocol.subscription(b"\x00\x09" + newest[2:] + b"more", IMAGE).owned == {A: {1}}


@pytest.mark.parametrize("data", [b"", b"\x00", b"\xff\xff\x00\x00", b"\x00\x01\x00\x00"])
def test_something_else(data: bytes) -> None:
    with pytest.raises(MalformedRequest):
        embedded_protocol.subscription(data, IMAGE)


@pytest.mark.parametrize("version", range(4))
def test_an_assignment_there_and_back(version: int) -> None:
    data = embedded_protocol.encode_assignment({B: [1], A: [2, 0], Uuid(b"gone" * 4): [0]}, IMAGE, version)
    assert data[:2] == version.to_bytes(2, "big")
    assert embedded_protocol.assignment(data, IMAGE) == embedded_protocol.EmbeddedAssignment(
        {A: frozenset({0, 2}), B: frozenset({1})}, False
    )
    assert assigned_in(data) == {("a", 0), ("a", 2), ("b", 1)}


def test_a_member_that_was_never_assigned_anything() -> None:
    assert embedded_protocol.assignment(b"", IMAGE) == embedded_protocol.EmbeddedAssignment({}, False)
