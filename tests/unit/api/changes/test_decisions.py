"""Several decisions in one request."""

# mypy: allow-incomplete-defs, allow-untyped-calls, allow-untyped-defs, disable-error-code="arg-type, attr-defined, union-attr"

from __future__ import annotations

import pytest

from strandline.api.changes.decisions import RECORDS_PER_REQUEST_MAX, decide_each, decide_on
from strandline.errors import ErrorCode, KafkaError
from strandline.ids import Uuid
from strandline.metadata import records as r
from strandline.metadata.image import MetadataImage
from strandline.sliced_work import finished


def make(image, name):
    """A topic, of which none may be named twice."""
    if name in image.topics:
        raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS)
    return [r.TopicRecord(name=name, topic_id=Uuid(name.encode().ljust(16, b"-")))]


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


async def test_a_request_writes_at_most_so_many_records(broker):
    """As in Kafka, all of it or nothing (SEC-L2)."""
    names = [f"t{i}" for i in range(RECORDS_PER_REQUEST_MAX)]
    assert all(
        isinstance(outcome, list) for outcome in await decide_each(broker.parts, names, make, validate_only=True)
    )
    outcomes = await decide_each(broker.parts, [*names, "one more"], make)
    assert {outcome.code for outcome in outcomes} == {ErrorCode.POLICY_VIOLATION}
    assert not broker.image.topics


async def test_items_that_write_more_than_one_record_each(broker):
    def make_two(image, name):
        return [*make(image, name), *make(image, f"{name}-2")]

    names = [f"t{i}" for i in range(RECORDS_PER_REQUEST_MAX // 2 + 1)]
    outcomes = await decide_each(broker.parts, names, make_two)
    assert {outcome.code for outcome in outcomes} == {ErrorCode.POLICY_VIOLATION}
    assert not broker.image.topics


def test_a_decision_pauses_after_every_item():
    work = decide_on(MetadataImage(), ["a", "b", "c"], make)
    assert [next(work) for _ in range(3)] == [0, 0, 0]
    with pytest.raises(StopIteration):
        next(work)
