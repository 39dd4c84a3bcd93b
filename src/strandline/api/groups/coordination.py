"""From a request about a group to its coordinator in this node, and back with the answer.

Always true: every request is answered once; an answer for a connection that is gone goes nowhere. What a client is told is in terms
of the coordinator, not of the log beneath it (`groups.outcome.told`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from strandline.api.context import RequestContext
from strandline.api.requests import slices
from strandline.api.requests.pending_reply import Later
from strandline.errors import ErrorCode, KafkaError
from strandline.groups.outcome import Answer, Caller, Moment, Outcome, told
from strandline.groups.shard import Shard
from strandline.metadata.features import GROUP_VERSION
from strandline.sliced_work import Work

T = TypeVar("T")
Operation = Callable[[Shard, Any, Caller, Moment, Answer], Outcome | None]
Refusal = Callable[[ErrorCode, str | None], Any]
"""The answer that tells an error."""


def caller(ctx: RequestContext) -> Caller:
    return Caller(ctx.client_id or "", f"/{ctx.peer}", ctx.version)


def coordinate(
    ctx: RequestContext, request: Any, operation: Operation, refusal: Refusal, *, may_be_overtaken: bool = False
) -> Any:
    """Have an operation done for the group that the request names; its answer, or the promise of it."""
    later = Later(may_be_overtaken=may_be_overtaken)

    def answer(response: Any) -> None:
        if not later.done:
            later.complete(response)

    def refuse(error: KafkaError) -> None:
        answer(refusal(told(error.code), error.message))

    asking = caller(ctx)
    ctx.node.groups.write(request.group_id, lambda shard, at: operation(shard, request, asking, at, answer), refuse)
    return later


class Several:
    """One reply that is put together from the answers for several groups, in the order in which they were asked about."""

    def __init__(self, count: int, reply: Callable[[list[Any]], Any]) -> None:
        self.later = Later(may_be_overtaken=False)
        self._answers: list[Any] = [None] * count
        self._open = count
        self._reply = reply
        if not count:
            self.later.complete(reply([]))

    def begin(self, ask: Callable[[int], None], request: Any, ctx: RequestContext) -> Later | Awaitable[Any]:
        """Ask about the group of each place; the promise of the reply."""
        promised: Later | Awaitable[Any] = slices.answer(self._begin(ask), request, ctx)
        return promised

    def _begin(self, ask: Callable[[int], None]) -> Work[Later]:
        for place in range(len(self._answers)):
            ask(place)
            yield 0
        return self.later

    def put(self, place: int, answer: Any) -> None:
        if self._answers[place] is None:
            self._answers[place] = answer
            self._open -= 1
            if not self._open and not self.later.done:
                self.later.complete(self._reply(self._answers))


def read_each(
    request: Any,
    ctx: RequestContext,
    group_ids: Sequence[str],
    operation: Callable[[int, Shard, Moment], Any],
    refusal: Callable[[int, KafkaError], Any],
    reply: Callable[[list[Any]], Any],
) -> Later | Awaitable[Any]:
    """Read something of each group; both functions are told the place of the group among those that are asked about."""

    def read(place: int) -> None:
        _read(ctx, group_ids[place], place, operation, refusal, several)

    several = Several(len(group_ids), reply)
    return several.begin(read, request, ctx)


def _read(
    ctx: RequestContext,
    group_id: str,
    place: int,
    operation: Callable[[int, Shard, Moment], Any],
    refusal: Callable[[int, KafkaError], Any],
    several: Several,
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
