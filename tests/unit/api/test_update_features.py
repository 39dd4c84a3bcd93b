"""UpdateFeatures: all levels or none."""

# mypy: allow-incomplete-defs, allow-untyped-defs, disable-error-code="arg-type"

from __future__ import annotations

import pytest

from strandline.api import update_features as api
from strandline.errors import ErrorCode, KafkaError
from strandline.metadata import records as r
from strandline.wire import messages

from .controller_side import activate

Request = messages.request(api.KEY)
MV, ELR = "metadata.version", "eligible.leader.replicas.version"
UPGRADE, SAFE = 1, 2


def updates(*wanted: tuple[str, int, int]):
    """Name, level, upgrade type; in v0 only a downgrade can be told from an upgrade."""
    return [
        Request.FeatureUpdateKey(
            feature=name, max_version_level=level, upgrade_type=kind, allow_downgrade=kind != UPGRADE
        )
        for name, level, kind in wanted
    ]


@pytest.fixture
def controller(make_broker):
    """A broker that supports all that we do, and only controller 1."""
    controller = activate(make_broker(min_insync_replicas="2"))
    features = tuple(
        r.BrokerFeature(name=name, min_supported_version=least, max_supported_version=most)
        for name, least, most in ((MV, 7, 30), ("kraft.version", 0, 1), (ELR, 0, 1))
    )
    made = r.RegisterBrokerRecord(
        broker_id=1, incarnation_id=bytes(16), broker_epoch=1, end_points=(), features=features
    )
    controller.commit([made, r.FeatureLevelRecord(name=MV, feature_level=29)])
    return controller


@pytest.mark.parametrize("version", api.VERSIONS)
async def test_up_and_down_in_every_version(controller, version):
    reply = await controller.call(api, version, feature_updates=updates((MV, 26, SAFE), (ELR, 1, UPGRADE)))
    assert (reply.error_code, reply.error_message) == (0, None)
    assert controller.image.features == {MV: 26, ELR: 1}
    assert controller.image.config(4, "") == {"min.insync.replicas": "2"}, "from this node's file"
    if version <= 1:
        assert [(x.feature, x.error_code, x.error_message) for x in reply.results] == [(MV, 0, None), (ELR, 0, None)]


@pytest.mark.parametrize("version", api.VERSIONS)
async def test_refused_in_every_version(controller, version):
    reply = await controller.call(api, version, feature_updates=updates((ELR, 1, UPGRADE), (MV, 26, UPGRADE)))
    assert reply.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert MV in reply.error_message
    assert controller.image.features == {MV: 29}
    if version <= 1:
        assert not reply.results


async def test_validate_only(controller):
    reply = await controller.call(api, 1, feature_updates=updates((ELR, 1, UPGRADE)), validate_only=True)
    assert reply.error_code == 0
    assert controller.image.features == {MV: 29}
    reply = await controller.call(api, 2, feature_updates=updates((ELR, 9, UPGRADE)), validate_only=True)
    assert reply.error_code == ErrorCode.INVALID_UPDATE_VERSION


async def test_a_voter_that_has_not_registered_may_not_support_it(controller):
    activate(controller, 1, 2)
    reply = await controller.call(api, 2, feature_updates=updates((ELR, 1, UPGRADE)))
    assert reply.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert "controller 2" in reply.error_message


async def test_whoever_does_not_lead_says_so(controller):
    controller.controller_error = KafkaError(ErrorCode.NOT_CONTROLLER)
    reply = await controller.call(api, 2, feature_updates=updates((ELR, 1, UPGRADE)))
    assert reply.error_code == ErrorCode.NOT_CONTROLLER
