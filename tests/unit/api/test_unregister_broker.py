"""UnregisterBroker: gone for good."""

# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

import pytest

from strandline.api import unregister_broker as api
from strandline.errors import ErrorCode, KafkaError

from .conftest import registration
from .controller_side import activate


@pytest.fixture
def controller(broker):
    broker.commit([registration(2)])
    broker.create("t", (2, 1))
    return activate(broker)


async def test_a_broker_leaves(controller):
    controller.parts.controller.liveness.contact(2, 2, controller.clock.monotonic())
    reply = await controller.call(api, 0, broker_id=2)
    assert (reply.error_code, reply.error_message) == (0, None)
    assert list(controller.image.brokers) == [1]
    assert (
        controller.image.topics["t"].partitions[0].leader,
        controller.parts.controller.liveness.next_deadline(),
    ) == (1, None)


async def test_one_that_is_not_there(controller):
    reply = await controller.call(api, 0, broker_id=9)
    assert reply.error_code == ErrorCode.BROKER_ID_NOT_REGISTERED
    assert "9" in reply.error_message


async def test_whoever_does_not_lead_says_so(controller):
    controller.controller_error = KafkaError(ErrorCode.NOT_CONTROLLER)
    assert (await controller.call(api, 0, broker_id=2)).error_code == ErrorCode.NOT_CONTROLLER
    assert 2 in controller.image.brokers
