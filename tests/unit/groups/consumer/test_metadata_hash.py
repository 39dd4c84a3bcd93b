"""The hash of a group's topics changes with what an assignment depends on, and with nothing else."""

from __future__ import annotations

from strandline.groups.consumer.metadata_hash import NO_TOPICS, metadata_hash
from strandline.ids import Uuid
from tests.unit.groups.consumer.transcript import image_of

A, B = Uuid(b"a" * 16), Uuid(b"b" * 16)


def test_topics_that_do_not_exist_do_not_count() -> None:
    assert metadata_hash(["t"], image_of(1, {})) == NO_TOPICS
    topics = {"t": (A, 1)}
    assert metadata_hash(["t", "u"], image_of(1, topics)) == metadata_hash(["t"], image_of(2, topics)) != NO_TOPICS


def test_it_is_the_same_wherever_and_whenever_it_is_taken() -> None:
    image = image_of(1, {"t": (A, 2), "u": (B, 1)})
    assert metadata_hash(["u", "t"], image) == metadata_hash(["t", "u"], image) == 583739043076961064


def test_ids_partitions_and_racks_count() -> None:
    hashes = {
        metadata_hash(["t"], image_of(1, {"t": (A, 2)})),
        metadata_hash(["t"], image_of(1, {"t": (B, 2)})),
        metadata_hash(["t"], image_of(1, {"t": (A, 3)})),
        metadata_hash(["t"], image_of(1, {"t": (A, 2)}, ["r"])),
        metadata_hash(["t"], image_of(1, {"t": (A, 2)}, ["r", "s"])),
    }
    assert len(hashes) == 5
