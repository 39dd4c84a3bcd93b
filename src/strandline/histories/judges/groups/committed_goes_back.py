"""C12: an OffsetFetch sent after a commit was acknowledged is never answered with an older offset, by any coordinator.

A commit counts from when it was asked for until it was answered; one that got no answer, or an error that leaves it
open, may take effect at any later time. A coordinator that was deposed and does not know it yet may answer what it knew,
as Kafka's does: it must have seen what was acknowledged in its own epoch or before.
"""

from __future__ import annotations

from strandline.errors import ErrorCode
from strandline.histories.exchanges import (
    DELETE_GROUPS,
    OFFSET_COMMIT,
    OFFSET_DELETE,
    OFFSET_FETCH,
    CoordinatorExchange,
)
from strandline.histories.groups.observation import GroupJudge, GroupObservation, committed_of
from strandline.histories.quorum_observation import Violation
from strandline.histories.replica_observation import Key

NEVER = float("inf")
NOTHING = -1
"""As OffsetFetch says that nothing was committed."""

NOT_DONE = frozenset(
    {
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.FENCED_MEMBER_EPOCH,
        ErrorCode.STALE_MEMBER_EPOCH,
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.GROUP_ID_NOT_FOUND,
        ErrorCode.NON_EMPTY_GROUP,
        ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC,
        ErrorCode.UNKNOWN_TOPIC_ID,
    }
)
"""Nothing was written, and nothing will be."""


class _Write:
    """A commit of one partition, or the deletion of its offset."""

    __slots__ = ("answered_at", "asked_at", "epoch", "offset")

    def __init__(self, offset: int, asked_at: float) -> None:
        self.offset = offset
        self.asked_at = asked_at
        self.answered_at = NEVER
        """Until it is acknowledged."""
        self.epoch = -1


class CommittedGoesBack(GroupJudge):
    def __init__(self) -> None:
        self._writes: dict[Key, list[_Write]] = {}
        self._open: dict[CoordinatorExchange, dict[Key, _Write]] = {}

    def asked(self, observed: GroupObservation, exchange: CoordinatorExchange) -> None:
        if exchange.api_key == OFFSET_COMMIT:
            offsets = {key: asked.committed_offset for key, asked in observed.keys_of(exchange.request.topics)}
        elif exchange.api_key == OFFSET_DELETE:
            offsets = dict.fromkeys([key for key, _ in observed.keys_of(exchange.request.topics)], NOTHING)
        elif exchange.api_key == DELETE_GROUPS:
            offsets = dict.fromkeys(self._writes, NOTHING)
        else:
            return
        opened = self._open[exchange] = {key: _Write(offset, exchange.asked_at) for key, offset in offsets.items()}
        for key, write in opened.items():
            self._of(key).append(write)

    def answered(self, observed: GroupObservation, exchange: CoordinatorExchange) -> None:
        if exchange.api_key == OFFSET_FETCH:
            self._check(observed, exchange)
            return
        opened = self._open.pop(exchange, None)
        if opened is None:
            return
        for key, code in _codes(observed, exchange, opened).items():
            write = opened.get(key)
            if write is None:
                continue
            if code == ErrorCode.NONE:
                write.answered_at, write.epoch = exchange.answered_at or 0.0, observed.epoch_of(exchange.broker_id)
            elif code in NOT_DONE:
                self._writes[key].remove(write)

    def _of(self, key: Key) -> list[_Write]:
        if key not in self._writes:
            nothing = _Write(NOTHING, -1.0)
            nothing.answered_at = -1.0
            self._writes[key] = [nothing]
        return self._writes[key]

    def _check(self, observed: GroupObservation, exchange: CoordinatorExchange) -> None:
        answer = committed_of(exchange, observed.group_id)
        if answer is None or answer.error_code:
            return
        epoch = observed.epoch_of(exchange.broker_id)
        for key, found in observed.keys_of(answer.topics):
            if found.error_code:
                continue
            writes = self._of(key)
            newer: _Write | None = None
            for write in writes:
                if write.offset != found.committed_offset:
                    continue
                newer = _overwritten_by(write, writes, exchange.asked_at, epoch)
                if newer is None:
                    break
            else:
                by = "that was never committed" if newer is None else f"{newer.offset} was acknowledged before"
                raise Violation(f"answers {exchange.who} {found.committed_offset} for {observed.name(key)}, and {by}")


def _overwritten_by(write: _Write, writes: list[_Write], asked_at: float, epoch: int) -> _Write | None:
    """One that was asked for after this one was acknowledged, and acknowledged before the question."""
    for other in writes:
        if write.answered_at < other.asked_at and other.answered_at < asked_at and other.epoch <= epoch:
            return other
    return None


def _codes(observed: GroupObservation, exchange: CoordinatorExchange, opened: dict[Key, _Write]) -> dict[Key, int]:
    response = exchange.response
    if exchange.api_key == DELETE_GROUPS:
        found = [result.error_code for result in response.results if result.group_id == observed.group_id]
        return dict.fromkeys(opened, found[0]) if found else {}
    if getattr(response, "error_code", 0):
        return dict.fromkeys(opened, response.error_code)
    return {key: partition.error_code for key, partition in observed.keys_of(response.topics)}
