"""Topics that are encoded once: what is kept, and that a reply joined from it is the reply."""

# mypy: allow-incomplete-defs, allow-untyped-defs, disable-error-code="arg-type, var-annotated"

from __future__ import annotations

import pytest

from strandline.api.cluster import topic_bytes
from strandline.api.cluster.topic_bytes import TopicBytes, encode_topic, join_reply
from strandline.ids import Uuid
from strandline.metadata.image import TopicImage
from strandline.wire import messages

Response = messages.response(3)


@pytest.mark.parametrize("version", range(14))
@pytest.mark.parametrize("count", [0, 1, 200])
def test_joining_gives_the_bytes_that_the_codec_gives(version, count):
    topics = [
        Response.MetadataResponseTopic(
            name=f"t{i}", partitions=[Response.MetadataResponsePartition(replica_nodes=[1, 2], isr_nodes=[1])]
        )
        for i in range(count)
    ]
    fields = {
        "brokers": [Response.MetadataResponseBroker(node_id=1, host="h", port=1)],
        "cluster_id": "c",
        "controller_id": 1,
        "cluster_authorized_operations": 5,
        "error_code": 3,
    }
    joined = join_reply(version, Response(**fields), [encode_topic(version, topic) for topic in topics])
    assert joined == messages.encode_response(3, version, Response(topics=topics, **fields))


def test_a_topic_is_made_once_for_each_way_to_see_it():
    made = []

    def make(topic):
        made.append(topic)
        return Response.MetadataResponseTopic(name=topic.name)

    kept, topic, brokers = TopicBytes(), TopicImage("t", Uuid(bytes(16))), {}
    first = kept.of(topic, brokers, 9, ("A",), make)
    assert kept.of(topic, brokers, 9, ("A",), make) is first
    kept.of(topic, brokers, 9, ("B",), make)
    kept.of(topic, brokers, 10, ("A",), make)
    kept.of(topic, {}, 9, ("A",), make)
    kept.of(TopicImage("t", Uuid(bytes(16))), brokers, 9, ("A",), make)
    assert len(made) == 5


def test_what_is_kept_is_bounded(monkeypatch):
    monkeypatch.setattr(topic_bytes, "KEPT_BYTES_MAX", 10 * topic_bytes.OVERHEAD_BYTES)
    kept, brokers = TopicBytes(), {}
    for i in range(100):
        kept.of(
            TopicImage(f"t{i}", Uuid(bytes(16))), brokers, 9, (), lambda t: Response.MetadataResponseTopic(name=t.name)
        )
        assert len(kept._kept) <= 11
