"""Decisions about producer ids: brokers get them in blocks, so that no id is ever given out twice.

Always true: a block begins where the one before it ended; only the newest incarnation of a broker gets one.
"""

from __future__ import annotations

from strandline.controller.brokers import check_epoch
from strandline.errors import ErrorCode, KafkaError
from strandline.metadata import records as r
from strandline.metadata.image import MetadataImage

BLOCK_SIZE = 1000
PRODUCER_ID_MAX = 2**63 - 1


def allocate(image: MetadataImage, broker_id: int, broker_epoch: int) -> tuple[list[r.MetadataRecord], range]:
    """The record that hands a block to a broker, and the ids in it."""
    check_epoch(image, broker_id, broker_epoch)
    block = range(image.next_producer_id, image.next_producer_id + BLOCK_SIZE)
    if block.stop > PRODUCER_ID_MAX:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "All producer ids are used up.")
    return [r.ProducerIdsRecord(broker_id=broker_id, broker_epoch=broker_epoch, next_producer_id=block.stop)], block
