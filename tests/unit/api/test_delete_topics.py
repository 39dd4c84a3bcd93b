"""DeleteTopics: by name, by id, and what can't be meant."""

# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

import pytest

from strandline.api import delete_topics
from strandline.errors import ErrorCode
from strandline.ids import ZERO_UUID, Uuid
from strandline.wire import messages

State = messages.request(20).DeleteTopicState


@pytest.mark.parametrize("version", delete_topics.VERSIONS)
async def test_by_name_in_every_version(broker, version):
    topic_id = broker.create("t")
    broker.create("stays")
    names = ["t", "no"]
    topics = {"topics": [State(name=name) for name in names]} if version >= 6 else {"topic_names": names}
    reply = await broker.call(delete_topics, version, **topics)
    assert [(result.name, result.error_code) for result in reply.responses] == [
        ("t", 0),
        ("no", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]
    assert list(broker.image.topics) == ["stays"]
    assert reply.responses[0].error_message is None
    if version >= 6:
        assert reply.responses[0].topic_id == topic_id


async def test_by_id(broker):
    topic_id, unknown = broker.create("t"), Uuid(b"u" * 16)
    reply = await broker.call(delete_topics, 6, topics=[State(topic_id=topic_id), State(topic_id=unknown)])
    assert [(result.name, result.topic_id, result.error_code) for result in reply.responses] == [
        ("t", topic_id, 0),
        (None, unknown, ErrorCode.UNKNOWN_TOPIC_ID),
    ]
    assert not broker.image.topics


async def test_what_cannot_be_meant_deletes_nothing(broker):
    ids = {name: broker.create(name) for name in ("both", "twice", "named", "idtwice")}
    reply = await broker.call(
        delete_topics,
        6,
        topics=[
            State(),
            State(name="both", topic_id=ids["both"]),
            State(name="twice"),
            State(name="twice"),
            State(name="named"),
            State(topic_id=ids["named"]),
            State(topic_id=ids["idtwice"]),
            State(topic_id=ids["idtwice"]),
        ],
    )
    assert {(result.name, result.topic_id) for result in reply.responses} == {
        (None, ZERO_UUID),
        ("both", ids["both"]),
        ("twice", ZERO_UUID),
        ("named", ZERO_UUID),
        (None, ids["named"]),
        (None, ids["idtwice"]),
    }
    assert {result.error_code for result in reply.responses} == {ErrorCode.INVALID_REQUEST}
    assert len(broker.image.topics) == 4


@pytest.mark.parametrize(("version", "error"), [(2, ErrorCode.INVALID_REQUEST), (3, ErrorCode.TOPIC_DELETION_DISABLED)])
async def test_where_deletion_is_disabled(make_broker, version, error):
    broker = make_broker(delete_topic_enable="false")
    broker.create("t")
    reply = await broker.call(delete_topics, version, topic_names=["t"])
    assert [result.error_code for result in reply.responses] == [error]
    assert "t" in broker.image.topics
