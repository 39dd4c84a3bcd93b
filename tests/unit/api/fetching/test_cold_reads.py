"""Reads of bytes that are not in memory: one at a time for a partition, and of a file that is still part of its log."""

# mypy: allow-incomplete-defs, allow-untyped-defs, disable-error-code="attr-defined"

from __future__ import annotations

import pytest

from strandline.runtime.disk import FileDisk
from strandline.runtime.files import RealFile

from ..leader import Leader, part


def test_a_partition_whose_bytes_are_cold_is_warmed_once_however_often_it_is_appended_to():
    leader = Leader((1, 2))
    cold_pages = leader.partition().log.segments.active.file.inode.cold
    leader.append(1)
    cold_pages.update(range(8))
    leader.fetch(part(0))
    for _ in range(50):
        leader.append(1)
        cold_pages.update(range(8))
        leader.loop.run()
    assert 1 <= len(leader.beside) <= 2, "every append had the same bytes read again"
    for work in leader.beside:
        work.close()


@pytest.mark.parametrize("how", ["retention", "topic deleted"])
async def test_a_file_that_goes_before_it_is_read_is_left_alone(how, tmp_path, monkeypatch):
    leader = Leader((1, 2))
    leader.broker.disk = leader.broker.parts.disk = FileDisk()
    leader.broker.root = str(tmp_path)
    leader.topic_id = leader.broker.create("u", (1, 2))
    partition = leader.broker.parts.hosted.by_name["u", 0]
    log = partition.log
    leader.broker.append("u", 1000)
    log.roll(1)
    leader.broker.append("u", 1000)
    cold_file, read = log.segments[0].file, RealFile.read
    with monkeypatch.context() as patched:
        patched.setattr(
            RealFile, "read", lambda file, at, size: None if file is cold_file else read(file, at, size)
        )  # as when its pages are not in memory
        leader.fetch(part(0))
    [warming] = leader.beside
    if how == "retention":
        partition.high_watermark = 2
        log.drop_segments(1, 1)
    else:
        partition.gone = True
        log.close()
    await warming
    assert leader.broker.storage_errors == [], "a file that was taken away is no failure of its log dir"
