"""Producer ids: no id twice."""

from __future__ import annotations

from strandline.controller.producer_ids import BLOCK_SIZE, allocate
from strandline.metadata.image import MetadataImage

from .conftest import after


def test_blocks_follow_each_other_whoever_asks() -> None:
    image = MetadataImage()
    given: list[int] = []
    for broker_id in (1, 2, 1):
        records, block = allocate(image, broker_id, 7)
        image = after(image, records)
        given += block
    assert given == list(range(3 * BLOCK_SIZE))
    assert image.next_producer_id == 3 * BLOCK_SIZE
