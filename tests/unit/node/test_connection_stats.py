"""What a connection counts of its requests."""

# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

import asyncio

from strandline.api.requests.request_stats import RequestStats
from strandline.node.connection import Connection

from .conftest import (
    API_VERSIONS,
    CREATE_TOPICS,
    FETCH,
    PRODUCE,
    Create,
    End,
    api_versions,
    fetch,
    frame,
    framed,
    produce,
)


def connect(stage, stats: RequestStats) -> End:
    return End(Connection(stage.listener, stage.node.context, "PLAINTEXT", stage.listener.resources, stats))


def counted(stats: RequestStats) -> dict[tuple[int, int], int]:
    return {api: of_api.count for api, of_api in stats.apis.items()}


def test_every_answered_request_is_counted_by_api_and_version(play):
    async def story(stage):
        await stage.create()
        stats = RequestStats()
        end = connect(stage, stats)
        end.feed(api_versions(1) + api_versions(2) + produce(b"v", 3, acks=1) + produce(b"w", 4, acks=0) + fetch(0, 5))
        await asyncio.sleep(0.1)
        assert end.ids() == [1, 2, 3, 5]
        assert counted(stats) == {(API_VERSIONS, 0): 2, (PRODUCE, 9): 2, (FETCH, 12): 1}
        assert stats.errors == {}

    play(story)


def test_a_request_that_waits_took_as_long(play):
    async def story(stage):
        await stage.create()
        stats = RequestStats()
        end = connect(stage, stats)
        end.feed(fetch(0, max_wait_ms=700))
        await asyncio.sleep(0.5)
        assert stats.apis[FETCH, 12].count == 0
        await asyncio.sleep(0.5)
        assert stats.apis[FETCH, 12].count == 1
        assert 0.69 < stats.apis[FETCH, 12].total_s < 0.75

    play(story)


def test_errors_are_counted_by_their_code(play):
    async def story(stage):
        await stage.create("t")
        stats = RequestStats()
        end = connect(stage, stats)
        topics = [
            Create.CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in ("t", "u", "a/b")
        ]
        end.feed(frame(CREATE_TOPICS, 7, Create(topics=topics, timeout_ms=1000)))
        await asyncio.sleep(1)
        assert end.ids() == [1]
        assert stats.errors == {(CREATE_TOPICS, 36): 1, (CREATE_TOPICS, 17): 1}

    play(story)


def test_what_can_not_be_read_is_refused_and_counted(play):
    async def story(stage):
        stats = RequestStats()
        end = connect(stage, stats)
        end.feed(framed(CREATE_TOPICS, 7, b"\xff" * 3))
        assert end.closed
        assert stats.refused == 1
        assert counted(stats) == {(CREATE_TOPICS, 7): 0}

    play(story)


def test_the_listener_counts_for_all_its_connections(play):
    async def story(stage):
        before = stage.listener.stats.of(API_VERSIONS, 0).count
        _, writer = await asyncio.open_connection("n1", 9092)
        writer.write(api_versions(1) * 3)
        await asyncio.sleep(0.5)
        writer.close()
        assert stage.listener.stats.of(API_VERSIONS, 0).count == before + 3

    play(story)
