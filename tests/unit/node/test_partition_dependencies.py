"""What partitions see of their node: who may join an ISR (rule B1), who is alive, and where their words go."""

# mypy: allow-incomplete-defs, allow-untyped-calls, allow-untyped-defs

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from strandline.ids import Uuid
from strandline.metadata.image import BrokerImage, MetadataImage
from strandline.node.partition_dependencies import NodePartitionDependencies

BROKER = BrokerImage(2, 20, Uuid(bytes(16)), (), fenced=False)


async def dependencies(broker_epoch=-1, note=None, **changes):
    made = NodePartitionDependencies(
        1,
        30.0,
        broker_epoch=lambda: broker_epoch,
        propose_isr=lambda partition, proposal: None,
        flush_due=lambda partition: None,
        truncated=lambda partition: None,
        note=note or (lambda kind, reason, **facts: None),
    )
    made.use(MetadataImage(brokers={2: replace(BROKER, **changes)}))
    return made


@pytest.mark.parametrize(
    ("changes", "broker_epoch", "eligible", "alive"),
    [
        ({}, 20, True, True),
        ({}, -1, True, True),
        ({}, 19, False, True),
        ({}, 21, False, True),
        ({"fenced": True}, 20, False, False),
        ({"in_controlled_shutdown": True}, 20, False, True),
    ],
)
async def test_b1_who_may_join_and_who_is_alive(changes, broker_epoch, eligible, alive):
    made = await dependencies(**changes)
    assert made.is_eligible(2, broker_epoch) is eligible
    assert made.is_alive(2) is alive


async def test_b1_one_that_is_not_registered_may_not_join():
    made = await dependencies()
    assert not made.is_eligible(3, -1)
    assert not made.is_alive(3)


async def test_until_it_is_registered_a_node_has_no_broker_epoch():
    assert (await dependencies()).broker_epoch == -1
    assert (await dependencies(broker_epoch=7)).broker_epoch == 7


async def test_time_is_the_loops():
    made = await dependencies()
    assert made.now == asyncio.get_running_loop().time


async def test_events_name_their_partition():
    class Somewhere:
        topic, index = "t", 3

    noted = []
    made = await dependencies(note=lambda kind, reason, **facts: noted.append((kind, reason, facts)))
    made.note("truncated", Somewhere(), "why", was=5)
    assert noted == [("truncated", "why", {"topic": "t", "partition": 3, "was": 5})]
