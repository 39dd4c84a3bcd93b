"""Frames out of a stream of bytes, however they are cut, and how much memory that may take."""

from __future__ import annotations

from strandline.node.frame_buffer import BUFFER_BYTES, GROW_BYTES, SLACK_BYTES, FrameBuffer


def framed(payload: bytes) -> bytes:
    return len(payload).to_bytes(4, "big") + payload


def feed(buffer: FrameBuffer, data: bytes) -> list[bytes]:
    """The frames that these bytes complete; the buffer grows when it must."""
    found = []
    view = memoryview(data)
    while len(view):
        if buffer.is_full:
            buffer.grow(buffer.step_bytes())
        room = buffer.room()
        size = min(len(room), len(view))
        assert size
        room[:size] = view[:size]
        view = view[size:]
        buffer.filled(size)
        while (frame_size := buffer.frame_size()) is not None and (frame := buffer.take(frame_size)) is not None:
            found.append(bytes(frame))
    return found


def test_frames_come_out_as_they_went_in_wherever_they_are_cut() -> None:
    payloads = [b"", b"a", bytes(range(256)), b"z" * 1000]
    stream = b"".join(map(framed, payloads))
    for cut in range(len(stream)):
        buffer = FrameBuffer()
        assert feed(buffer, stream[:cut]) + feed(buffer, stream[cut:]) == payloads


def test_what_is_left_at_the_end_moves_to_the_front() -> None:
    buffer = FrameBuffer()
    payload = bytes(BUFFER_BYTES // 3)
    assert feed(buffer, framed(payload) * 20) == [payload] * 20
    assert not buffer.grown_bytes


def test_a_claimed_size_gets_no_memory_before_its_bytes_come() -> None:
    buffer = FrameBuffer()
    feed(buffer, (90 << 20).to_bytes(4, "big") + b"x" * 1000)
    assert not buffer.is_full
    assert not buffer.grown_bytes
    feed(buffer, bytes(BUFFER_BYTES))
    assert buffer.grown_bytes == GROW_BYTES + SLACK_BYTES - BUFFER_BYTES
    feed(buffer, bytes(3 << 20))
    assert buffer.grown_bytes <= 2 * (4 << 20)


def test_a_buffer_that_grew_shrinks_when_it_is_told_to() -> None:
    buffer = FrameBuffer()
    large = bytes(9 << 20)
    assert feed(buffer, framed(large)) == [large]
    assert buffer.grown_bytes > 8 << 20
    buffer.shrink()
    assert not buffer.grown_bytes
    assert feed(buffer, framed(b"again")) == [b"again"]
