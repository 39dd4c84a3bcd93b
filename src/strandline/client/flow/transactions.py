"""The transactions of one producer: what the application calls, and the errands to the coordinators.

    async with producer.transaction():
        producer.send("topic", b"value")

One coroutine asks what the core wants to ask, one request after another, while there is something to ask. It goes on
when a call has timed out: what became of an EndTxn has to be known before the next transaction.

Always true: every question that the core gave is answered, lost or refused once; whoever waits is woken after each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, cast

from strandline.client.core.group.coordinator import CoordinatorType
from strandline.client.core.group.member import GroupMetadata
from strandline.client.core.group.offsets import OffsetAndMetadata
from strandline.client.core.producer import ProducerCore
from strandline.client.core.transaction import TransactionCore
from strandline.client.core.transaction_requests import TransactionQuestion, TransactionVerdict
from strandline.client.core.transactional_state import TransactionalState
from strandline.client.errors import Closed, TimedOut, TransactionAbortable
from strandline.client.flow.client import FlowClient
from strandline.client.flow.coordinator_link import CoordinatorLink
from strandline.client.flow.io import Condition
from strandline.errors import KafkaError
from strandline.ids import TopicPartition

if TYPE_CHECKING:
    from strandline.client.core.transaction_requests import TransactionalResponse


class FlowTransactions:
    """`wake_sender` has the records looked at that may leave now, or must not any more."""

    def __init__(
        self, client: FlowClient, producer: ProducerCore, core: TransactionCore, wake_sender: Callable[[], None]
    ) -> None:
        self._client = client
        self._io = client.io
        self._producer = producer
        self._core = core
        self._wake_sender = wake_sender
        self._link = CoordinatorLink(client, core.transactional_id, type_=CoordinatorType.TRANSACTION)
        self._groups: dict[str, CoordinatorLink] = {}
        self._wake = Condition(client.io)
        self._is_woken = False
        self._is_asking = False
        self._is_closed = False
        self._progress = Condition(client.io)

    @property
    def state(self) -> TransactionalState:
        return self._core.state

    # What the application calls

    def block(self) -> TransactionBlock:
        return TransactionBlock(self)

    async def init(self, timeout_ms: int | None = None) -> None:
        self._core.initialise()
        await self._until_settled("init_transactions", timeout_ms)

    def begin(self) -> None:
        self._core.begin()

    async def commit(self, timeout_ms: int | None = None) -> None:
        self._core.commit()
        await self._until_settled("commit_transaction", timeout_ms)

    async def abort(self, timeout_ms: int | None = None) -> None:
        self._core.abort()
        await self._until_settled("abort_transaction", timeout_ms)

    async def send_offsets(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata | int],
        group_metadata: GroupMetadata,
        timeout_ms: int | None = None,
    ) -> None:
        named = {k: OffsetAndMetadata(o) if isinstance(o, int) else o for k, o in offsets.items()}
        sent = self._core.send_offsets(named, group_metadata)
        await self._until(lambda: sent.is_over, "send_offsets_to_transaction", timeout_ms)
        if sent.error is not None:
            raise sent.error

    async def leave(self, timeout_ms: int | None) -> None:
        """Abort what is open, if that is possible within the time."""
        if self._core.is_open:
            try:
                await self.abort(timeout_ms)
            except KafkaError:
                pass  # the coordinator aborts it: when its time is over, or when the next producer of this id begins

    def close(self) -> None:
        self._is_closed = True
        for link in (self._link, *self._groups.values()):
            link.close()
        self._wake.notify_all()
        self._progress.notify_all()

    async def _until_settled(self, call: str, timeout_ms: int | None) -> None:
        self._wake_sender()
        await self._until(lambda: not self._core.is_on_its_way, call, timeout_ms)
        self._core.ensure_no_error()

    async def _until(self, holds: Callable[[], bool], call: str, timeout_ms: int | None) -> None:
        timeout_ms = self._client.config.default_api_timeout_ms if timeout_ms is None else timeout_ms
        deadline = self._io.now() + timeout_ms / 1000
        self.wake()
        while not holds():
            if self._is_closed:
                raise Closed("producer")
            if (left_s := deadline - self._io.now()) <= 0:
                raise TimedOut(
                    f"{call} of transactional id '{self._core.transactional_id}' took more than {timeout_ms} ms"
                )
            await self._progress.wait(left_s)

    # Errands

    def wake(self) -> None:
        """There may be something to ask: the application has called, records wait, or none does any more."""
        if self._is_asking:
            self._is_woken = True
            self._wake.notify_all()
        elif not self._is_closed:
            question = self._next()
            if question is not None or self._core.retry_at > self._io.now():
                self._is_asking = True
                self._io.spawn(self._ask_all(question))

    def _next(self) -> TransactionQuestion | None:
        question = self._core.question(self._io.now(), is_quiet=not self._producer.has_unfinished)
        self._progress.notify_all()  # it may have found that there is nothing to end
        return question

    async def _ask_all(self, question: TransactionQuestion | None) -> None:
        try:
            while not self._is_closed:
                if question is not None:
                    await self._ask(question)
                    self._wake_sender()
                elif (wait_s := self._core.retry_at - self._io.now()) <= 0:
                    return
                elif not self._is_woken:
                    await self._wake.wait(wait_s)
                self._is_woken = False
                question = self._next()
        finally:
            self._is_asking = False
            self._progress.notify_all()

    async def _ask(self, question: TransactionQuestion) -> None:
        core, link = self._core, self._link_to(question.group_id)
        try:
            reply = await link.request(
                question.api_key,
                question.message,
                timeout_ms=self._client.config.request_timeout_ms,
                version_max=question.version_max,
                version_min=question.version_min,
            )
        except KafkaError as error:
            if error.retriable and not isinstance(error, Closed):
                core.lost(self._io.now())
            else:
                core.refused(error)
        except BaseException:
            core.lost(self._io.now())
            raise
        else:
            response = cast("TransactionalResponse", reply.message)
            if core.answered(response, self._io.now()) is TransactionVerdict.FIND:
                link.gone(reply.node_id)
            else:
                link.serves()

    def _link_to(self, group_id: str | None) -> CoordinatorLink:
        if group_id is None:
            return self._link
        if group_id not in self._groups:
            self._groups[group_id] = CoordinatorLink(self._client, group_id)
        return self._groups[group_id]


class TransactionBlock:
    """`async with producer.transaction()`: committed at its end, aborted if an exception leaves it.

    The first one of a producer takes the transactional id over.
    """

    def __init__(self, transactions: FlowTransactions) -> None:
        self._transactions = transactions

    async def __aenter__(self) -> None:
        if self._transactions.state in (TransactionalState.UNINITIALISED, TransactionalState.INITIALISING):
            await self._transactions.init()
        self._transactions.begin()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._transactions.state is TransactionalState.READY:
            return  # it was ended inside the block
        if error is not None:
            await self._abort_after(error)
            return
        try:
            await self._transactions.commit()
        except TransactionAbortable as refused:
            await self._abort_after(refused)
            raise

    async def _abort_after(self, error: BaseException) -> None:
        """The error is what the application has to know."""
        try:
            await self._transactions.abort()
        except KafkaError as refused:
            error.add_note(f"and the transaction could not be aborted: {refused}")
