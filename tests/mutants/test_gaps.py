"""Rules that mutants found nobody to look at: each test here is the one that notices its mutant."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from strandline.errors import ErrorCode
from strandline.metadata.image import MetadataImage
from strandline.metadata.replay import replay
from strandline.node.quorum.images import Images, LoadedSnapshot
from strandline.node.quorum.snapshots import Snapshots
from strandline.node.quorum.snapshotting import SnapshotGenerator
from strandline.raft.election_state import ElectionState
from strandline.raft.messages import OffsetAndEpoch
from strandline.sim.world import World
from tests.unit.api.leader import Leader, part
from tests.unit.node.quorum.stage import topic
from tests.unit.raft.bench import Bench
from tests.unit.raft.memory_log import MemoryLog
from tests.unit.raft.test_serving import response_to

DIRECTORY = "/data/log"


def test_a8_below_the_log_start_nothing_is_said_of_a_divergence() -> None:
    """Epoch 0 up to 3, epoch 2 up to 5, and 0 and 1 deleted. Who has epoch 1 is apart, but has to begin anew first."""
    leader = Leader()
    leader.append(1, 1, 1)
    leader.broker.change(leader=1)
    leader.broker.change(leader=1)
    leader.append(1, 1)
    for replica in (2, 3):
        leader.broker.follow(replica, 5)
    leader.partition().delete_records(2)
    asked = leader.fetch(part(1, epoch=2, last=1))
    assert asked.answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert asked.answer.diverging_epoch.epoch == -1


@pytest.mark.parametrize("offset", [1, 2, 3])
def test_d10_a_log_of_another_epoch_parts_also_where_it_is_the_shorter_one(offset: int) -> None:
    log = MemoryLog()
    log.append(1, [(b"", b"value")] * 3)
    log.flush(3)
    leader = Bench([1], log=log, state=ElectionState(4))
    leader.flush()
    response = response_to(leader, 2, offset, last_fetched_epoch=4)
    assert response.diverging_epoch == OffsetAndEpoch(3, 1)


def test_d11_a_snapshot_is_of_what_is_committed() -> None:
    committed = replay(MetadataImage(), [topic("committed")], 4, 2)
    images = Images()
    images.load(LoadedSnapshot(committed, 0, None, 5))
    images.begin_deciding(4, 2)
    images.advance_tip([topic("only decided")], 5, 2)

    async def take() -> None:
        silent: Any = SimpleNamespace(info=lambda *words, **facts: None)
        unused: Any = None
        log: Any = SimpleNamespace(directory=DIRECTORY)
        generator = SnapshotGenerator(unused, host.disk, host.clock, silent, log, snapshots, images)
        await generator.take()

    async def main() -> None:
        await host.spawn(take())

    with World(1) as world:
        host = world.node("n1")
        host.disk.mkdir(DIRECTORY)
        snapshots = Snapshots(host.disk, DIRECTORY)
        world.run(main())
        assert snapshots.ids == [OffsetAndEpoch(4, 2)]
        kept = snapshots.read(OffsetAndEpoch(4, 2)).records
        assert kept == [topic("committed")]
