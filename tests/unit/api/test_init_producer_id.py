"""InitProducerId: ids for producers."""

# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

import pytest

from strandline.api import init_producer_id
from strandline.errors import ErrorCode, KafkaError


@pytest.mark.parametrize("version", init_producer_id.VERSIONS)
async def test_every_producer_gets_an_id_of_its_own(broker, version):
    one, two = [await broker.call(init_producer_id, version, transactional_id=None) for _ in range(2)]
    assert (one.error_code, one.producer_epoch, two.producer_epoch) == (0, 0, 0)
    assert one.producer_id != two.producer_id


async def test_the_id_a_producer_had_is_not_given_to_it_again(broker):
    reply = await broker.call(init_producer_id, 3, transactional_id=None, producer_id=0, producer_epoch=7)
    other = await broker.call(
        init_producer_id, 3, transactional_id=None, producer_id=reply.producer_id, producer_epoch=0
    )
    assert other.producer_id != reply.producer_id
    assert other.producer_epoch == 0


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"transactional_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"transactional_id": None, "producer_id": 4}, ErrorCode.INVALID_REQUEST),
        ({"transactional_id": None, "producer_epoch": 4}, ErrorCode.INVALID_REQUEST),
        ({"transactional_id": "t", "transaction_timeout_ms": 60_000}, ErrorCode.NOT_COORDINATOR),
    ],
)
async def test_refusals(broker, fields, error):
    reply = await broker.call(init_producer_id, 4, **fields)
    assert (reply.error_code, reply.producer_id, reply.producer_epoch) == (error, -1, -1)


async def test_without_a_controller_the_producer_is_told_to_try_again(broker):
    broker.controller_error = KafkaError(ErrorCode.NOT_CONTROLLER)
    reply = await broker.call(init_producer_id, 4, transactional_id=None)
    assert reply.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
