"""The records of an image make the same image again."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strandline.metadata import framing
from strandline.metadata import records as r
from strandline.metadata.image import MetadataImage
from strandline.metadata.image_records import metadata_version_of, records_of
from strandline.metadata.replay import replay
from tests.unit.metadata.images import an_image


@given(st.integers(0, 10**6))
@settings(deadline=None)
def test_replaying_an_images_records_makes_it_again(seed: int) -> None:
    image = an_image(seed)
    again = replay(MetadataImage(), records_of(image), image.end_offset, image.epoch)
    assert again == image
    assert list(again.topics) == [topic.name for topic in again.topics_by_id.values()]


def test_an_empty_image_has_no_records() -> None:
    assert list(records_of(MetadataImage())) == []


def test_every_field_of_an_image_is_in_its_records() -> None:
    """A section or field that is new in the image must be random here too, and then the property above covers it."""
    images = [an_image(seed, topics=9) for seed in range(40)]
    for name in (field.name for field in dataclasses.fields(MetadataImage)):
        assert any(getattr(image, name) for image in images), name
    for name in ("brokers", "topics"):
        values = [value for image in images for value in getattr(image, name).values()]
        parts = values if name == "brokers" else [part for topic in values for part in topic.partitions]
        for field in dataclasses.fields(parts[0]):
            assert len({getattr(part, field.name) for part in parts}) > 1, field.name


def test_the_order_is_kafkas() -> None:
    order: list[type] = []
    for record in records_of(an_image(11, topics=9)):
        if type(record) not in order:
            order.append(type(record))
    wanted = [
        r.FeatureLevelRecord,
        r.RegisterBrokerRecord,
        r.RegisterControllerRecord,
        r.TopicRecord,
        r.PartitionRecord,
        r.ConfigRecord,
        r.ClientQuotaRecord,
        r.ProducerIdsRecord,
        r.AccessControlEntryRecord,
        r.UserScramCredentialRecord,
        r.DelegationTokenRecord,
        r.ZkMigrationStateRecord,
    ]
    assert order == [cls for cls in wanted if cls in order]
    assert len(order) > 9
    first = next(records_of(an_image(11)))
    assert first == r.FeatureLevelRecord(name="metadata.version", feature_level=30)


@pytest.mark.parametrize("level", [7, 11, 14, 17, 23, 29])
def test_an_older_metadata_version_has_fewer_records_and_all_can_be_written(level: int) -> None:
    seen: set[type] = set()
    for seed in range(20):
        image = an_image(seed, level=level)
        assert metadata_version_of(image) == level
        for record in records_of(image):
            seen.add(type(record))
            framing.encode(record, r.version_for(type(record), level))
    assert (r.UserScramCredentialRecord in seen) is (level >= 11)
    assert (r.DelegationTokenRecord in seen) is (level >= 14)
    assert (r.RegisterControllerRecord in seen) is (level >= 15)
