"""Frames out of a stream of bytes, however they are cut, and how much memory that may take."""

from __future__ import annotations

from strandline.node.frame_buffer import BUFFER_BYTES, KEPT_BYTES_MAX, SLACK_BYTES, FrameBuffer


def framed(payload: bytes) -> bytes:
    return len(payload).to_bytes(4, "big") + payload


def feed(buffer: FrameBuffer, data: bytes) -> list[bytes]:
    """The frames that these bytes complete."""
    found = []
    view = memoryview(data)
    while len(view):
        room = buffer.room()
        assert len(room) > 0
        size = min(len(room), len(view))
        room[:size] = view[:size]
        view = view[size:]
        buffer.filled(size)
        while (frame_size := buffer.frame_size()) is not None and (frame := buffer.take(frame_size)) is not None:
            found.append(bytes(frame))
    return found


def memory_of(buffer: FrameBuffer) -> int:
    return len(buffer.room()) + buffer.held_bytes


def test_frames_come_out_as_they_went_in_wherever_they_are_cut() -> None:
    payloads = [b"", b"a", bytes(range(256)), b"z" * 1000]
    stream = b"".join(map(framed, payloads))
    for cut in range(len(stream)):
        buffer = FrameBuffer()
        assert feed(buffer, stream[:cut]) + feed(buffer, stream[cut:]) == payloads


def test_what_is_left_at_the_end_moves_to_the_front() -> None:
    buffer = FrameBuffer()
    payload = bytes(BUFFER_BYTES // 3)
    stream = framed(payload) * 20
    assert feed(buffer, stream) == [payload] * 20
    assert memory_of(buffer) == BUFFER_BYTES


def test_a_claimed_size_gets_no_memory_before_its_bytes_come() -> None:
    buffer = FrameBuffer()
    feed(buffer, (90 << 20).to_bytes(4, "big"))
    for _ in range(1000):
        feed(buffer, b"x")
    assert memory_of(buffer) == BUFFER_BYTES
    feed(buffer, bytes(3 << 20))
    assert memory_of(buffer) <= 2 * (4 << 20) + SLACK_BYTES


def test_a_buffer_that_grew_for_one_frame_is_given_back() -> None:
    buffer = FrameBuffer()
    large = bytes(KEPT_BYTES_MAX + 1)
    assert feed(buffer, framed(large)) == [large]
    assert memory_of(buffer) == BUFFER_BYTES
