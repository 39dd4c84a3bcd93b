"""The producer's errands go on, whatever happens to one of them."""

# mypy: allow-incomplete-defs, allow-untyped-defs, disable-error-code="attr-defined"

from __future__ import annotations

import asyncio
import random
from typing import Any

from strandline.client.aio import AsyncClient, Producer
from strandline.runtime.clock import SystemClock

from ..server import Broker, serve


class Stumbling(AsyncClient):
    """Its first two questions for metadata fail with what nobody expects."""

    refreshes = 0

    async def refresh(self, *args: Any, **options: Any) -> None:
        self.refreshes += 1
        if self.refreshes <= 2:
            raise OSError("no descriptors left")
        await super().refresh(*args, **options)


def test_metadata_is_asked_for_again_after_an_error_that_nobody_expected():
    told = []

    async def story() -> int:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context["exception"]))
        broker = Broker()
        server = await serve(broker)
        address = f"127.0.0.1:{broker.port}"
        async with Stumbling(address, clock=SystemClock(), randomness=random.Random(1)) as client:
            producer = Producer(client)
            delivery = producer.send("t", b"value")
            async with asyncio.timeout(5):
                offset = (await delivery).offset
            await producer.close()
            assert client.refreshes == 3
        server.close()
        return offset

    assert asyncio.run(story()) == 0
    assert [str(error) for error in told] == ["no descriptors left"] * 2, "it is no secret either"
