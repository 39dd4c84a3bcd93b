"""Decisions about producer ids: brokers get them in blocks, so that no id is ever given out twice.

Always true: a block begins where the one before it ended, whoever got that.
"""

from __future__ import annotations

from strandline.metadata import records as r
from strandline.metadata.image import MetadataImage

BLOCK_SIZE = 1000


def allocate(image: MetadataImage, broker_id: int, broker_epoch: int) -> tuple[list[r.MetadataRecord], range]:
    """The record that hands a block to a broker, and the ids in it."""
    block = range(image.next_producer_id, image.next_producer_id + BLOCK_SIZE)
    return [r.ProducerIdsRecord(broker_id=broker_id, broker_epoch=broker_epoch, next_producer_id=block.stop)], block
