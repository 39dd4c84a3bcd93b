"""Markers into partitions of this node: whom they go through, and when their answer comes (TXN-T35)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from strandline.api.transactions.marker_writing import CONSUMER_OFFSETS, MarkerWriter, WritableMarker
from strandline.errors import ErrorCode
from strandline.sim.world import SimNode, World

MARKER = WritableMarker((7, 3), commit=True, coordinator_epoch=5, transaction_version=2)
TIMEOUT_S = 30.0
Written = tuple[int, tuple[int, int], bool, int, int]


class PlayedGroups:
    """The group coordinator: what it was to write, and the answers."""

    def __init__(self) -> None:
        self.written: list[Written] = []
        self.dones: list[Callable[[ErrorCode], None]] = []

    def write_marker(
        self,
        partition_index: int,
        producer: tuple[int, int],
        commit: bool,
        coordinator_epoch: int,
        transaction_version: int,
        done: Callable[[ErrorCode], None],
    ) -> None:
        self.written.append((partition_index, producer, commit, coordinator_epoch, transaction_version))
        self.dones.append(done)


class Writing:
    """Of one marker into a partition of `__consumer_offsets`."""

    def __init__(self, node: SimNode) -> None:
        self.groups = PlayedGroups()
        self.codes: list[ErrorCode] = []
        writer = MarkerWriter(None, self.groups, node.clock, lambda: TIMEOUT_S)  # type: ignore[arg-type]  # it has no logs
        writer.write((CONSUMER_OFFSETS, 4), MARKER, self.codes.append)


def play(story: Callable[[Writing], Awaitable[None]]) -> None:
    world = World(1)
    node = world.node("n1")

    async def on_node() -> None:
        await story(Writing(node))

    async def main() -> None:
        await node.spawn(on_node())

    try:
        world.run(main())
    finally:
        world.close()


def test_txn_t35_a_marker_for_offsets_goes_through_the_groups() -> None:
    async def story(writing: Writing) -> None:
        assert writing.groups.written == [(4, (7, 3), True, 5, 2)]
        assert writing.codes == []
        writing.groups.dones[0](ErrorCode.NONE)
        await asyncio.sleep(TIMEOUT_S)
        assert writing.codes == [ErrorCode.NONE]

    play(story)


@pytest.mark.parametrize(
    ("code", "told"),
    [
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (ErrorCode.NOT_COORDINATOR, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.INVALID_PRODUCER_EPOCH),
        (ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, ErrorCode.NONE),
    ],
)
def test_txn_t35_what_groups_say_is_told_in_terms_of_a_log(code: ErrorCode, told: ErrorCode) -> None:
    async def story(writing: Writing) -> None:
        writing.groups.dones[0](code)
        assert writing.codes == [told]

    play(story)


def test_txn_t35_the_answer_comes_well_before_its_sender_gives_up() -> None:
    """The sender's clock starts first, and waits for the good answers of other partitions too."""

    async def story(writing: Writing) -> None:
        await asyncio.sleep(0.4 * TIMEOUT_S)
        assert writing.codes == []
        await asyncio.sleep(0.2 * TIMEOUT_S)
        assert writing.codes == [ErrorCode.REQUEST_TIMED_OUT]
        writing.groups.dones[0](ErrorCode.NONE)
        assert len(writing.codes) == 1

    play(story)
