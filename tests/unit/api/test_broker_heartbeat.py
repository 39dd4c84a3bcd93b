"""BrokerHeartbeat: unfenced, fenced, stopped."""

# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

from typing import Any

import pytest

from strandline.api import broker_heartbeat as api
from strandline.errors import ErrorCode, KafkaError

from .conftest import dir_id, registration
from .controller_side import CONTROLLER, activate


@pytest.fixture
def controller(broker):
    """With a broker 2 that is fenced, and broker 1, which leads."""
    broker.commit([registration(2, fenced=True)])
    broker.create("t", (1, 2))
    return activate(broker)


async def hear(controller, broker_id: int, version: int = 2, *, connection: int | None = None, **fields: Any):
    """Each broker has its own connection."""
    fields = {"broker_epoch": broker_id, "current_metadata_offset": controller.image.end_offset - 1, **fields}
    controller.connection_id = broker_id if connection is None else connection
    reply = await controller.call(api, version, CONTROLLER, broker_id=broker_id, **fields)
    return reply.error_code, reply.is_caught_up, reply.is_fenced, reply.should_shut_down


@pytest.mark.parametrize("version", api.VERSIONS)
async def test_b13_unfenced_in_every_version_once_it_is_caught_up(controller, version):
    assert await hear(controller, 2, version, current_metadata_offset=1) == (0, False, True, False)
    assert controller.image.brokers[2].fenced
    assert await hear(controller, 2, version) == (0, True, False, False)
    assert not controller.image.brokers[2].fenced


async def test_fenced_as_it_wants(controller):
    assert await hear(controller, 1, want_fence=True) == (0, True, True, False)
    assert controller.image.brokers[1].fenced


async def test_b14_stopped_when_the_others_know(controller):
    await hear(controller, 2)
    assert await hear(controller, 1, want_shut_down=True) == (0, True, False, False)
    assert controller.image.topics["t"].partitions[0].leader == 2
    assert await hear(controller, 1, want_shut_down=True) == (0, True, False, False)
    await hear(controller, 2)
    assert await hear(controller, 1, want_shut_down=True) == (0, True, True, True)
    assert controller.image.brokers[1].fenced


async def test_a_failed_log_dir(controller):
    controller.create("d", (1, 2), directories=(dir_id(1), dir_id(2)))
    await hear(controller, 2)
    await hear(controller, 1, version=1, offline_log_dirs=[dir_id(1)])
    assert controller.image.topics["d"].partitions[0].leader == 2
    assert controller.image.topics["t"].partitions[0].leader == 1


async def test_cordoned_log_dirs(controller):
    await hear(controller, 1, cordoned_log_dirs=[dir_id(1)])
    assert controller.image.brokers[1].cordoned_log_dirs == (dir_id(1),)
    await hear(controller, 1, version=1)
    assert controller.image.brokers[1].cordoned_log_dirs == (dir_id(1),)


@pytest.mark.parametrize(("broker_id", "epoch"), [(2, 1), (9, 9)], ids=["another epoch", "not registered"])
async def test_b13_stale(controller, broker_id, epoch):
    assert (await hear(controller, broker_id, broker_epoch=epoch))[0] == ErrorCode.STALE_BROKER_EPOCH
    liveness, now = controller.parts.controller.liveness, controller.clock.monotonic()
    assert not liveness.is_live(broker_id, now)
    assert liveness.next_deadline() is None


async def test_its_connection_tells_that_it_is_alive(controller):
    await hear(controller, 2)
    liveness, now = controller.parts.controller.liveness, controller.clock.monotonic()
    assert liveness.is_live(2, now + 1)
    liveness.connection_closed(2, now)
    assert not liveness.is_live(2, now + 1)


@pytest.mark.parametrize(
    "wanted", [{"want_fence": True}, {"want_shut_down": True}, {"offline_log_dirs": [dir_id(1)]}, {}], ids=str
)
async def test_sec_z16_on_another_connection_nobody_takes_a_broker_out_of_service(controller, wanted):
    controller.create("d", (1, 2), directories=(dir_id(1), dir_id(2)))
    await hear(controller, 2)
    await hear(controller, 1)
    before, liveness = controller.image, controller.parts.controller.liveness
    assert await hear(controller, 1, connection=99, **wanted) == (0, True, False, False)
    assert controller.image == before
    now = controller.clock.monotonic()
    liveness.connection_closed(99, now)
    assert liveness.is_live(1, now + 1), "a connection that is not the broker's says nothing when it closes"


@pytest.mark.parametrize("is_closed", [True, False])
async def test_a_broker_is_believed_on_another_connection_once_its_last_one_is_gone_or_silent(controller, is_closed):
    await hear(controller, 2)
    await hear(controller, 1)
    liveness, now = controller.parts.controller.liveness, controller.clock.monotonic()
    if is_closed:
        liveness.connection_closed(1, now)
    assert liveness.speaks_for(1, 1, 99, now) is is_closed
    assert liveness.speaks_for(1, 1, 99, now + 1.5)
    assert liveness.speaks_for(1, 2, 99, now), "another incarnation has its own connections"


async def test_whoever_does_not_lead_says_so(controller):
    controller.controller_error = KafkaError(ErrorCode.NOT_CONTROLLER)
    assert await hear(controller, 1) == (ErrorCode.NOT_CONTROLLER, False, True, False)
