"""Producers and consumers on a stage: what they send, the answers they got, what they read.

Always true: they are the public clients, each on a machine of its own; what is kept here of a client is what the client itself
knows.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Literal, TypeAlias, TypedDict, TypeVar

from strandline.client.aio import AsyncClient, ClientConfig, Consumer, ConsumerConfig, Producer, ProducerConfig
from strandline.client.config import ACKS_ALL
from strandline.client.core.backoff import Backoff
from strandline.client.core.batches import RecordDelivery, RecordMetadata
from strandline.errors import KafkaError
from strandline.sim.world import SimNode
from strandline.stories.frames import BilingualText, ClientStatus
from strandline.stories.nodes import name_of, tombstone

T = TypeVar("T")
IsolationLevel: TypeAlias = Literal["read_uncommitted", "read_committed"]
TIMEOUT_MS = 30_000
DELIVERY_TIMEOUT_MS = 60_000
POLL_S = 0.2


class ProducerSettings(TypedDict, total=False):
    """What a story sets of ProducerConfig, besides what every message says."""

    max_in_flight_requests_per_connection: int
    delivery_timeout_ms: int
    request_timeout_ms: int


class SendOptions(ProducerSettings, total=False):
    """How a message is sent; `Stage.send_soon` has the defaults."""

    client: str
    acks: int
    idempotent: bool
    partition: int
    key: str | None


def client_on(machine: SimNode, addresses: list[str]) -> AsyncClient:
    config = ClientConfig(
        client_id=machine.name,
        request_timeout_ms=TIMEOUT_MS,
        connection_setup_timeout_ms=1_000,
        retry_backoff=Backoff(20, 100),
        reconnect_backoff=Backoff(20, 100),
    )
    return AsyncClient(addresses, clock=machine.clock, randomness=machine.randomness, config=config)


class SentMessage:
    """A message that was sent, and what became of it as far as its producer knows."""

    def __init__(self, name: str, client: str, acks: int) -> None:
        self.name = name
        self.client = client
        self.acks = acks
        self.offset: int | None = None
        """Where the broker said it is."""
        self.error: KafkaError | None = None
        self.is_over = False
        self.over: asyncio.Event = asyncio.Event()

    @property
    def is_acknowledged(self) -> bool:
        return self.is_over and self.error is None

    @property
    def error_name(self) -> str:
        return "" if self.error is None else self.error.code.name

    async def answered(self) -> SentMessage:
        """Wait until the producer has the answer."""
        await self.over.wait()
        return self

    def resolve(self, outcome: RecordMetadata | KafkaError) -> None:
        if isinstance(outcome, KafkaError):
            self.error = outcome
        elif outcome.offset >= 0:
            self.offset = outcome.offset
        self.is_over = True
        self.over.set()


class Clients:
    """All clients of a story."""

    def __init__(self, machine: Callable[[str], SimNode], addresses: list[str], topic: str) -> None:
        self._machine = machine
        self._addresses = addresses
        self._topic = topic
        self._clients: dict[str, AsyncClient] = {}
        self._producers: dict[tuple[str, ProducerConfig], Producer] = {}
        self.sent: list[SentMessage] = []
        self._status: list[ClientStatus] = []

    async def client(self, name: str) -> AsyncClient:
        if name not in self._clients:
            machine = self._machine(name)

            async def connect() -> AsyncClient:
                return await client_on(machine, self._addresses).__aenter__()

            self._clients[name] = await machine.spawn(connect())
        return self._clients[name]

    async def send(
        self,
        name: str,
        client: str,
        acks: int,
        idempotent: bool,
        partition: int,
        settings: ProducerSettings,
        key: str | None = None,
    ) -> SentMessage:
        defaults: ProducerSettings = {"request_timeout_ms": TIMEOUT_MS, "delivery_timeout_ms": DELIVERY_TIMEOUT_MS}
        config = ProducerConfig(
            acks=acks,
            enable_idempotence=idempotent and acks == ACKS_ALL,
            linger_ms=0,
            **(defaults | settings),
        )
        flow = await self.client(client)
        message = SentMessage(name, client, acks)
        self.sent.append(message)
        machine = self._machine(client)

        async def take() -> None:
            producer = self._producers.get((client, config))
            if producer is None:
                producer = self._producers[client, config] = Producer(flow, config, allow_auto_topic_creation=False)
            value = None if key is not None and name == tombstone(key) else name.encode()
            encoded_key = None if key is None else key.encode()
            await self._deliver(producer.send(self._topic, value, key=encoded_key, partition=partition), message)

        machine.spawn(take())
        return message

    async def producer(self, client: str, config: ProducerConfig) -> Producer:
        """One that the story itself calls."""
        flow = await self.client(client)

        async def make() -> Producer:
            return Producer(flow, config, allow_auto_topic_creation=False)

        return await self._machine(client).spawn(make())

    async def send_with(self, producer: Producer, client: str, name: str, partition: int) -> SentMessage:
        message = SentMessage(name, client, ACKS_ALL)
        self.sent.append(message)

        async def take() -> None:
            try:
                delivery = producer.send(self._topic, name.encode(), partition=partition)
            except KafkaError as error:
                self._resolve(message, error)
            else:
                await self._deliver(delivery, message)

        self._machine(client).spawn(take())
        return message

    async def _deliver(self, delivery: RecordDelivery, message: SentMessage) -> None:
        try:
            outcome: RecordMetadata | KafkaError = await delivery
        except KafkaError as error:
            outcome = error
        self._resolve(message, outcome)

    def _resolve(self, message: SentMessage, outcome: RecordMetadata | KafkaError) -> None:
        message.resolve(outcome)
        if message.error is not None:
            said = BilingualText(f"{message.name}: {message.error_name}", f"{message.name}: {message.error_name}")
        elif message.acks == 0:
            said = BilingualText(
                f"{message.name} sent, no answer asked for", f"{message.name} 전송, 응답을 요청하지 않음"
            )
        elif message.offset is None:
            said = BilingualText(f"{message.name} acknowledged", f"{message.name} ack 수신")
        else:
            where = message.offset
            said = BilingualText(
                f"{message.name} acknowledged at offset {where}", f"{message.name} ack 수신 (오프셋 {where})"
            )
        self.note(message.client, said)

    async def read(
        self, client: str, offset: int, partition: int, wait_s: float, isolation_level: IsolationLevel
    ) -> list[str]:
        """What a consumer finds from `offset` on, until a poll finds nothing more."""
        flow = await self.client(client)

        async def run() -> list[str]:
            consumer = Consumer(
                flow, ConsumerConfig(auto_offset_reset="none", fetch_max_wait_ms=100, isolation_level=isolation_level)
            )
            consumer.assign([(self._topic, partition)])
            consumer.seek(self._topic, partition, offset)
            found: list[str] = []
            try:
                while records := await consumer.poll(wait_s):
                    found += [name_of(record.key, record.value) for record in records]
            finally:
                await consumer.close()
            return found

        found = await self._machine(client).spawn(run())
        names = ", ".join(found)
        how = f" ({isolation_level})" if isolation_level == "read_committed" else ""
        said = (
            BilingualText(f"reads {names}{how}", f"{names} 읽음{how}")
            if found
            else BilingualText(f"reads nothing{how}", f"읽은 메시지 없음{how}")
        )
        self.note(client, said)
        return found

    async def do(self, client: str, work: Callable[[AsyncClient], Awaitable[T]]) -> T:
        """Anything else that a client can do: `await stage.do("operator", lambda client: Admin(client).…)`."""
        flow = await self.client(client)

        async def run() -> T:
            return await work(flow)

        return await self._machine(client).spawn(run())

    def note(self, client: str, said: BilingualText) -> None:
        self._status.append(ClientStatus(client, said))

    def words(self) -> tuple[ClientStatus, ...]:
        """What clients did since the last call, then which of them wait."""
        statuses, self._status = self._status, []
        waiting: dict[str, list[str]] = {}
        for message in self.sent:
            if not message.is_over:
                waiting.setdefault(message.client, []).append(message.name)
        for client, names in waiting.items():
            listed = ", ".join(names)
            statuses.append(
                ClientStatus(client, BilingualText(f"waits for {listed}", f"{listed}의 응답을 기다림"), is_waiting=True)
            )
        return tuple(statuses)

    async def close(self) -> None:
        for name, client in self._clients.items():
            machine = self._machine(name)
            if machine.alive:
                await machine.spawn(client.close())
