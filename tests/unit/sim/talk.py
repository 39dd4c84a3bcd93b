"""A server that echoes and a client that asks it: what most stories of a simulated network are about."""

from __future__ import annotations

import asyncio

from strandline.sim.world import SimNode, World


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(1000):
            writer.write(data)
    except OSError:
        pass
    writer.close()


async def serve() -> None:
    await asyncio.start_server(echo, "0.0.0.0", 9092)


async def ask(host: str, question: bytes = b"hello", patience_s: float = 1.0) -> bytes:
    async with asyncio.timeout(patience_s):
        reader, writer = await asyncio.open_connection(host, 9092)
        try:
            writer.write(question)
            return await reader.readexactly(len(question))
        finally:
            writer.close()


def two(world: World) -> tuple[SimNode, SimNode]:
    return world.node("n1"), world.node("n2")
