"""A committed offset: where a group goes on in one partition.

Always true: `offset` is the next record to consume, and `leader_epoch` is that of the last one before it, if known
(KIP-320).
"""

from __future__ import annotations

from typing import NamedTuple

from strandline.client.core.cluster_metadata import NO_EPOCH


class OffsetAndMetadata(NamedTuple):
    offset: int
    leader_epoch: int = NO_EPOCH
    metadata: str = ""
