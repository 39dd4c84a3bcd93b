import asyncio
import pytest
from strandline.runtime.disk import FileDisk
from strandline.log.errors import NotCached
from .leader import Leader, offsets, part
from .conftest import TestBroker, registration
from tests.unit.replica.hand_driven import HandLoop
from strandline.node.running import Running
from tests.unit.node.scripted import quiet_logger


@pytest.mark.parametrize("how", ["retention", "topic deleted"])
def test_cold_read_of_a_segment_that_goes(how, tmp_path):
    async def main():
        leader = Leader((1, 2))
        disk = FileDisk()
        leader.broker.disk = leader.broker.parts.disk = disk
        leader.broker.root = str(tmp_path)
        running = Running(quiet_logger())
        leader.topic_id = leader.broker.create("u", (1, 2))
        p = leader.broker.parts.partitions["u", 0]
        leader.broker.append("u", 1000)
        p.log.roll(1)
        leader.broker.append("u", 1000)
        f = p.log.segments[0].file
        # as when the page is not in memory
        real = type(f).read
        type(f).read = lambda self, position, size: None if self is f else real(self, position, size)
        try:
            leader.fetch(part(0))
        finally:
            type(f).read = real
        [warm] = leader.beside
        running.spawn_short(warm)
        if how == "retention":
            p.high_watermark = 2
            p.log.drop_segments(1, 1)
        else:
            p.gone = True
            p.log.close()
        await asyncio.sleep(0.2)
        print("failure:", running.failure)
        assert not running.failure.done()
    asyncio.run(main())
