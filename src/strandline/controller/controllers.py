"""Decisions about controllers: where they listen and which features they support.

They are information only: the voters are known to the quorum, not to the metadata.

Always true: the newest registration of a controller is the one that counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from strandline.errors import ErrorCode, KafkaError
from strandline.ids import Uuid
from strandline.metadata import records as r
from strandline.metadata.features import METADATA_VERSION
from strandline.metadata.image import Endpoint, MetadataImage


class ControllerRegistration(NamedTuple):
    """What a controller says of itself when it starts."""

    controller_id: int
    incarnation_id: Uuid
    endpoints: Sequence[Endpoint]
    features: Sequence[tuple[str, int, int]]


def register(image: MetadataImage, wanted: ControllerRegistration) -> list[r.MetadataRecord]:
    """The record of a controller, unless it is there already."""
    level = image.features.get(METADATA_VERSION, 0)
    if level < r.RegisterControllerRecord.LEVELS[0]:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"Controllers can't be registered at metadata.version {level}.")
    record = r.RegisterControllerRecord(
        controller_id=wanted.controller_id,
        incarnation_id=wanted.incarnation_id,
        end_points=tuple(
            r.ControllerEndpoint(name=e.listener, host=e.host, port=e.port, security_protocol=e.security_protocol)
            for e in wanted.endpoints
        ),
        features=tuple(
            r.ControllerFeature(name=name, min_supported_version=least, max_supported_version=most)
            for name, least, most in wanted.features
        ),
    )
    return [] if image.others.get((record.KEY, record.controller_id)) == record else [record]


def registered(image: MetadataImage) -> Mapping[int, r.RegisterControllerRecord]:
    """The newest registration of each controller, by its id."""
    return {
        record.controller_id: record
        for record in image.others.values()
        if isinstance(record, r.RegisterControllerRecord)
    }
