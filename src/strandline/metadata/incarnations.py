"""Which incarnation of a broker speaks: the one that the metadata knows, an earlier one, or a later one (KIP-903).

A broker gets another epoch each time it registers, and says it with every Fetch from version 15 on.

Always true: at a metadata.version that has KIP-903, one that does not say its epoch is not taken for the registered one.
"""

from __future__ import annotations

import enum

from strandline.metadata.features import METADATA_VERSION
from strandline.metadata.image import MetadataImage

UNKNOWN_EPOCH = -1
FETCH_EPOCHS_FROM = 10
"""The metadata.version (3.5-IV1) from which every follower says its broker epoch in a Fetch."""


class Incarnation(enum.Enum):
    CURRENT = enum.auto()
    """The registered one."""
    STALE = enum.auto()
    """An earlier one, or a sender that does not say which it is."""
    AHEAD = enum.auto()
    """A later one: its registration has not arrived here, or there is none."""


def incarnation(image: MetadataImage, broker_id: int, broker_epoch: int) -> Incarnation:
    broker = image.brokers.get(broker_id)
    if broker is not None and broker_epoch == broker.epoch:
        return Incarnation.CURRENT
    if broker_epoch <= UNKNOWN_EPOCH:
        says_epochs = image.features.get(METADATA_VERSION, 0) >= FETCH_EPOCHS_FROM
        return Incarnation.STALE if says_epochs else Incarnation.CURRENT
    return Incarnation.AHEAD if broker is None or broker_epoch > broker.epoch else Incarnation.STALE
