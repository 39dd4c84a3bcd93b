"""AllocateProducerIds: blocks for brokers."""

# mypy: allow-incomplete-defs, allow-untyped-calls, allow-untyped-defs

from __future__ import annotations

import pytest

from strandline.api import allocate_producer_ids as api
from strandline.errors import ErrorCode, KafkaError

from .controller_side import CONTROLLER


async def allocate(broker, broker_id=1, broker_epoch=1):
    reply = await broker.call(api, 0, CONTROLLER, broker_id=broker_id, broker_epoch=broker_epoch)
    return reply.error_code, reply.producer_id_start, reply.producer_id_len


async def test_one_block_after_the_other(broker):
    assert [await allocate(broker) for _ in range(2)] == [(0, 0, 1000), (0, 1000, 1000)]
    assert broker.image.next_producer_id == 2000


@pytest.mark.parametrize(("broker_id", "broker_epoch"), [(1, 0), (1, 2), (2, 1)])
async def test_b13_only_for_the_newest_incarnation(broker, broker_id, broker_epoch):
    assert await allocate(broker, broker_id, broker_epoch) == (ErrorCode.STALE_BROKER_EPOCH, 0, 0)
    assert broker.image.next_producer_id == 0


async def test_whoever_does_not_lead_says_so(broker):
    broker.controller_error = KafkaError(ErrorCode.NOT_CONTROLLER)
    assert (await allocate(broker))[0] == ErrorCode.NOT_CONTROLLER
