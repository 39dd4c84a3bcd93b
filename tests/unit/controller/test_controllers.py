"""Controllers that tell who they are."""

from __future__ import annotations

from dataclasses import replace

import pytest

from strandline.controller.controllers import ControllerRegistration, register, registered
from strandline.errors import ErrorCode, KafkaError
from strandline.ids import Uuid
from strandline.metadata.image import Endpoint, MetadataImage

from .conftest import after

IMAGE = replace(MetadataImage(), features={"metadata.version": 30})
WANTED = ControllerRegistration(
    3, Uuid(bytes([3]) * 16), [Endpoint("CONTROLLER", "n3", 9093, 0)], [("metadata.version", 7, 30)]
)


def test_a_controller_is_registered_once() -> None:
    records = register(IMAGE, WANTED)
    image = after(IMAGE, records)
    assert list(registered(image).values()) == records
    assert register(image, WANTED) == []


def test_the_newest_registration_counts() -> None:
    image = after(IMAGE, register(IMAGE, WANTED))
    image = after(image, register(image, WANTED._replace(incarnation_id=Uuid(bytes([4]) * 16))))
    assert registered(image)[3].incarnation_id == Uuid(bytes([4]) * 16)


def test_old_metadata_knows_no_controllers() -> None:
    with pytest.raises(KafkaError) as raised:
        register(replace(IMAGE, features={"metadata.version": 14}), WANTED)
    assert raised.value.code is ErrorCode.UNSUPPORTED_VERSION
