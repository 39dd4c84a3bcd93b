"""TLS in both shells: the certificate is checked, and records go through."""

# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

import random
import ssl

import pytest
import trustme

from strandline.client import blocking
from strandline.client.aio import AsyncClient, Producer
from strandline.client.errors import NoBrokerReachable
from strandline.wire import messages

from .server import Broker, serve, serving_beside
from .test_aio import NoonClock


@pytest.fixture(scope="module")
def contexts() -> tuple[ssl.SSLContext, ssl.SSLContext]:
    authority = trustme.CA()
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(server)
    client = ssl.create_default_context()
    authority.configure_trust(client)
    return server, client


async def test_asyncio(contexts):
    broker = Broker()
    server = await serve(broker, contexts[0])
    address = f"127.0.0.1:{broker.port}"
    async with (
        AsyncClient(address, clock=NoonClock(), randomness=random.Random(1), tls=contexts[1]) as client,
        Producer(client) as producer,
    ):
        assert (await producer.send("t", bytes(300_000))).offset == 0
    async with AsyncClient(
        address, clock=NoonClock(), randomness=random.Random(1), tls=ssl.create_default_context()
    ) as client:
        with pytest.raises(NoBrokerReachable, match="CERTIFICATE_VERIFY_FAILED"):
            await client.refresh()
    server.close()


def test_blocking(contexts):
    broker = Broker()
    with serving_beside(broker, contexts[0]):
        with blocking.Client(f"127.0.0.1:{broker.port}", tls=contexts[1]) as client:
            with blocking.Producer(client) as producer:
                assert producer.send("t", bytes(300_000)).result(5.0).offset == 0
            consumer = blocking.Consumer(client, blocking.ConsumerConfig(auto_offset_reset="earliest"))
            consumer.assign([("t", 0)])
            assert [len(record.value or b"") for record in consumer.poll(5.0)] == [300_000]
        with (
            blocking.Client(f"127.0.0.1:{broker.port}", tls=ssl.create_default_context()) as client,
            pytest.raises(NoBrokerReachable, match="CERTIFICATE_VERIFY_FAILED"),
        ):
            client.request(None, 3, messages.request(3)())
