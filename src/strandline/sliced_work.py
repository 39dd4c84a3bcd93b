"""Work in slices: long work gives way to other connections every few milliseconds (SEC-L2).

Work is a generator. It pauses after each of its parts and says how many bytes that part adds to the answer; what it returns is the
answer, or the promise of it. Who has little to do calls `finished`; a request with much to do has turns (`api/requests/slices.py`).

Always true: no turn runs longer than TURN_S and one part; an answer is given up before it has grown beyond ANSWER_BYTES_MAX. The
turns do not depend on the machine's speed in the simulator, where no time passes while work is done: there STEPS_PER_TURN_MAX ends
them.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Generic, TypeVar

from strandline.errors import ErrorCode, KafkaError

T = TypeVar("T")
Work = Generator[int, None, T]

TURN_S = 0.005
"""How long one request may occupy the loop before others get their turn."""
STEPS_PER_TURN_MAX = 4096
ANSWER_BYTES_MAX = 100 * 1024 * 1024
"""As large as a request may be. A client that needs more asks for fewer things at once."""


class SlicedWork(Generic[T]):
    """Work that takes several turns."""

    __slots__ = ("_monotonic", "_work", "answer_bytes", "value")

    def __init__(self, work: Work[T], monotonic: Callable[[], float]) -> None:
        self._work = work
        self._monotonic = monotonic
        self.answer_bytes = 0
        self.value: T

    def turn(self) -> bool:
        """Work for one turn; True if that was the last one, and `value` is there."""
        work, monotonic = self._work, self._monotonic
        ends = monotonic() + TURN_S
        try:
            for _ in range(STEPS_PER_TURN_MAX):
                self.answer_bytes += next(work)
                if self.answer_bytes > ANSWER_BYTES_MAX:
                    work.close()
                    raise too_large()
                if monotonic() >= ends:
                    break
        except StopIteration as stop:
            self.value = stop.value
            return True
        return False


def finished(work: Work[T]) -> T:
    """What little work returns: all of it at once."""
    while True:
        try:
            next(work)
        except StopIteration as stop:
            value: T = stop.value
            return value


def check_answer_bytes(size_bytes: int) -> None:
    """KafkaError for an answer that is larger than one may be."""
    if size_bytes > ANSWER_BYTES_MAX:
        raise too_large()


def too_large() -> KafkaError:
    return KafkaError(
        ErrorCode.INVALID_REQUEST,
        f"The answer would have more than {ANSWER_BYTES_MAX} bytes; ask for fewer things at once.",
    )
