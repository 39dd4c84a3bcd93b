"""BrokerRegistration: who is let into the cluster."""

# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

from typing import Any

import pytest

from strandline.api import broker_registration as api
from strandline.errors import ErrorCode, KafkaError
from strandline.ids import Uuid
from strandline.wire import messages

from .conftest import CLUSTER_ID
from .controller_side import CONTROLLER, activate

Request = messages.request(api.KEY)
DIR = Uuid(bytes([77]) * 16)
LISTENER = Request.Listener(name="PLAINTEXT", host="n5", port=9095, security_protocol=0)
FEATURES = [("metadata.version", 7, 30), ("kraft.version", 0, 1), ("eligible.leader.replicas.version", 0, 1)]


@pytest.fixture
def controller(broker):
    return activate(broker)


async def register(controller, version: int = 4, incarnation: int = 5, **fields: Any):
    request = {
        "broker_id": 5,
        "cluster_id": CLUSTER_ID,
        "incarnation_id": Uuid(bytes([incarnation]) * 16),
        "listeners": [LISTENER],
        "features": [
            Request.Feature(name=name, min_supported_version=least, max_supported_version=most)
            for name, least, most in FEATURES
        ],
        "rack": "r",
        **({"log_dirs": [DIR]} if version >= 2 else {}),
        **fields,
    }
    reply = await controller.call(api, version, CONTROLLER, **request)
    return reply.error_code, reply.broker_epoch


@pytest.mark.parametrize("version", api.VERSIONS)
async def test_b12_a_broker_in_every_version(controller, version):
    end_offset = controller.image.end_offset
    error_code, epoch = await register(controller, version)
    if version < 2:
        assert error_code == ErrorCode.INVALID_REGISTRATION, "at this metadata.version log dirs are needed"
        return
    assert (error_code, epoch) == (0, end_offset)
    made = controller.image.brokers[5]
    assert (made.epoch, made.fenced, made.rack, made.log_dirs) == (epoch, True, "r", (DIR,))
    assert [(e.listener, e.host, e.port) for e in made.endpoints] == [("PLAINTEXT", "n5", 9095)]
    assert list(made.features) == FEATURES


async def test_b12_while_it_is_alive_only_the_same_incarnation_may_ask_again(controller):
    first = await register(controller)
    assert await register(controller) == first
    assert await register(controller, incarnation=6) == (ErrorCode.DUPLICATE_BROKER_REGISTRATION, -1)
    controller.parts.controller.liveness.forget(5)
    error_code, epoch = await register(controller, incarnation=6)
    assert error_code == 0
    assert epoch > first[1]


async def test_its_connection_tells_that_it_is_alive(controller):
    await register(controller)
    liveness, now = controller.parts.controller.liveness, controller.clock.monotonic()
    assert liveness.is_live(5, now + 1)
    liveness.connection_closed(0, now)
    assert not liveness.is_live(5, now + 1)


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"cluster_id": "another"}, ErrorCode.INCONSISTENT_CLUSTER_ID),
        ({"is_migrating_zk_broker": True}, ErrorCode.BROKER_ID_NOT_REGISTERED),
        ({"listeners": []}, ErrorCode.INVALID_REGISTRATION),
        ({"features": []}, ErrorCode.INVALID_REGISTRATION),
    ],
    ids=["another cluster", "zookeeper", "no listener", "no features"],
)
async def test_who_is_refused(controller, fields, code):
    assert await register(controller, **fields) == (code, -1)
    assert 5 not in controller.image.brokers


async def test_b11_the_epoch_at_which_it_stopped_in_order(controller):
    _, epoch = await register(controller)
    controller.parts.controller.liveness.forget(5)
    end_offset = controller.image.end_offset
    assert await register(controller, incarnation=6, previous_broker_epoch=epoch) == (0, end_offset)


async def test_whoever_does_not_lead_says_so(controller):
    controller.controller_error = KafkaError(ErrorCode.NOT_CONTROLLER)
    assert await register(controller) == (ErrorCode.NOT_CONTROLLER, -1)
