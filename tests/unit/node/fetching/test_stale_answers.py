import asyncio
import pytest
from strandline.errors import ErrorCode
from strandline.wire.fetch import FetchedPartition
from .leading import EPOCH, LEADER_ID, Stage, batch, state, values


def test_epoch_bump_under_load():
    """Same leader, next epoch, while replies are coming in all the time."""
    stage = Stage()

    async def story(stage):
        partition = stage.broker.partition()
        stage.follow(partition)
        stage.leader.produce(b"0")
        await stage.until(lambda: partition.high_watermark == 1)
        worst = 0
        for n in range(30):
            # a reply is on its way when the follower hears of the new epoch
            stage.leader.produce(b"%d" % n)
            await asyncio.sleep(stage.host.randomness.random() * 0.002)
            partition.apply(state(epoch=EPOCH + 1 + n))
            stage.fetchers.follow(partition, LEADER_ID)
            took = await stage.until(lambda: partition.log.log_end_offset == n + 2)
            worst = max(worst, took)
        print("worst", worst)
        assert worst < 0.3
    stage.play(story)


@pytest.mark.parametrize("seed", range(3))
def test_flushed_beside_busy(seed):
    stage = Stage(seed)

    async def story(stage):
        busy = stage.broker.partition("t", 0)
        flushed = stage.broker.partition("t", 1, flush_messages=1)
        stage.follow(busy, flushed)
        rnd = stage.host.randomness
        slow = []
        for n in range(400):
            stage.leader.produce(b"f", index=1)
            await asyncio.sleep(rnd.random() * 0.03)
            stage.leader.produce(b"b", index=0)
            took = await stage.until(lambda: busy.log.log_end_offset == n + 1)
            # the acknowledgement is the next Fetch that names it
            took += await stage.until(lambda: any(p.partition == 0 and p.fetch_offset == n + 1 for r in stage.leader.asked[-6:] for _, ps in r.topics for p in ps))
            if took > 0.3:
                slow.append((n, round(took, 3)))
        print("slow", slow)
        assert not slow
    stage.play(story)
