"""What a power loss may take from a file, and what it may not."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from strandline.sim.inode import Inode, SyncMark

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(1, 3000)),
        st.tuples(st.just("truncate"), st.integers(0, 5000)),
        st.tuples(st.just("begin"), st.just(0)),
        st.tuples(st.just("end"), st.integers(0, 3)),
    ),
    max_size=30,
)


@given(STEPS, st.integers(0, 2**32))
def test_what_was_synced_survives(steps: list[tuple[str, int]], seed: int) -> None:
    inode = Inode(1, 0)
    letters = random.Random(seed)
    running: list[tuple[SyncMark, bytes]] = []
    promised = b""
    for step, number in steps:
        if step == "append":
            inode.data += letters.randbytes(number)
        elif step == "truncate":
            inode.truncate(min(number, len(inode.data)))
            promised = promised[: len(inode.data)]
            running = [(mark, covered[: len(inode.data)]) for mark, covered in running]
        elif step == "begin":
            running.append((inode.begin_sync(), bytes(inode.data)))
        elif running:
            mark, covered = running.pop(number % len(running))
            inode.end_sync(mark)
            promised = max(promised, covered, key=len)
    for chance in range(5):
        left = inode.after_power_loss(random.Random(seed + chance))
        assert left.startswith(promised)


def test_nothing_is_lost_if_all_was_synced() -> None:
    inode = Inode(1, 0)
    inode.data += b"x" * 10_000
    inode.end_sync(inode.begin_sync())
    assert not inode.dirty
    assert {inode.after_power_loss(random.Random(seed)) for seed in range(50)} == {b"x" * 10_000}


def test_a_sync_does_not_cover_what_came_after_its_call() -> None:
    inode = Inode(1, 0)
    inode.data += b"before"
    mark = inode.begin_sync()
    inode.data += b"after"
    inode.end_sync(mark)
    assert inode.durable == b"before"
    left = {inode.after_power_loss(random.Random(seed)) for seed in range(200)}
    assert {b"before", b"beforeafter"} <= left


def test_unsynced_bytes_are_lost_cut_and_torn() -> None:
    inode = Inode(1, 0)
    inode.data += b"a" * 5000
    inode.end_sync(inode.begin_sync())
    inode.data += b"b" * 20_000
    left = [inode.after_power_loss(random.Random(seed)) for seed in range(300)]
    assert all(one[:5000] == b"a" * 5000 for one in left)
    tails = [one[5000:] for one in left]
    assert any(not tail for tail in tails), "all lost"
    assert any(tail == b"b" * 20_000 for tail in tails), "all kept"
    assert any(0 < len(tail) < 20_000 and tail == b"b" * len(tail) for tail in tails), "a prefix"
    assert any(tail and not tail.strip(b"\0") for tail in tails), "grown, but never written"
    holes = [tail for tail in tails if b"\0" in tail and tail.endswith(b"b")]
    assert holes, "a later sector was written, an earlier one not"
    assert any(set(tail) - {0, ord("b")} for tail in tails), "garbage"


def test_a_truncate_that_was_not_synced_may_come_undone() -> None:
    inode = Inode(1, 0)
    inode.data += b"old tail"
    inode.end_sync(inode.begin_sync())
    inode.truncate(4)
    inode.data += b"new"
    left = {inode.after_power_loss(random.Random(seed)) for seed in range(200)}
    assert {b"old tail", b"old ", b"old new"} <= left
    inode.end_sync(inode.begin_sync())
    assert {inode.after_power_loss(random.Random(seed)) for seed in range(50)} == {b"old new"}


def test_after_a_failed_sync_the_bytes_never_become_durable() -> None:
    inode = Inode(1, 0)
    inode.data += b"good"
    inode.end_sync(inode.begin_sync())
    inode.data += b"lost"
    inode.fail_sync(inode.begin_sync())
    inode.data += b"more"
    inode.end_sync(inode.begin_sync())
    assert inode.data == b"goodlostmore"
    assert {inode.after_power_loss(random.Random(seed)) for seed in range(50)} == {b"good\0\0\0\0more"}


def dropped() -> Inode:
    """Four good bytes, and four that a failed sync dropped."""
    inode = Inode(1, 0)
    inode.data += b"good"
    inode.end_sync(inode.begin_sync())
    inode.data += b"lost"
    inode.fail_sync(inode.begin_sync())
    return inode


def left_of(inode: Inode) -> set[bytes]:
    return {inode.after_power_loss(random.Random(seed)) for seed in range(100)}


def test_what_is_written_again_is_durable_with_the_next_sync() -> None:
    inode = dropped()
    inode.rewrite(0, 8)
    assert inode.dirty
    assert all(left.startswith(b"good") for left in left_of(inode)), "and nothing is lost on the way"
    inode.end_sync(inode.begin_sync())
    assert left_of(inode) == {b"goodlost"}


def test_only_what_is_written_again_comes_back() -> None:
    inode = dropped()
    inode.rewrite(5, 7)
    inode.end_sync(inode.begin_sync())
    assert left_of(inode) == {b"good\0os\0"}


def test_it_helps_after_a_sync_that_was_none() -> None:
    inode = dropped()
    inode.data += b"more"
    inode.end_sync(inode.begin_sync())
    assert left_of(inode) == {b"good\0\0\0\0more"}
    inode.rewrite(4, 12)
    inode.end_sync(inode.begin_sync())
    assert left_of(inode) == {b"goodlostmore"}
