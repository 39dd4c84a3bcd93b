"""What one connection reads: its room in the read budget is for a request that is arriving, and for nothing else (SEC-L4)."""

from __future__ import annotations

from strandline.node.frame_buffer import BUFFER_BYTES, GROW_BYTES
from strandline.node.intake import Intake
from strandline.node.read_budget import ReadBudget

TIMEOUT_S = 10.0


def sized(size: int) -> bytes:
    return size.to_bytes(4, "big") + bytes(size)


class Sender:
    """A peer and the connection that reads from it. Frames are taken as soon as they are whole."""

    def __init__(self, budget: ReadBudget, shared: memoryview) -> None:
        self.intake = Intake(shared, budget)
        self.served: list[int] = []
        self.left = b""
        self.asked = 0

    def send(self, data: bytes) -> None:
        self.left += data
        self._read()

    def _read(self) -> None:
        while self.left and not self.intake.waits_for_room:
            room = self.intake.buffer()
            size = min(len(room), len(self.left))
            room[:size] = self.left[:size]
            self.left = self.left[size:]
            self.intake.filled(size)
            self._handle()

    def _handle(self) -> None:
        frames = self.intake.frames
        while (size := frames.frame_size()) is not None and frames.take(size) is not None:
            self.served.append(size)
        if frames.is_full:
            self.intake.grow(self._ask_again)
        self.intake.settle()

    def _ask_again(self) -> None:
        self.asked += 1
        self.intake.waits_for_room = False
        self._handle()
        self._read()

    def is_stalled(self, now: float) -> bool:
        return self.intake.is_stalled(now, TIMEOUT_S, is_reading=not self.intake.waits_for_room)


def senders(count: int, limit_bytes: int) -> tuple[ReadBudget, list[Sender]]:
    budget, shared = ReadBudget(limit_bytes), memoryview(bytearray(BUFFER_BYTES))
    return budget, [Sender(budget, shared) for _ in range(count)]


def test_small_requests_after_a_large_one_are_no_request_that_stalls() -> None:
    budget, [sender] = senders(1, 100 * GROW_BYTES)
    sender.send(sized(600_000))
    assert budget.taken_bytes > 600_000, "the buffer is kept for more of its size"
    for second in range(60):
        sender.send(sized(10))
        assert not sender.is_stalled(float(second))
    assert sender.served == [600_000, *[10] * 60]


def test_a_large_request_that_stops_after_another_one_is_stalled() -> None:
    _, [sender] = senders(1, 100 * GROW_BYTES)
    sender.send(sized(600_000))
    sender.send(sized(600_000)[:-1])
    assert not sender.is_stalled(0.0)
    assert not sender.is_stalled(TIMEOUT_S - 1)
    assert sender.is_stalled(TIMEOUT_S)


def test_a_kept_buffer_is_given_back_when_somebody_waits() -> None:
    _, [one, other, third] = senders(3, GROW_BYTES)
    one.send(sized(600_000))
    assert one.intake.frames.grown_bytes
    other.send(sized(600_000)[:-1])
    assert other.intake.frames.grown_bytes, "it goes beyond the limit"
    third.send(sized(600_000))
    assert third.intake.waits_for_room
    one.send(sized(600_000))
    assert not one.intake.frames.grown_bytes
    other.send(sized(600_000)[-1:])
    assert not other.intake.frames.grown_bytes
    assert (one.served, other.served, third.served) == ([600_000] * 2, [600_000], [600_000])


def test_room_of_an_idle_connection_is_given_back_when_somebody_waits() -> None:
    budget, [one, other, third] = senders(3, GROW_BYTES)
    one.send(sized(600_000))
    other.send(sized(600_000)[:-1])
    third.send(sized(600_000))
    assert not third.served
    one.intake.trim(is_idle=False)
    assert budget.taken_bytes < GROW_BYTES + 700_000
    other.send(sized(600_000)[-1:])
    assert third.served == [600_000]


def test_requests_that_never_end_share_the_room_request_by_request() -> None:
    """Each sender's next request begins before the last one was served, so that its buffer is never empty."""
    budget, all_of_them = senders(4, GROW_BYTES)
    stream = sized(600_000)
    for sender in all_of_them:
        sender.send(stream[:300_000])
    for _ in range(12):
        for sender in all_of_them:
            sender.send(stream[300_000:] + stream[:300_000])
    assert all(len(sender.served) >= 3 for sender in all_of_them), [len(sender.served) for sender in all_of_them]
    for sender in all_of_them:
        sender.intake.close()
    assert (budget.taken_bytes, budget.waiting) == (0, 0)


def test_a_large_request_costs_one_buffer_while_nobody_waits() -> None:
    budget, [sender] = senders(1, 100 * GROW_BYTES)
    sender.send(sized(600_000))
    kept = budget.taken_bytes
    for _ in range(5):
        sender.send(sized(600_000))
        assert budget.taken_bytes == kept
    sender.intake.trim(is_idle=False)
    assert budget.taken_bytes == kept, "nobody needs it"
    sender.intake.trim(is_idle=True)
    assert budget.taken_bytes == 0


def test_much_that_is_held_back_is_cut_off_only_while_others_wait_for_room() -> None:
    """Requests behind one that waits, in a buffer that grew for an earlier one."""
    budget, [behind, other, third] = senders(3, 2 * GROW_BYTES)
    behind.send(sized(1_200_000))
    behind.send(sized(1_100_000)[:-1])
    assert budget.taken_bytes > GROW_BYTES

    def is_stalled(now: float) -> bool:
        return behind.intake.is_stalled(now, TIMEOUT_S, is_reading=False)

    assert not any(is_stalled(float(second)) for second in range(60))
    other.send(sized(2_000_000)[:-1])
    third.send(sized(2_000_000)[:-1])
    assert third.intake.waits_for_room
    assert [is_stalled(60.0 + second) for second in range(11)] == [False] * 10 + [True]


def test_a_trimmed_buffer_has_room_for_the_next_read() -> None:
    _, [sender, other, third] = senders(3, 4 * GROW_BYTES)
    sender.send(sized(3_000_000))
    sender.send(sized(1_000_000) + sized(1_000_000)[:-1])
    other.send(sized(3_000_000)[:-1])
    third.send(sized(3_000_000)[:-1])
    assert third.intake.waits_for_room
    sender.intake.trim(is_idle=False)
    assert sender.intake.buffer(), "an event loop takes an empty buffer for an error"
    sender.send(sized(1_000_000)[-1:])
    assert sender.served == [3_000_000, 1_000_000, 1_000_000]
