"""Producer ids: no id twice."""

from __future__ import annotations

from dataclasses import replace

import pytest

from strandline.controller.producer_ids import BLOCK_SIZE, PRODUCER_ID_MAX, allocate
from strandline.errors import ErrorCode, KafkaError

from .conftest import after, broker, cluster


def test_blocks_follow_each_other_whoever_asks() -> None:
    image = cluster(broker(1), broker(2))
    given: list[int] = []
    for broker_id in (1, 2, 1):
        records, block = allocate(image, broker_id, broker_id)
        image = after(image, records)
        given += block
    assert given == list(range(3 * BLOCK_SIZE))
    assert image.next_producer_id == 3 * BLOCK_SIZE


@pytest.mark.parametrize(("broker_id", "epoch"), [(1, 0), (1, 2), (3, 3)], ids=["older", "newer", "not registered"])
def test_b13_only_the_newest_incarnation_of_a_broker_gets_one(broker_id: int, epoch: int) -> None:
    with pytest.raises(KafkaError) as raised:
        allocate(cluster(broker(1)), broker_id, epoch)
    assert raised.value.code is ErrorCode.STALE_BROKER_EPOCH


def test_ids_do_not_wrap() -> None:
    last = replace(cluster(broker(1)), next_producer_id=PRODUCER_ID_MAX - BLOCK_SIZE)
    assert allocate(last, 1, 1)[1].stop == PRODUCER_ID_MAX
    with pytest.raises(KafkaError) as raised:
        allocate(replace(last, next_producer_id=PRODUCER_ID_MAX), 1, 1)
    assert raised.value.code is ErrorCode.UNKNOWN_SERVER_ERROR
