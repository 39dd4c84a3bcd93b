"""A cluster's metadata, as brokers and topics were made."""

from __future__ import annotations

from collections.abc import Iterable

from strandline.ids import Uuid
from strandline.metadata.image import BrokerImage, Endpoint, MetadataImage
from strandline.metadata.records import MetadataRecord
from strandline.metadata.replay import replay


def broker(
    broker_id: int,
    *,
    rack: str | None = None,
    host: str | None = None,
    fenced: bool = False,
    stopping: bool = False,
    log_dirs: tuple[Uuid, ...] = (),
) -> BrokerImage:
    return BrokerImage(
        broker_id,
        epoch=broker_id,
        incarnation_id=Uuid(bytes([broker_id]) * 16),
        endpoints=() if host is None else (Endpoint("PLAINTEXT", host, 9092, 0),),
        rack=rack,
        fenced=fenced,
        in_controlled_shutdown=stopping,
        log_dirs=log_dirs,
    )


def cluster(*brokers: BrokerImage) -> MetadataImage:
    return MetadataImage(brokers={broker.broker_id: broker for broker in brokers})


def after(image: MetadataImage, records: Iterable[MetadataRecord]) -> MetadataImage:
    return replay(image, records, image.end_offset + 1, 1)
