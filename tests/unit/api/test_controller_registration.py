"""ControllerRegistration: where controllers are."""

# mypy: allow-incomplete-defs, allow-untyped-calls, allow-untyped-defs

from __future__ import annotations

from strandline.api import controller_registration as api
from strandline.controller.controllers import registered
from strandline.errors import ErrorCode
from strandline.ids import Uuid
from strandline.metadata import records as r
from strandline.wire import messages

from .controller_side import CONTROLLER

Request = messages.request(api.KEY)


async def register(broker):
    return await broker.call(
        api,
        0,
        CONTROLLER,
        controller_id=3,
        incarnation_id=Uuid(bytes([3]) * 16),
        listeners=[Request.Listener(name="CONTROLLER", host="n3", port=9093, security_protocol=0)],
        features=[Request.Feature(name="metadata.version", min_supported_version=7, max_supported_version=30)],
    )


async def test_a_controller(broker):
    reply = await register(broker)
    assert (reply.error_code, reply.error_message) == (0, None)
    made = registered(broker.image)[3]
    assert made.incarnation_id == bytes([3]) * 16
    assert [(e.name, e.host, e.port) for e in made.end_points] == [("CONTROLLER", "n3", 9093)]
    assert [(f.name, f.min_supported_version, f.max_supported_version) for f in made.features] == [
        ("metadata.version", 7, 30)
    ]


async def test_old_metadata_knows_no_controllers(broker):
    broker.commit([r.FeatureLevelRecord(name="metadata.version", feature_level=14)])
    reply = await register(broker)
    assert reply.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert registered(broker.image) == {}
