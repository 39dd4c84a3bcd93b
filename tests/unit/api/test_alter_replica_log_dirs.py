"""AlterReplicaLogDirs: what is where it should be is done, and nothing is moved."""

# mypy: allow-incomplete-defs, allow-untyped-calls, allow-untyped-defs

from __future__ import annotations

import pytest

from strandline.api import alter_replica_log_dirs
from strandline.errors import ErrorCode
from strandline.wire import messages

Request = messages.request(34)


async def alter(broker, *wishes, version=2):
    """Error codes by partition, for wishes of a path, a topic and an index each."""
    dirs = [
        Request.AlterReplicaLogDir(path=path, topics=[Request.AlterReplicaLogDirTopic(name=topic, partitions=[index])])
        for path, topic, index in wishes
    ]
    reply = await broker.call(alter_replica_log_dirs, version, dirs=dirs)
    return {(topic.topic_name, p.partition_index): p.error_code for topic in reply.results for p in topic.partitions}


@pytest.fixture
def filled(broker):
    broker.create("t", (1,), (1,))
    broker.online["/elsewhere"] = True
    broker.online["/broken"] = False
    return broker


@pytest.mark.parametrize("version", alter_replica_log_dirs.VERSIONS)
async def test_a_replica_that_is_there_already_is_done(filled, version):
    root = filled.root
    wishes = [(root, "t", 0), (f"{root}/", "t", 1)]
    assert await alter(filled, *wishes, version=version) == {("t", 0): 0, ("t", 1): 0}


async def test_nothing_is_moved_between_log_dirs(filled):
    codes = await alter(filled, ("/elsewhere", "t", 0), (filled.root, "t", 1))
    assert codes == {("t", 0): ErrorCode.INVALID_REPLICA_ASSIGNMENT, ("t", 1): 0}


async def test_a_replica_that_is_not_here_yet_is_worth_another_try(filled):
    codes = await alter(filled, (filled.root, "t", 2), (filled.root, "new", 0))
    assert set(codes.values()) == {ErrorCode.REPLICA_NOT_AVAILABLE}


@pytest.mark.parametrize("path", ["/unknown", "relative", ""])
async def test_an_unknown_log_dir(filled, path):
    assert await alter(filled, (path, "t", 0)) == {("t", 0): ErrorCode.LOG_DIR_NOT_FOUND}


async def test_what_is_offline(filled):
    filled.unopened.add(("u", 0))
    filled.parts.hosted.by_name["t", 1].offline = True
    codes = await alter(filled, ("/broken", "t", 0), (filled.root, "t", 1), (filled.root, "u", 0))
    assert set(codes.values()) == {ErrorCode.KAFKA_STORAGE_ERROR}


async def test_of_several_log_dirs_for_one_replica_the_last_counts(filled):
    assert await alter(filled, ("/elsewhere", "t", 0), (filled.root, "t", 0)) == {("t", 0): 0}
