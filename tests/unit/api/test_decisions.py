"""Several decisions in one request."""

from __future__ import annotations

from strandline.api.decisions import decide_each, decide_on
from strandline.api.slices import finished
from strandline.errors import ErrorCode, KafkaError
from strandline.ids import Uuid
from strandline.metadata import records as r
from strandline.metadata.image import MetadataImage


def make(image, name):
    """A topic, of which none may be named twice."""
    if name in image.topics:
        raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS)
    return [r.TopicRecord(name=name, topic_id=Uuid(name.encode() * 16))]


def test_each_sees_what_those_before_it_wrote_and_a_refusal_stops_nobody():
    records, outcomes = finished(decide_on(MetadataImage(), ["a", "b", "a", "c"], make))
    assert [record.name for record in records] == ["a", "b", "c"]
    assert isinstance(outcomes[2], KafkaError)
    assert [outcomes[i] for i in (0, 1, 3)] == [[record] for record in records]


async def test_without_items_the_controller_is_not_asked(broker):
    broker.controller_error = KafkaError(ErrorCode.NOT_CONTROLLER)
    assert await decide_each(broker.parts, [], make) == []


async def test_validating_writes_nothing(broker):
    [outcome] = await decide_each(broker.parts, ["a"], make, validate_only=True)
    assert len(outcome) == 1
    assert not broker.image.topics
