"""A producer of transactions on a stage: the public client, on a machine of its own, with its calls as the story's verbs.

    a = await stage.transactional("producer A", "orders-1")
    await a.init()
    await a.begin()
    debit = await a.send("debit", partition=0)
    await a.commit()

Always true: a call that was refused raises nothing; the next frame says what the client was told, and `error_name` keeps it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from strandline.client.aio import Producer
from strandline.client.core.group.member import NO_GENERATION, NO_MEMBER, GroupMetadata
from strandline.errors import KafkaError
from strandline.sim.world import SimNode
from strandline.stories.clients import Clients, SentMessage
from strandline.stories.frames import BilingualText


class TransactionalProducer:
    def __init__(self, clients: Clients, client: str, machine: SimNode, producer: Producer, topic: str) -> None:
        self.client = client
        self.error_name = ""
        """Of the newest call."""
        self._clients = clients
        self._machine = machine
        self._producer = producer
        self._topic = topic

    async def init(self) -> bool:
        return await self._call(
            self._producer.init_transactions,
            "takes over the transactional id",
            "트랜잭셔널 ID를 이어받음",
        )

    async def begin(self) -> bool:
        async def begin() -> None:
            self._producer.begin_transaction()

        return await self._call(begin, "begins a transaction", "트랜잭션 시작")

    async def send(self, name: str, partition: int = 0) -> SentMessage:
        """Send a message and go on; its answer: `await message.answered()`."""
        return await self._clients.send_with(self._producer, self.client, name, partition)

    async def send_offset(self, group_id: str, partition: int, offset: int) -> bool:
        """The offset of a group without members: from there on it goes on, once the transaction is committed."""

        async def send() -> None:
            metadata = GroupMetadata(group_id, NO_GENERATION, NO_MEMBER, None)
            await self._producer.send_offsets_to_transaction({(self._topic, partition): offset}, metadata)

        return await self._call(send, f"sends offset {offset} of {group_id}", f"{group_id}의 {offset}번 오프셋 전송")

    async def commit(self) -> bool:
        return await self._call(self._producer.commit_transaction, "commit: done", "커밋 완료", "commit", "커밋")

    async def abort(self) -> bool:
        return await self._call(self._producer.abort_transaction, "abort: done", "중단 완료", "abort", "중단")

    async def _call(
        self, call: Callable[[], Awaitable[None]], en: str, ko: str, what_en: str = "", what_ko: str = ""
    ) -> bool:
        async def run() -> None:
            await call()

        self.error_name = ""
        try:
            await self._machine.spawn(run())
        except KafkaError as error:
            self.error_name = error.code.name
            en, ko = f"{what_en or en}: {self.error_name}", f"{what_ko or ko}: {self.error_name}"
        self._clients.note(self.client, BilingualText(en, ko))
        return not self.error_name
