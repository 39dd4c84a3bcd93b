"""Frames out of a stream, small and large, however they are cut, and where the large ones live."""

# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

import random

import pytest

from strandline.client.core.frames import LARGE_BYTES, PLACE_BYTES_MAX, Frames, size_of
from strandline.client.errors import ProtocolViolation

BOUND = 1 << 26


def bodies_of(*sizes: int) -> list[bytes]:
    return [random.Random(number).randbytes(size) for number, size in enumerate(sizes)]


def stream_of(bodies: list[bytes]) -> bytes:
    return b"".join(part for body in bodies for part in (size_of(body), body))


def receive(frames: Frames, data: bytes, count_max: int) -> list[bytes]:
    """As a socket does: into the space where there is one, else as bytes of their own."""
    got: list[bytes] = []
    while data:
        space = frames.space()
        if space is None:
            got += map(bytes, frames.feed(data[:count_max]))
            data = data[count_max:]
        else:
            with space:
                count = min(len(space), count_max, len(data))
                space[:count] = data[:count]
            got += map(bytes, frames.filled(count))
            data = data[count:]
    return got


MIXED = (4, LARGE_BYTES, 100, 3 * LARGE_BYTES + 7, LARGE_BYTES - 4, 5, 2 * LARGE_BYTES)


@pytest.mark.parametrize("count_max", [1_000, 65_536, LARGE_BYTES + 3, 1 << 22])
def test_frames_come_out_as_they_went_in_whether_received_in_place_or_fed(count_max: int):
    bodies = bodies_of(*MIXED)
    assert receive(Frames(BOUND), stream_of(bodies), count_max) == bodies
    fed, frames, data = [], Frames(BOUND), stream_of(bodies)
    for start in range(0, len(data), count_max):
        fed += [bytes(frame) for frame in frames.feed(data[start : start + count_max])]
    assert fed == bodies


def test_only_a_large_frame_that_has_begun_has_a_space():
    frames = Frames(BOUND)
    assert frames.space() is None
    frames.feed(size_of(bytes(100)))
    assert frames.space() is None
    frames = Frames(BOUND)
    frames.feed(size_of(bytes(LARGE_BYTES)))
    assert frames.space() is not None


def large(frames: Frames, byte: bytes, size: int = LARGE_BYTES) -> memoryview:
    assert frames.feed(size_of(bytes(size))) == []
    left = size
    while left:
        space = frames.space()
        assert space is not None
        with space:
            count = len(space)
            space[:] = byte * count
        left -= count
        done = frames.filled(count)
    (frame,) = done
    assert isinstance(frame, memoryview)
    return frame


def test_a_frame_that_somebody_looks_at_is_never_written_over():
    frames = Frames(BOUND)
    kept = [large(frames, b"%d" % number)[10:20] for number in range(5)]
    assert [bytes(view) for view in kept] == [b"%d" % number * 10 for number in range(5)]


def test_two_places_take_turns_for_a_reader_who_holds_one_frame_at_a_time():
    frames = Frames(BOUND)
    places = set()
    held = None
    for _ in range(6):
        held = large(frames, b"x")
        places.add(id(held.obj))
    assert held is not None
    assert len(places) == 2


def test_what_a_reader_holds_cannot_be_written_to():
    view = large(Frames(BOUND), b"x")
    with pytest.raises(TypeError):
        view[0] = 1


def test_a_huge_place_is_not_kept():
    frames = Frames(BOUND)
    first = id(large(frames, b"x", PLACE_BYTES_MAX + 1).obj)
    assert frames._places == []
    assert first


def test_a_claim_costs_no_memory_until_its_bytes_arrive():
    frames = Frames(BOUND)
    frames.feed(size_of(bytes(BOUND))[:4])
    space = frames.space()
    assert space is not None
    assert len(space) <= LARGE_BYTES
    with pytest.raises(ProtocolViolation, match="claims"):
        Frames(BOUND).feed((BOUND + 1).to_bytes(4, "big"))
