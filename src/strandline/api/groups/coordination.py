"""From a request about a group to its coordinator in this node, and back with the answer.

Always true: every request is answered once; an answer for a connection that is gone goes nowhere. Errors are in terms
of the coordinator, not of the log beneath it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar

from strandline.api.context import RequestContext
from strandline.api.requests import slices
from strandline.api.requests.pending_reply import MaybePending, PendingReply
from strandline.coordinator.result import CoordinatorResult, Moment, coordinator_error
from strandline.errors import ErrorCode, KafkaError
from strandline.groups.caller import Caller
from strandline.groups.shard import GroupShard
from strandline.metadata.features import GROUP_VERSION
from strandline.sliced_work import Work
from strandline.wire.message import Message

T = TypeVar("T")
R = TypeVar("R")


class GroupRequest(Protocol):
    """A request for one group."""

    @property
    def group_id(self) -> str: ...


Q = TypeVar("Q", bound=GroupRequest)
Operation = Callable[[GroupShard, Q, Caller, Moment, Callable[[R], None]], CoordinatorResult | None]
Refusal = Callable[[ErrorCode, str | None], R]
"""The answer that is an error."""


def caller(ctx: RequestContext) -> Caller:
    return Caller(ctx.client_id or "", f"/{ctx.peer}", ctx.version)


def coordinate(
    ctx: RequestContext, request: Q, operation: Operation[Q, R], refusal: Refusal[R], *, may_be_overtaken: bool = False
) -> PendingReply[R]:
    """Have an operation done for the group that the request names; its answer, or the promise of it."""
    later: PendingReply[R] = PendingReply(may_be_overtaken=may_be_overtaken)

    def answer(response: R) -> None:
        if not later.done:
            later.complete(response)

    def refuse(error: KafkaError) -> None:
        answer(refusal(coordinator_error(error.code), error.message))

    asking = caller(ctx)
    ctx.node.groups.write(request.group_id, lambda shard, at: operation(shard, request, asking, at, answer), refuse)
    return later


class Several(Generic[T, R]):
    """One reply that is put together from the answers for several groups, in the order in which they were asked about."""

    def __init__(self, count: int, reply: Callable[[list[T]], R]) -> None:
        self.later: PendingReply[R] = PendingReply(may_be_overtaken=False)
        self._answers: list[T | None] = [None] * count
        self._open = count
        self._reply = reply
        if not count:
            self.later.complete(reply([]))

    def begin(self, ask: Callable[[int], None], request: Message, ctx: RequestContext) -> MaybePending[R]:
        """Ask about the group of each place; the promise of the reply."""
        return slices.answer(self._begin(ask), request, ctx)

    def _begin(self, ask: Callable[[int], None]) -> Work[PendingReply[R]]:
        for place in range(len(self._answers)):
            ask(place)
            yield 0
        return self.later

    def put(self, place: int, answer: T) -> None:
        if self._answers[place] is None:
            self._answers[place] = answer
            self._open -= 1
            if not self._open and not self.later.done:
                self.later.complete(self._reply(self._answers))  # type: ignore[arg-type]  # each is there now


def read_each(
    request: Message,
    ctx: RequestContext,
    group_ids: Sequence[str],
    operation: Callable[[int, GroupShard, Moment], T],
    refusal: Callable[[int, KafkaError], T],
    reply: Callable[[list[T]], R],
) -> MaybePending[R]:
    """Read something of each group; both functions are given the place of the group among those that are asked about."""

    def read(place: int) -> None:
        _read(ctx, group_ids[place], place, operation, refusal, several)

    several: Several[T, R] = Several(len(group_ids), reply)
    return several.begin(read, request, ctx)


def _read(
    ctx: RequestContext,
    group_id: str,
    place: int,
    operation: Callable[[int, GroupShard, Moment], T],
    refusal: Callable[[int, KafkaError], T],
    several: Several[T, R],
) -> None:
    ctx.node.groups.read(
        group_id,
        lambda shard, at: operation(place, shard, at),
        lambda answer: several.put(place, answer),
        lambda error: several.put(place, refusal(place, error)),
    )


def serves_consumer_protocol(ctx: RequestContext) -> bool:
    """Whether this cluster has KIP-848 groups: the broker's configuration and the finalised feature both say so."""
    node = ctx.node
    return (
        "consumer" in node.config.group_coordinator_rebalance_protocols
        and node.metadata.image().features.get(GROUP_VERSION, 0) >= 1
    )
