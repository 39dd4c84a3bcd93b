"""A ready batch is stamped: what a producer would have built with the same identity."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.records import header as layout
from strandline.records.batch import BatchBuilder, decode
from strandline.records.compression import CompressionType
from strandline.records.header import crc_valid, ensure_valid
from strandline.records.ready import ReadyBatch, stamp


def builder_of(*values: bytes) -> BatchBuilder:
    builder = BatchBuilder()
    for i, value in enumerate(values):
        builder.append(b"key", value, timestamp=1_000 + i)
    return builder


def ready(builder: BatchBuilder, codec: CompressionType = CompressionType.NONE) -> ReadyBatch:
    """As an encoder leaves it: everything but identity and CRC."""
    data = builder.build(codec=codec)
    data[layout.CRC_AT : layout.CRC_AT + 4] = b"\0\0\0\0"
    return ReadyBatch(data, builder.records_count, builder.max_timestamp)


@given(
    producer_id=st.integers(0, 2**63 - 1),
    producer_epoch=st.integers(0, 2**15 - 1),
    base_sequence=st.integers(0, 2**31 - 1),
    is_transactional=st.booleans(),
)
def test_a_stamped_batch_is_the_batch_that_would_have_been_built(
    producer_id: int, producer_epoch: int, base_sequence: int, is_transactional: bool
) -> None:
    builder = builder_of(b"one", b"two")
    batch = ready(builder)
    stamp(batch, producer_id, producer_epoch, base_sequence, is_transactional=is_transactional)
    assert batch.data == builder.build(
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        transactional=is_transactional,
    )


def test_before_the_stamp_the_crc_is_wrong_and_after_it_right() -> None:
    batch = ready(builder_of(b"value"))
    assert not crc_valid(batch.data)
    stamp(batch, 7, 1, 0)
    assert crc_valid(batch.data)


def test_a_second_stamp_leaves_nothing_of_the_first() -> None:
    batch = ready(builder_of(b"value"))
    stamp(batch, 7, 1, 12, is_transactional=True)
    stamp(batch, 8, 0, 0)
    header = ensure_valid(batch.data)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (8, 0, 0)
    assert not header.is_transactional


def test_no_identity_is_a_stamp_too() -> None:
    builder = builder_of(b"value")
    batch = ready(builder)
    stamp(batch, layout.NO_PRODUCER_ID, layout.NO_PRODUCER_EPOCH, layout.NO_SEQUENCE)
    assert batch.data == builder.build()


@pytest.mark.parametrize("codec", list(CompressionType))
def test_records_and_codec_stay_as_they_were(codec: CompressionType) -> None:
    batch = ready(builder_of(b"a" * 500, b"b" * 500), codec)
    stamp(batch, 7, 1, 3, is_transactional=True)
    assert ensure_valid(batch.data).codec == codec
    assert [bytes(record.value or b"") for record in decode(batch.data)] == [b"a" * 500, b"b" * 500]
