"""DescribeLogDirs: sizes that are right."""

# mypy: allow-incomplete-defs, allow-untyped-calls, allow-untyped-defs

from __future__ import annotations

import pytest

from strandline.api import describe_log_dirs
from strandline.errors import ErrorCode
from strandline.wire import messages

Topic = messages.request(35).DescribableLogDirTopic


def sizes(result):
    return {(t.name, p.partition_index): p.partition_size for t in result.topics for p in t.partitions}


@pytest.mark.parametrize("version", describe_log_dirs.VERSIONS)
async def test_what_is_in_a_log_dir(broker, version):
    broker.create("t", (1,), (1,))
    broker.create("u")
    broker.append("t", 1, 2, 3, index=1)
    broker.append("u", 1)
    broker.parts.hosted.by_name["u", 0].log.roll(0)
    broker.append("u", 1)
    reply = await broker.call(describe_log_dirs, version, topics=None)
    [result] = reply.results
    assert (reply.error_code, result.error_code, result.log_dir) == (0, 0, broker.root)
    on_disk = {
        place: sum(
            broker.disk.size(f"{broker.root}/{place[0]}-{place[1]}/{name}")
            for name in broker.disk.listdir(f"{broker.root}/{place[0]}-{place[1]}")
            if name.endswith(".log")
        )
        for place in [("t", 0), ("t", 1), ("u", 0)]
    }
    assert sizes(result) == on_disk
    assert on_disk["t", 1] > on_disk["t", 0] == 0
    assert {(p.offset_lag, p.is_future_key) for t in result.topics for p in t.partitions} == {(0, False)}
    if version >= 4:
        assert result.total_bytes >= result.usable_bytes > 0
    assert not result.is_cordoned


async def test_only_what_is_asked_for(broker):
    broker.create("t", (1,), (1,))
    broker.create("u")
    topics = [Topic(topic="t", partitions=[1, 1, 7, -1]), Topic(topic="no", partitions=[0])]
    [result] = (await broker.call(describe_log_dirs, 4, topics=topics)).results
    assert set(sizes(result)) == {("t", 1)}
    [result] = (await broker.call(describe_log_dirs, 4, topics=[])).results
    assert result.topics == []
    assert result.total_bytes > 0


async def test_an_offline_log_dir_is_named_with_its_error_alone(broker):
    broker.create("t")
    broker.online = {broker.root: False, f"{broker.root}/gone": True}
    results = (await broker.call(describe_log_dirs, 4, topics=None)).results
    assert [(r.log_dir, r.error_code, r.topics, r.total_bytes) for r in results] == [
        (broker.root, ErrorCode.KAFKA_STORAGE_ERROR, [], -1),
        (f"{broker.root}/gone", ErrorCode.KAFKA_STORAGE_ERROR, [], -1),
    ]
