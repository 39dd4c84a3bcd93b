"""How the process of a node begins and ends: what it says, and when it gives up."""

# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

import asyncio

import pytest

from strandline.runtime.server import ServerError, _started
from tests.unit.node.lives import lives

UNREACHABLE = {
    "process_roles": "broker",
    "listeners": "PLAINTEXT://n1:9092",
    "controller_quorum_voters": "2@n2:9093",
    "initial_broker_registration_timeout_ms": "5000",
}


async def prepared(stage) -> None:
    """A node that was not started yet, on log dirs that one before it had."""
    stage.change(**UNREACHABLE)
    stage.node = stage.make_node()


async def first(stage) -> None:
    await stage.start()
    await stage.node.stop()


def test_a_broker_that_is_not_let_in_says_why_in_one_sentence() -> None:
    async def second(stage) -> None:
        await prepared(stage)
        never = asyncio.create_task(asyncio.Event().wait())
        with pytest.raises(
            ServerError, match=r"node 1 could not start: this broker could not be registered within 5 s"
        ):
            await _started(stage.node, never)
        never.cancel()

    lives(first, second, started=False)


def test_a_node_that_is_told_to_stop_before_it_is_up_ends_soon() -> None:
    async def second(stage) -> None:
        await prepared(stage)
        stop = asyncio.create_task(asyncio.sleep(1, True))
        before = stage.world.loop.time()
        assert not await _started(stage.node, stop)
        assert stage.world.loop.time() - before < 2
        assert stage.logged("stopped") == 2

    lives(first, second, started=False)
