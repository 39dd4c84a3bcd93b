"""How far logs were cleaned: written down, lowered, forgotten, and taken up again."""

# mypy: disable-error-code="arg-type"

from __future__ import annotations

import pytest

from strandline.log import checkpoints
from strandline.node.clean_offsets import CleanOffsets
from strandline.node.log_effects import perform
from strandline.sim.faults import Fault

from .lives import Host, lives

FILE = f"/data/{checkpoints.CLEANER_OFFSET_CHECKPOINT}"


def offsets_of(stage: Host) -> CleanOffsets:
    return CleanOffsets(stage.disk, stage.node.replicas.log_dirs)


def test_it_is_kafkas_file() -> None:
    async def story(stage: Host) -> None:
        partition, other = await stage.create(), await stage.create("u")
        offsets = offsets_of(stage)
        assert await offsets.write() == []
        assert not stage.disk.exists(FILE), "nothing changed, nothing is written"
        offsets.put(partition, stage.log_dir, 7)
        offsets.put(other, stage.log_dir, 3)
        assert await offsets.write() == []
        assert stage.text(checkpoints.CLEANER_OFFSET_CHECKPOINT) == "0\n2\nt 0 7\nu 0 3\n"
        offsets.lower(partition, 5)
        offsets.lower(other, 5)
        offsets.forget(other)
        await offsets.write()
        assert stage.text(checkpoints.CLEANER_OFFSET_CHECKPOINT) == "0\n1\nt 0 5\n"
        assert (offsets.get(partition, stage.log_dir), offsets.get(other, stage.log_dir)) == (5, None)

    lives(story)


@pytest.mark.parametrize(("written", "taken"), [(2, 2), (9, 3)])
def test_it_is_read_at_the_start_and_reaches_no_further_than_the_log(written: int, taken: int) -> None:
    async def first(stage: Host) -> None:
        partition = await stage.create()
        for _ in range(3):
            stage.append(partition)
        await perform(partition.log.flush())
        checkpoints.write_offsets(stage.disk, FILE, {("t", 0): written})

    async def second(stage: Host) -> None:
        assert stage.partition().log.log_end_offset == 3
        assert stage.log_dir.clean_offsets == {("t", 0): taken}

    lives(first, second)


def test_a_new_log_does_not_inherit_it() -> None:
    async def first(stage: Host) -> None:
        checkpoints.write_offsets(stage.disk, FILE, {("t", 0): 5})

    async def second(stage: Host) -> None:
        assert stage.log_dir.clean_offsets == {("t", 0): 5}
        await stage.create()
        assert stage.log_dir.clean_offsets == {}

    lives(first, second)


def test_one_that_cannot_be_read_counts_as_empty() -> None:
    async def first(stage: Host) -> None:
        stage.disk.write_file(FILE, b"rubbish")

    async def second(stage: Host) -> None:
        assert stage.log_dir.clean_offsets == {}

    lives(first, second)


def test_a_log_dir_that_cannot_be_written_is_named() -> None:
    async def story(stage: Host) -> None:
        partition = await stage.create()
        offsets = offsets_of(stage)
        offsets.put(partition, stage.log_dir, 7)
        stage.disk.faults.set(FILE, Fault.WRITE_ERROR)
        [(log_dir, error)] = await offsets.write()
        assert log_dir is stage.log_dir
        assert isinstance(error, OSError)

    lives(story)
