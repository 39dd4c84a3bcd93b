"""Frames out of a stream of bytes, however they are cut, and how much memory that may take."""

# mypy: disable-error-code="unreachable"

from __future__ import annotations

import random

from strandline.node.frame_buffer import BUFFER_BYTES, GROW_BYTES, OWN_BYTES_MIN, SLACK_BYTES, FrameBuffer


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


def shared() -> list[FrameBuffer]:
    landing = memoryview(bytearray(BUFFER_BYTES))
    return [FrameBuffer(landing) for _ in range(3)]


def test_connections_that_share_a_landing_buffer_keep_their_bytes_apart() -> None:
    randomness = random.Random(1)
    sizes = (0, 1, 100, 5_000, 60_000, BUFFER_BYTES - 4, BUFFER_BYTES + 1, 2 << 20)
    payloads = [[randomness.randbytes(randomness.choice(sizes)) for _ in range(12)] for _ in range(3)]
    streams = [b"".join(map(framed, each)) for each in payloads]
    found: list[list[bytes]] = [[], [], []]
    buffers = shared()
    while any(streams):
        which = randomness.choice([i for i, stream in enumerate(streams) if stream])
        size = randomness.choice((1, 3, 1000, 30_000, BUFFER_BYTES))
        randomness.choice(buffers).room()  # its socket had nothing after all
        # One read: nobody else reads before what it left is settled.
        buffer, some = buffers[which], streams[which][:size]
        if buffer.is_full:
            buffer.grow(buffer.step_bytes())
        room = buffer.room()
        count = min(len(room), len(some))
        room[:count] = some[:count]
        streams[which] = streams[which][count:]
        buffer.filled(count)
        while (frame_size := buffer.frame_size()) is not None and (frame := buffer.take(frame_size)) is not None:
            found[which].append(bytes(frame))
        buffer.settle()
    assert found == payloads


def test_reads_are_large_though_each_ends_amid_a_frame() -> None:
    """A buffer for the rest of that frame alone would make every other read bring one request."""
    buffer, *_ = shared()
    stream = memoryview(framed(bytes(16_000)) * 200)
    reads = 0
    while len(stream):
        room = buffer.room()
        count = min(len(room), len(stream))
        room[:count] = stream[:count]
        stream = stream[count:]
        buffer.filled(count)
        while (frame_size := buffer.frame_size()) is not None and buffer.take(frame_size) is not None:
            pass
        buffer.settle()
        reads += 1
    assert reads <= 200 * 16_004 // (BUFFER_BYTES - 16_004) + 1


def test_a_connection_that_holds_nothing_has_no_buffer_of_its_own() -> None:
    buffer, *_ = shared()
    assert feed(buffer, framed(b"whole")) == [b"whole"]
    buffer.settle()
    assert buffer.taken_bytes == 0
    feed(buffer, framed(bytes(100_000))[:-1])
    buffer.settle()
    assert 100_000 - OWN_BYTES_MIN <= buffer.taken_bytes <= 101_000
    assert len(feed(buffer, b"x")) == 1
    buffer.settle()
    assert buffer.taken_bytes == 0


def test_the_start_of_a_frame_takes_little_whatever_it_claims() -> None:
    buffer, *_ = shared()
    feed(buffer, (90 << 20).to_bytes(4, "big") + b"x")
    buffer.settle()
    assert buffer.taken_bytes == 0
    feed(buffer, bytes(10_000))
    assert buffer.taken_bytes < 40_000


def test_a_read_amid_a_large_frame_leaves_nothing_to_do() -> None:
    buffer, *_ = shared()
    frame = framed(bytes(1 << 20)) + framed(b"next")
    feed(buffer, frame[:3])
    assert not buffer.only_grows, "its size is not known, and has to be looked at"
    buffer.settle()
    feed(buffer, frame[3:300_000])
    assert buffer.only_grows
    buffer.settle()
    feed(buffer, frame[300_000 : 1 << 20])
    assert buffer.only_grows
    assert len(feed(buffer, frame[1 << 20 :])) == 2
    assert not buffer.only_grows


def test_a_buffer_that_grew_can_be_trimmed() -> None:
    buffer = FrameBuffer()
    large = bytes(9 << 20)
    assert feed(buffer, framed(large)) == [large]
    assert buffer.grown_bytes > 8 << 20
    buffer.trim()
    assert not buffer.grown_bytes
    assert feed(buffer, framed(b"again")) == [b"again"]
