"""A Produce request in parts: the same bytes, without copying a batch."""

# mypy: allow-incomplete-defs, allow-untyped-defs, disable-error-code="attr-defined"

from __future__ import annotations

import pytest

from strandline.client.core.produce_request import parts_of
from strandline.ids import Uuid
from strandline.wire import messages

VERSIONS = messages.request_family(0).versions


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("transactional_id", [None, "", "a transaction"])
def test_joined_the_parts_are_the_request(version: int, transactional_id: str | None):
    Produce = messages.request(0)
    batches = [bytearray(b"x" * size) for size in (1, 126, 127, 70_000)]
    message = Produce(
        transactional_id=transactional_id,
        acks=-1,
        timeout_ms=1234,
        topic_data=[
            Produce.TopicProduceData(
                name=name,
                topic_id=Uuid(name.encode().ljust(16)),
                partition_data=[
                    Produce.PartitionProduceData(index=index, records=records) for index, records in partitions
                ],
            )
            for name, partitions in {
                "a": list(enumerate(batches)),
                "topic": [(7, None), (8, batches[0])],
                "b": [],
            }.items()
        ],
    )
    parts = parts_of(version, message)
    assert b"".join(parts) == messages.encode_request(0, version, message)
    assert [part for part in parts if any(part is batch for batch in batches)] == [*batches, batches[0]]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_request_of_nothing_is_one_too(version: int):
    message = messages.request(0)(acks=1)
    assert b"".join(parts_of(version, message)) == messages.encode_request(0, version, message)
