"""The result of an operation of a coordinator (records to write, what follows), and what the operation is given.

Always true: `done` is called once, with NONE when every record is committed, or with the reason why they can't be; an
answer that depends on records is given from there. `committed` is called once if the records are committed while this
node coordinates, and never if they are not: also when `done` was called before, because that took too long.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from strandline.coordinator.record import CoordinatorRecord
from strandline.errors import ErrorCode
from strandline.log.verification_guards import VerificationGuard


class Moment(NamedTuple):
    now: float
    """Monotonic seconds: timers and sessions."""
    wall_ms: int
    """For what is written down."""


R = TypeVar("R")
Answer = Callable[[R], None]
"""Takes the response, once."""


@dataclass(slots=True)
class CoordinatorResult:
    """Records to write as one batch, and what follows once they are committed or can't be."""

    records: list[CoordinatorRecord]
    done: Callable[[ErrorCode, Moment], CoordinatorResult | None] = lambda code, at: None
    replayed: bool = True
    """False: the memory already holds what the records say, as a classic group's does."""
    committed: Callable[[Moment], None] | None = None
    """Called when the high watermark has passed the records, just before the answer leaves."""
    producer: tuple[int, int] | None = None
    """The producer id and epoch in whose transaction the records are: they wait for its marker."""
    guard: VerificationGuard | None = None
    """Of that transaction, from before its coordinator was asked; not needed where it has records already (TXN-V6)."""


_COORDINATOR_ERRORS = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.INVALID_FETCH_SIZE: ErrorCode.UNKNOWN_SERVER_ERROR,
}


def coordinator_error(code: ErrorCode) -> ErrorCode:
    """The code for a client when records can't be written: in terms of the coordinator, not of its log (TXN-TF6)."""
    return _COORDINATOR_ERRORS.get(code, code)


Callback = Callable[[Moment], "CoordinatorResult | None"]
