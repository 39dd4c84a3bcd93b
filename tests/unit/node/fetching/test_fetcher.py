"""A follower's rounds against a leader that keeps Kafka's fetch sessions, in a world that splits frames and poisons buffers."""

# mypy: disable-error-code="union-attr"

from __future__ import annotations

import asyncio

import pytest

from strandline.errors import ErrorCode
from strandline.log import names
from strandline.node.fetching.fetcher import OPENING_WAIT_MS
from strandline.sim.faults import Fault
from strandline.wire.headers import response_header

from .leading import API_VERSIONS, EPOCH, LEADER_ID, Stage, _Served, batch, state, values


def test_records_and_watermark_follow_the_leader_in_order() -> None:
    stage = Stage()

    async def story(stage: Stage) -> None:
        partition = stage.broker.partition()
        stage.follow(partition)
        sent = []
        for number in range(200):
            sent.append(b"%d" % number)
            stage.leader.produce(sent[-1])
            await asyncio.sleep(stage.host.randomness.random() * 0.002)
        await stage.until(lambda: partition.high_watermark == 200)
        assert values(partition) == sent
        first, second = stage.leader.asked[:2]
        assert (first.replica_id, first.replica_epoch, first.session_epoch) == (1, 42, 0)
        assert (first.max_wait_ms, first.min_bytes, first.max_bytes) == (0, 1, 10 << 20)
        assert (second.max_wait_ms, second.min_bytes, second.max_bytes) == (500, 1, 10 << 20)
        assert stage.opened == [LEADER_ID]

    stage.play(story)
    assert stage.closed == []


@pytest.mark.parametrize("seed", range(5))
def test_nothing_is_lost_or_doubled_though_connections_break_anywhere(seed: int) -> None:
    stage = Stage(seed)

    async def story(stage: Stage) -> None:
        partitions = [stage.broker.partition("t", index) for index in range(3)]
        stage.follow(*partitions)
        sent: list[list[bytes]] = [[], [], []]
        for number in range(150):
            index = stage.host.randomness.randrange(3)
            sent[index].append(b"%d" % number)
            stage.leader.produce(sent[index][-1], index=index)
            await asyncio.sleep(stage.host.randomness.random() * 0.01)
            if number % 25 == 10:
                stage.world.network.reset_connections("leader", "follower")
        await stage.until(lambda: [p.log.log_end_offset for p in partitions] == [len(s) for s in sent])
        assert [values(p) for p in partitions] == sent
        assert 3 <= len(stage.closed) <= 6
        assert stage.closed[0] == (LEADER_ID, "fetch")

    stage.play(story)


@pytest.mark.parametrize("version", [12, 13, 15, 17])
def test_an_older_leader_is_asked_in_its_version(version: int) -> None:
    stage = Stage()
    stage.leader.version_max = version

    async def story(stage: Stage) -> None:
        partition = stage.broker.partition()
        stage.follow(partition)
        stage.leader.produce(b"a")
        await stage.until(lambda: partition.high_watermark == 1)
        assert stage.leader.asked[0].replica_id == 1
        assert isinstance(stage.leader.asked[0].topics[0][0], str if version == 12 else bytes)

    stage.play(story)


def test_a_leader_that_is_too_old_is_not_asked() -> None:
    stage = Stage()
    stage.leader.version_max = 11

    async def story(stage: Stage) -> None:
        stage.follow(stage.broker.partition())
        await stage.until(lambda: stage.leader.accepted > 1)
        assert stage.leader.asked == []
        assert stage.opened == []

    stage.play(story)


def test_a_leader_that_says_too_much_with_its_versions_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(seed=3)
    unasked = b"\0\0\0\4" + b"\0\0\0\7"

    def write(served: _Served, key: int, version: int, correlation_id: int, body: bytes) -> None:
        framed = response_header(key, version, correlation_id) + body
        is_first = key == API_VERSIONS and served.leader.accepted == 1
        served.transport.write(len(framed).to_bytes(4, "big") + framed + (unasked if is_first else b""))

    monkeypatch.setattr(_Served, "write", write)

    async def story(stage: Stage) -> None:
        partition = stage.broker.partition()
        stage.follow(partition)
        stage.leader.produce(b"a")
        await stage.until(lambda: partition.log.log_end_offset == 1, within_s=300)
        assert stage.leader.accepted == 2, "the first connection can not be trusted"

    stage.play(story)


def test_an_idle_session_of_many_partitions_costs_a_small_request_each_half_second() -> None:
    stage = Stage()

    async def story(stage: Stage) -> None:
        partitions = [stage.broker.partition("t", index) for index in range(50)]
        stage.follow(*partitions)
        await asyncio.sleep(0.3)
        asked = stage.leader.asked
        assert sum(len(named) for _, named in asked[0].topics) == 50
        before = len(asked)
        await asyncio.sleep(5.0)
        assert len(asked) - before <= 11
        assert all(not request.topics and not request.forgotten for request in asked[before:])
        stage.leader.produce(b"a", index=7)
        await stage.until(lambda: partitions[7].high_watermark == 1)
        await asyncio.sleep(0.1)
        named = [[p.partition for p in named] for request in asked[before:] for _, named in request.topics]
        assert named == [[7]]

    stage.play(story)


def test_a_watermark_alone_is_taken_and_the_partition_is_not_named_again() -> None:
    stage = Stage()

    async def story(stage: Stage) -> None:
        partition = stage.broker.partition()
        stage.follow(partition)
        stage.leader.produce(b"a", committed=False)
        await stage.until(lambda: partition.log.log_end_offset == 1)
        await asyncio.sleep(0.1)
        count = len(stage.leader.asked)
        stage.leader.log().high_watermark = 1
        stage.leader.tell()
        await stage.until(lambda: partition.high_watermark == 1)
        await asyncio.sleep(0.1)
        assert [request.topics for request in stage.leader.asked[count:]] == [[]]

    stage.play(story)


def test_a_partition_that_joins_does_not_wait_for_the_others_long_poll() -> None:
    stage = Stage()

    async def story(stage: Stage) -> None:
        idle, busy = stage.broker.partition("t", 0), stage.broker.partition("t", 1)
        stage.follow(idle)
        await asyncio.sleep(0.1)
        stage.leader.produce(b"a", index=1)
        stage.follow(busy)
        assert await stage.until(lambda: busy.log.log_end_offset == 1) < 0.05

    stage.play(story)


def test_a_leader_that_does_not_hurry_is_waited_for() -> None:
    stage = Stage()
    stage.leader.hurries = False

    async def story(stage: Stage) -> None:
        idle, busy = stage.broker.partition("t", 0), stage.broker.partition("t", 1)
        stage.follow(idle)
        await asyncio.sleep(0.1)
        stage.leader.produce(b"a", index=1)
        stage.follow(busy)
        assert 0.2 < await stage.until(lambda: busy.log.log_end_offset == 1) < 0.6
        stage.leader.produce(b"b", index=1)
        await stage.until(lambda: busy.log.log_end_offset == 2)
        assert values(busy) == [b"a", b"b"]

    stage.play(story)


def test_a_partition_that_fails_rests_alone() -> None:
    stage = Stage()

    async def story(stage: Stage) -> None:
        good, bad = stage.broker.partition("t", 0), stage.broker.partition("t", 1)
        stage.leader.log("t", 1).error = ErrorCode.KAFKA_STORAGE_ERROR
        stage.follow(good, bad)
        await asyncio.sleep(0.2)
        count = len(stage.leader.asked)
        for number in range(5):
            stage.leader.produce(b"%d" % number)
            await stage.until(lambda number=number: good.log.log_end_offset == number + 1, 0.05)
        named = {p.partition for request in stage.leader.asked[count:] for _, ps in request.topics for p in ps}
        assert named == {0}
        assert any(forgotten for request in stage.leader.asked for forgotten in request.forgotten)
        stage.leader.log("t", 1).error = 0
        stage.leader.produce(b"x", index=1)
        assert await stage.until(lambda: bad.log.log_end_offset == 1) > 0.5

    stage.play(story)


def test_a_corrupt_batch_is_not_taken_and_asked_for_again_later() -> None:
    stage = Stage()

    async def story(stage: Stage) -> None:
        partition = stage.broker.partition()
        log = stage.leader.log()
        good = batch(0, b"a")
        log.batches, log.end = [(0, good[:-1] + b"?")], 1
        stage.follow(partition)
        await asyncio.sleep(0.5)
        assert partition.log.log_end_offset == 0
        log.batches = [(0, good)]
        await stage.until(lambda: partition.log.log_end_offset == 1)

    stage.play(story)


def test_where_the_logs_part_the_follower_cuts_and_asks_again_at_once() -> None:
    stage = Stage()

    async def story(stage: Stage) -> None:
        partition = stage.broker.partition()
        partition.log.append_fetched(batch(0, b"a", epoch=3), 5, 0)
        partition.log.append_fetched(batch(1, b"b", b"c", epoch=4), 5, 0)
        partition.vouch_for(3)
        log = stage.leader.log()
        log.append(b"a", epoch=3)
        log.append(b"B", epoch=5)
        log.diverging = (3, 1)
        stage.follow(partition)
        assert await stage.until(lambda: values(partition) == [b"a", b"B"]) < 0.2

    stage.play(story)


def test_what_the_leader_has_deleted_is_left_out() -> None:
    stage = Stage()

    async def story(stage: Stage) -> None:
        partition = stage.broker.partition()
        log = stage.leader.log()
        log.start = log.end = log.high_watermark = 100
        log.append(b"a")
        stage.follow(partition)
        assert await stage.until(lambda: partition.log.log_end_offset == 101) < 0.2
        assert partition.log.log_start_offset == 100
        asked = [(r.replica_id, r.topics[0].partitions[0]) for r in stage.leader.listed]
        assert [(replica, p.timestamp, p.current_leader_epoch) for replica, p in asked] == [
            (1, -4, EPOCH),
            (1, -1, EPOCH),
        ]

    stage.play(story)


def test_an_offset_is_asked_for_only_once_what_is_before_it_is_flushed() -> None:
    stage = Stage()
    stage.host.disk.sync_s = (0.004, 0.004)

    async def story(stage: Stage) -> None:
        flushed, other = stage.broker.partition("t", 0, flush_messages=1), stage.broker.partition("t", 1)
        stage.follow(flushed, other)
        await asyncio.sleep(0.1)
        for number in range(10):
            stage.leader.produce(b"%d" % number)
            await stage.until(lambda number=number: flushed.local_end == number + 1, 0.05)
            asked = [p.fetch_offset for r in stage.leader.asked for _, ps in r.topics for p in ps if p.partition == 0]
            assert asked[-1] <= flushed.log.recovery_point
        stage.leader.produce(b"x", index=1)
        await stage.until(lambda: other.log.log_end_offset == 1, 0.05)

    stage.play(story)


def test_a_flush_that_takes_long_does_not_hold_the_others() -> None:
    stage = Stage()
    stage.host.disk.sync_s = (2.0, 2.0)

    async def story(stage: Stage) -> None:
        flushed, other = stage.broker.partition("t", 0, flush_messages=1), stage.broker.partition("t", 1)
        stage.follow(flushed, other)
        await asyncio.sleep(0.1)
        stage.leader.produce(b"a")
        await stage.until(lambda: flushed.log.log_end_offset == 1)
        stage.leader.produce(b"x", index=1)
        assert await stage.until(lambda: other.log.log_end_offset == 1) < 0.05
        await stage.until(lambda: flushed.local_end == 1)
        stage.leader.produce(b"b")
        assert await stage.until(lambda: flushed.log.log_end_offset == 2) < 0.05

    stage.play(story)


def test_a_new_leader_epoch_is_asked_with_at_once() -> None:
    stage = Stage()

    async def story(stage: Stage) -> None:
        partition = stage.broker.partition()
        stage.follow(partition)
        await asyncio.sleep(0.1)
        partition.apply(state(epoch=EPOCH + 1))
        stage.fetchers.follow(partition, LEADER_ID)

        def epochs() -> list[int]:
            return [p.current_leader_epoch for r in stage.leader.asked for _, ps in r.topics for p in ps]

        assert await stage.until(lambda: epochs()[-1] == EPOCH + 1) < 0.05
        stage.leader.produce(b"a")
        assert await stage.until(lambda: partition.log.log_end_offset == 1) < 0.05

    stage.play(story)


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
        ErrorCode.UNKNOWN_SERVER_ERROR,
    ],
)
def test_a_session_that_is_lost_begins_anew(code: ErrorCode) -> None:
    stage = Stage()

    async def story(stage: Stage) -> None:
        partition = stage.broker.partition()
        stage.follow(partition)
        stage.leader.produce(b"a")
        await stage.until(lambda: partition.high_watermark == 1)
        stage.leader.refuses.append(code)
        stage.leader.produce(b"b")
        await stage.until(lambda: partition.log.log_end_offset == 2)
        await stage.until(lambda: not stage.leader.refuses)
        stage.leader.produce(b"c")
        await stage.until(lambda: partition.log.log_end_offset == 3)
        assert [r.session_epoch for r in stage.leader.asked if r.session_epoch == 0] == [0, 0]
        assert len(stage.leader.sessions) <= 2

    stage.play(story)


def test_a_leader_that_refuses_everything_is_not_asked_without_end() -> None:
    stage = Stage()
    stage.leader.refuses = [ErrorCode.INVALID_FETCH_SESSION_EPOCH] * 100_000

    async def story(stage: Stage) -> None:
        stage.follow(stage.broker.partition())
        await asyncio.sleep(10)
        assert len(stage.leader.asked) < 30

    stage.play(story)


def test_a_leader_without_room_for_sessions_is_asked_for_all_each_time() -> None:
    stage = Stage()
    begin = stage.leader.sessions.begin

    async def story(stage: Stage) -> None:
        partitions = [stage.broker.partition("t", index) for index in range(3)]

        def nameless(*args, **options):  # type: ignore[no-untyped-def]
            session = begin(*args, **options)
            session.session_id = 0
            return session

        stage.leader.sessions.begin = nameless  # type: ignore[method-assign]
        stage.follow(*partitions)
        for number in range(3):
            stage.leader.produce(b"%d" % number, index=number)
            await stage.until(lambda number=number: partitions[number].log.log_end_offset == 1)
        assert {(r.session_id, r.session_epoch) for r in stage.leader.asked} == {(0, 0)}
        assert {r.max_wait_ms for r in stage.leader.asked} == {0, OPENING_WAIT_MS}
        assert all(sum(len(ps) for _, ps in r.topics) == 3 for r in stage.leader.asked)

    stage.play(story)


def test_a_silent_leader_is_given_up_after_the_socket_timeout() -> None:
    stage = Stage(replica_socket_timeout_ms="2000")

    async def story(stage: Stage) -> None:
        partition = stage.broker.partition()
        stage.follow(partition)
        await stage.until(lambda: stage.opened)
        stage.leader.is_mute = True
        took_s = await stage.until(lambda: stage.closed)
        assert 1.5 < took_s < 2.6
        stage.leader.is_mute = False
        stage.leader.produce(b"a")
        await stage.until(lambda: partition.log.log_end_offset == 1, 30)

    stage.play(story)


def test_a_leader_whose_place_is_not_known_yet_is_found_later() -> None:
    stage = Stage()
    address, stage.address = stage.address, None

    async def story(stage: Stage) -> None:
        partition = stage.broker.partition()
        stage.follow(partition)
        stage.leader.produce(b"a")
        await asyncio.sleep(3)
        stage.address = address
        assert await stage.until(lambda: partition.log.log_end_offset == 1) < 1.2

    stage.play(story)


def test_a_failed_disk_drops_the_partition_and_tells() -> None:
    stage = Stage()

    async def story(stage: Stage) -> None:
        bad, good = stage.broker.partition("t", 0), stage.broker.partition("t", 1)
        stage.follow(bad, good)
        await asyncio.sleep(0.1)
        error = OSError(5, "Input/output error")

        def fail(*args: object) -> None:
            raise error

        bad.log.append_fetched = fail  # type: ignore[method-assign, assignment]
        stage.leader.produce(b"a", index=0)
        await stage.until(lambda: stage.failed)
        assert stage.failed == [(bad, error)]
        assert stage.fetchers.leader_of(bad) is None
        stage.leader.produce(b"b", index=1)
        assert await stage.until(lambda: good.log.log_end_offset == 1) < 0.05

    stage.play(story)


def test_without_a_descriptor_a_partition_is_fetched_again_later_and_nothing_has_failed() -> None:
    """SEC-L5: its segment is full, and the next one can't be opened for a while."""
    stage = Stage()

    async def story(stage: Stage) -> None:
        full, other = stage.broker.partition("t", 0, segment_bytes=150), stage.broker.partition("t", 1)
        stage.follow(full, other)
        stage.leader.produce(b"a" * 100, index=0)
        await stage.until(lambda: full.log.log_end_offset == 1)
        stage.host.disk.faults.set(f"{full.log.directory}/{names.of_offset(1, '')}", Fault.NO_HANDLES)
        stage.leader.produce(b"b" * 100, index=0)
        stage.leader.produce(b"b", index=1)
        await stage.until(lambda: other.log.log_end_offset == 1)
        await asyncio.sleep(3)
        assert full.log.log_end_offset == 1
        assert (stage.failed, stage.closed) == ([], [])
        assert stage.fetchers.leader_of(full) == LEADER_ID
        stage.host.disk.faults.clear()
        await stage.until(lambda: full.log.log_end_offset == 2)
        assert values(full)[-1:] == [b"b" * 100]

    stage.play(story)


def test_a_throttled_follower_takes_no_more_than_its_rate_until_it_is_in_sync() -> None:
    stage = Stage(follower_replication_throttled_rate="10000", replica_fetch_max_bytes="2000")

    async def story(stage: Stage) -> None:
        slow = stage.broker.partition("slow", follower_replication_throttled_replicas=("0:1",))
        fast = stage.broker.partition("fast")
        for log in (stage.leader.log("slow"), stage.leader.log("fast")):
            for _ in range(200):
                log.append(b"x" * 932)
            log.high_watermark = log.end
        stage.follow(slow, fast)
        await stage.until(lambda: fast.log.log_end_offset == 200, 2)
        # A first window's worth of bytes comes at once: the rate is measured over a window.
        await asyncio.sleep(10)
        taken = slow.log.log_end_offset
        assert 60 < taken < 130
        stage.throttles.follower.limit = None
        await stage.until(lambda: slow.log.log_end_offset == 200, 3)
        # Once in sync it is not held back, however much it takes.
        stage.throttles.follower.limit = 1
        stage.throttles.follower.record(10**9, asyncio.get_running_loop().time())
        stage.leader.produce(b"y", topic="slow")
        await stage.until(lambda: slow.log.log_end_offset == 201)
        stage.leader.produce(b"z", topic="slow")
        assert await stage.until(lambda: slow.log.log_end_offset == 202) < 0.1

    stage.play(story)
