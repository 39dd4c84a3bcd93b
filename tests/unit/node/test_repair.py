"""Corrupt batches are fetched from another replica, whoever has them, and told once each way (rule A18)."""

# mypy: disable-error-code="return-value"

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from strandline.config.dynamic import DynamicConfig
from strandline.config.topic_config import TopicConfig
from strandline.errors import ErrorCode
from strandline.ids import Uuid
from strandline.log.errors import CorruptBatch
from strandline.log.recovery import load
from strandline.metadata.image import PartitionImage
from strandline.node import scrubber
from strandline.node.peers import Peers
from strandline.node.repair import Repair
from strandline.node.scrubber import PAUSE_S, RATE_BYTES_PER_S, Scrubber
from strandline.raft.messages import Address
from strandline.records.batch import BatchBuilder
from strandline.records.header import iterate
from strandline.sim.faults import Fault
from strandline.sim.world import SimNode, World
from strandline.wire import messages
from strandline.wire.headers import read_request_header, response_header

from .scripted import SILENCE, Controller, config_of, quiet_logger

FETCH, API_VERSIONS = 1, 18
Reply, Versions = messages.response(FETCH), messages.response(API_VERSIONS)
TOPIC_ID = Uuid(bytes(15) + b"\7")
OWN, LEADER, OTHER = 1, 2, 3
NOW = 1_700_000_000_000
COUNT = 12


class Replica(Controller):
    """A broker with the same log, which serves Fetch by topic id as a consumer asks it."""

    def __init__(self, batches: list[bytes], *, error: ErrorCode = ErrorCode.NONE, at_most: int = 1 << 20) -> None:
        super().__init__({FETCH: self._fetch})
        self.batches = batches
        self.error = error
        self.at_most = at_most

    def answer(self, frame: bytes) -> Any:
        header = read_request_header(frame)
        if header.api_key != API_VERSIONS:
            return super().answer(frame)
        served = [
            Versions.ApiVersion(api_key=key, min_version=low, max_version=high)
            for key, low, high in ((FETCH, 13, 18), (API_VERSIONS, 0, 3))
        ]
        body = messages.encode_response(API_VERSIONS, header.api_version, Versions(api_keys=served))
        reply = response_header(API_VERSIONS, header.api_version, header.correlation_id) + body
        return len(reply).to_bytes(4, "big") + reply

    def _fetch(self, request: Any) -> Any:
        (topic,) = request.topics
        (wanted,) = topic.partitions
        assert topic.topic_id == TOPIC_ID
        assert (request.session_id, request.session_epoch, request.max_wait_ms) == (0, -1, 0)
        assert request.replica_state.replica_id == -1, "as a consumer"
        records = b"".join(self.batches[wanted.fetch_offset :])[: min(wanted.partition_max_bytes, self.at_most)]
        answer = Reply.PartitionData(
            partition_index=wanted.partition, error_code=self.error, high_watermark=COUNT, records=records
        )
        return Reply(responses=[Reply.FetchableTopicResponse(topic_id=TOPIC_ID, partitions=[answer])])


class Hosted:
    """What a repair needs of a partition: a real log, and who else has it."""

    topic, index, topic_id = "t", 0, TOPIC_ID

    def __init__(self, node: SimNode, replicas: tuple[int, ...], isr: tuple[int, ...], leader: int) -> None:
        self.node = node
        self.state = PartitionImage(replicas, isr, leader, 0, 0)
        self.gone = self.offline = False
        self.config = TopicConfig.build()
        self.open(clean=True)

    def open(self, *, clean: bool) -> None:
        recovered = load(
            self.node.disk, "/data/t-0", self.config, clean=clean, recovery_point=COUNT if clean else 0, now_ms=NOW
        )
        self.log = recovered.log

    def fill(self) -> list[bytes]:
        """Three segments of four batches, opened anew; what another replica has."""
        for i in range(COUNT):
            if i and not i % 4:
                self.log.roll(NOW)
            builder = BatchBuilder()
            builder.append(b"k", b"v%03d" % i, timestamp=NOW + i)
            self.log.append_as_leader(memoryview(builder.build()), 0, NOW)
        batches = [self.log.read(i, 1, COUNT, min_one=True) for i in range(COUNT)]
        self.log.close_clean()
        self.open(clean=True)
        return batches

    def rot(self, offset: int) -> None:
        size = self.log.segments[0].size // 4
        path = f"/data/t-0/{offset // 4 * 4:020d}.log"
        self.node.disk.flip_bit(path, offset % 4 * size + 70, 3)

    def read(self, offset: int) -> list[int]:
        data = self.log.read(offset, 1 << 20, COUNT, min_one=True)
        return [header.base_offset for _, header in iterate(data)]

    def meet(self, offset: int) -> CorruptBatch:
        """What a reader of this offset meets."""
        with pytest.raises(CorruptBatch) as damaged:
            self.read(offset)
        return damaged.value

    def __repr__(self) -> str:
        return "t-0"


class Stage:
    def __init__(self, world: World) -> None:
        self.world = world
        self.node = world.node("b1")
        self.node.disk.cold_probability = 0
        self.brokers: dict[int, Replica] = {}
        self.registered = {LEADER, OTHER}
        self.events: list[tuple[str, str, dict[str, Any]]] = []
        self.failures: list[OSError] = []
        self.hosted: Any
        self.repair: Repair

    def host(self, replicas: tuple[int, ...], isr: tuple[int, ...], leader: int) -> list[bytes]:
        self.hosted = Hosted(self.node, replicas, isr, leader)
        peers = Peers(
            DynamicConfig(config_of()), self.node.clock, self.node.randomness, quiet_logger(), lambda *_: None
        )
        self.repair = Repair(
            OWN,
            peers,
            "PLAINTEXT",
            lambda broker: Address(f"b{broker}", 9093) if broker in self.registered else None,
            self.node.clock,
            self.note,
            lambda partition, error: self.failures.append(error),
            quiet_logger(),
        )
        return self.hosted.fill()  # type: ignore[no-any-return]

    def note(self, kind: str, partition: Any, reason: str, **facts: Any) -> None:
        assert partition is self.hosted
        self.events.append((kind, reason, facts))

    @property
    def kinds(self) -> list[str]:
        return [kind for kind, _, _ in self.events]

    async def serve(self, broker: int, replica: Replica) -> Replica:
        self.brokers[broker] = replica
        await self.world.node(f"b{broker}").spawn(replica.serve())
        return replica

    async def until(self, condition: Callable[[], bool], within_s: float = 1000.0) -> None:
        deadline = self.world.loop.time() + within_s
        while not condition():
            assert self.world.loop.time() < deadline
            await asyncio.sleep(0.01)

    async def repaired(self, count: int = 1) -> None:
        await self.until(lambda: self.repair.repaired_batches >= count)


def play(story: Callable[[Stage], Coroutine[Any, Any, None]], seed: int = 1) -> Stage:
    with World(seed) as world:
        stage = Stage(world)

        async def main() -> None:
            await stage.node.spawn(story(stage))

        world.run(main())
        return stage


def test_a_follower_is_repaired_from_its_leader() -> None:
    async def story(stage: Stage) -> None:
        batches = stage.host((LEADER, OWN, OTHER), (LEADER, OWN, OTHER), LEADER)
        await stage.serve(LEADER, Replica(batches))
        stage.hosted.rot(5)
        stage.repair.damaged(stage.hosted, stage.hosted.meet(5))
        await stage.repaired()
        assert stage.hosted.read(4) == [4, 5, 6, 7]
        assert stage.repair.unrepaired(stage.hosted) == []
        await stage.repair.close()

    stage = play(story)
    (_, reason, facts), (kind, source, _) = stage.events
    assert reason == "the batch at offset 5 fails its checksum"
    assert (facts["first_offset"], facts["last_offset"], facts["segment"]) == (5, 5, 4)
    assert (kind, source) == ("batch repaired", "fetched from broker 2")
    assert (stage.repair.corrupt_batches, stage.repair.repaired_batches) == (1, 1)
    assert stage.failures == []


def test_a_leader_is_repaired_from_a_replica_in_sync() -> None:
    async def story(stage: Stage) -> None:
        batches = stage.host((OWN, LEADER, OTHER), (OWN, OTHER), OWN)
        first = await stage.serve(LEADER, Replica(batches))
        second = await stage.serve(OTHER, Replica(batches))
        stage.hosted.rot(1)
        stage.repair.damaged(stage.hosted, stage.hosted.meet(1))
        await stage.repaired()
        assert (len(first.requests(FETCH)), len(second.requests(FETCH))) == (0, 1)
        assert stage.hosted.read(0) == [0, 1, 2, 3]
        await stage.repair.close()

    play(story)


def test_damage_met_again_and_again_is_told_and_repaired_once() -> None:
    async def story(stage: Stage) -> None:
        batches = stage.host((OWN, OTHER), (OWN, OTHER), OWN)
        other = await stage.serve(OTHER, Replica(batches))
        stage.hosted.rot(6)
        for _ in range(50):
            stage.repair.damaged(stage.hosted, stage.hosted.meet(6))
        await stage.repaired()
        await asyncio.sleep(10)
        assert len(other.requests(FETCH)) == 1
        await stage.repair.close()

    assert play(story).kinds == ["corrupt batch", "batch repaired"]


def test_several_stretches_are_repaired_one_after_the_other() -> None:
    async def story(stage: Stage) -> None:
        batches = stage.host((OWN, OTHER), (OWN, OTHER), OWN)
        await stage.serve(OTHER, Replica(batches))
        for offset in (0, 2, 5, 9):
            stage.hosted.rot(offset)
            stage.repair.damaged(stage.hosted, stage.hosted.meet(offset))
        await stage.repaired(4)
        assert [stage.hosted.read(offset) for offset in (0, 4, 8)] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]
        await stage.repair.close()

    play(story)


def test_a_stretch_that_takes_several_answers() -> None:
    async def story(stage: Stage) -> None:
        batches = stage.host((OWN, OTHER), (OWN, OTHER), OWN)
        other = await stage.serve(OTHER, Replica(batches, at_most=len(batches[0]) + 10))
        for offset in (4, 5, 6):
            stage.hosted.rot(offset)
        damaged = stage.hosted.meet(4)
        assert (damaged.first_offset, damaged.end_offset) == (4, 7)
        stage.repair.damaged(stage.hosted, damaged)
        await stage.repaired()
        assert len(other.requests(FETCH)) == 3
        assert stage.hosted.read(4) == [4, 5, 6, 7]
        await stage.repair.close()

    play(story)


@pytest.mark.parametrize(
    "fault", ["not registered", "no answer", "refused", "rotten too", "other bytes", "shorter log"]
)
def test_if_one_cannot_help_the_next_is_asked(fault: str) -> None:
    async def story(stage: Stage) -> None:
        batches = stage.host((LEADER, OWN, OTHER), (LEADER, OWN, OTHER), LEADER)
        leader = await stage.serve(LEADER, Replica(list(batches)))
        if fault == "not registered":
            stage.registered.discard(LEADER)
        elif fault == "no answer":
            leader.scripts[FETCH] = lambda request: SILENCE
        elif fault == "refused":
            leader.error = ErrorCode.KAFKA_STORAGE_ERROR
        elif fault == "rotten too":
            leader.batches[5] = leader.batches[5][:-1] + b"?"
        elif fault == "other bytes":
            builder = BatchBuilder()
            builder.append(b"k", b"something longer", timestamp=NOW)
            leader.batches[5] = bytes(builder.build(base_offset=5, leader_epoch=0))
        else:
            leader.batches = leader.batches[:5]
        await stage.serve(OTHER, Replica(batches))
        stage.hosted.rot(5)
        stage.repair.damaged(stage.hosted, stage.hosted.meet(5))
        await stage.repaired()
        assert stage.hosted.read(4) == [4, 5, 6, 7]
        await stage.repair.close()

    assert play(story).events[-1][1] == "fetched from broker 3"


def test_while_nobody_can_help_it_is_tried_again_ever_more_rarely() -> None:
    async def story(stage: Stage) -> None:
        batches = stage.host((OWN, OTHER), (OWN, OTHER), OWN)
        other = await stage.serve(OTHER, Replica(batches, error=ErrorCode.OFFSET_OUT_OF_RANGE))
        stage.hosted.rot(3)
        stage.repair.damaged(stage.hosted, stage.hosted.meet(3))
        await asyncio.sleep(100)
        assert len(other.requests(FETCH)) == 7, "after 1, 2, 4, 8, 16 and 32 seconds more"
        assert stage.hosted.read(0) == [0, 1, 2]
        stage.hosted.meet(3)
        other.error = ErrorCode.NONE
        await stage.repaired()
        assert stage.hosted.read(0) == [0, 1, 2, 3]
        await stage.repair.close()

    assert play(story).kinds == ["corrupt batch", "batch repaired"]


def test_the_only_replica_says_so_once_and_keeps_refusing() -> None:
    async def story(stage: Stage) -> None:
        batches = stage.host((OWN,), (OWN,), OWN)
        stage.hosted.rot(5)
        for _ in range(3):
            stage.repair.damaged(stage.hosted, stage.hosted.meet(5))
            await asyncio.sleep(1)
        assert stage.kinds == ["corrupt batch"]
        assert (stage.hosted.read(4), stage.hosted.read(6)) == ([4], [6, 7])
        # Another replica was added: whoever meets it next sets things right.
        stage.hosted.state = PartitionImage((OWN, OTHER), (OWN, OTHER), OWN, 0, 1)
        await stage.serve(OTHER, Replica(batches))
        stage.repair.damaged(stage.hosted, stage.hosted.meet(5))
        await stage.repaired()
        assert stage.hosted.read(4) == [4, 5, 6, 7]
        await stage.repair.close()

    play(story)


def test_a_disk_that_fails_under_a_repair_is_told() -> None:
    async def story(stage: Stage) -> None:
        batches = stage.host((OWN, OTHER), (OWN, OTHER), OWN)
        await stage.serve(OTHER, Replica(batches))
        stage.hosted.rot(5)
        damaged = stage.hosted.meet(5)
        stage.node.disk.faults.set("/data", Fault.FULL)
        stage.repair.damaged(stage.hosted, damaged)
        await stage.until(lambda: bool(stage.failures))
        await stage.repair.close()

    play(story)


def test_a_partition_that_leaves_takes_its_repair_along() -> None:
    async def story(stage: Stage) -> None:
        batches = stage.host((OWN, OTHER), (OWN, OTHER), OWN)
        other = await stage.serve(OTHER, Replica(batches, error=ErrorCode.OFFSET_OUT_OF_RANGE))
        stage.hosted.rot(3)
        stage.repair.damaged(stage.hosted, stage.hosted.meet(3))
        await stage.until(lambda: bool(other.requests(FETCH)))
        stage.repair.forget(stage.hosted)
        other.error = ErrorCode.NONE
        await asyncio.sleep(1000)
        assert len(other.requests(FETCH)) == 1
        await stage.repair.close()
        stage.repair.damaged(stage.hosted, stage.hosted.meet(3))
        assert stage.kinds == ["corrupt batch"]

    play(story)


# The scrubber


def test_rot_is_found_before_a_reader_meets_it(monkeypatch: pytest.MonkeyPatch) -> None:
    interval_s = 20 * PAUSE_S
    monkeypatch.setattr(scrubber, "SCRUB_INTERVAL_S", interval_s)

    async def story(stage: Stage) -> None:
        batches = stage.host((OWN, OTHER), (OWN, OTHER), OWN)
        await stage.serve(OTHER, Replica(batches))
        scrubbing = Scrubber(
            lambda: [stage.hosted], stage.node.clock, stage.repair.damaged, lambda partition, error: None
        )
        stage.hosted.rot(2)
        stage.hosted.rot(7)
        stage.hosted.rot(9)
        running = asyncio.ensure_future(scrubbing.run())
        await asyncio.sleep(PAUSE_S + 1)
        await stage.repaired(2)
        assert [stage.hosted.read(offset) for offset in (0, 4)] == [[0, 1, 2, 3], [4, 5, 6, 7]]
        stage.hosted.meet(9)  # the active segment is not read: those who write it have it in memory
        assert scrubbing.scrubbed_bytes == 8 * len(batches[0])
        # Not again before its time.
        stage.hosted.rot(2)
        await asyncio.sleep(interval_s - 5 * PAUSE_S)
        assert stage.repair.corrupt_batches == 2
        await asyncio.sleep(6 * PAUSE_S)
        await stage.repaired(3)
        running.cancel()
        await stage.repair.close()

    play(story)


def test_rot_that_was_found_is_not_served_though_its_segment_was_checked_before() -> None:
    async def story(stage: Stage) -> None:
        stage.host((OWN,), (OWN,), OWN)
        assert stage.hosted.read(4) == [4, 5, 6, 7]
        stage.hosted.rot(5)
        scrubbing = Scrubber(
            lambda: [stage.hosted], stage.node.clock, stage.repair.damaged, lambda partition, error: None
        )
        running = asyncio.ensure_future(scrubbing.run())
        await asyncio.sleep(PAUSE_S + 1)
        assert stage.kinds == ["corrupt batch"]
        assert stage.hosted.meet(5).code is ErrorCode.KAFKA_STORAGE_ERROR
        assert (stage.hosted.read(4), stage.hosted.read(6)) == ([4], [6, 7])
        running.cancel()
        await stage.repair.close()

    play(story)


def test_it_reads_no_faster_than_it_may() -> None:
    async def story(stage: Stage) -> None:
        stage.host((OWN,), (OWN,), OWN)
        log = stage.hosted.log
        for _ in range(40):
            builder = BatchBuilder()
            builder.append(b"k", bytes(1_000_000), timestamp=NOW)
            log.append_as_leader(memoryview(builder.build()), 0, NOW)
        log.roll(NOW)
        scrubbing = Scrubber(lambda: [stage.hosted], stage.node.clock, lambda *_: None, lambda *_: None)
        running = asyncio.ensure_future(scrubbing.run())
        start = stage.world.loop.time()
        await stage.until(lambda: scrubbing.scrubbed_bytes >= 40_000_000)
        assert stage.world.loop.time() - start - PAUSE_S >= 39_000_000 / RATE_BYTES_PER_S
        running.cancel()

    play(story)


def test_a_segment_that_left_the_log_before_its_turn_is_passed_over() -> None:
    async def story(stage: Stage) -> None:
        stage.host((OWN,), (OWN,), OWN)
        log = stage.hosted.log
        for _ in range(2):
            builder = BatchBuilder()
            builder.append(b"k", bytes(RATE_BYTES_PER_S), timestamp=NOW)
            log.append_own(builder.build(), 0, NOW)
            log.roll(NOW)
        scrubbing = Scrubber(lambda: [stage.hosted], stage.node.clock, lambda *_: None, lambda *_: None)
        running = asyncio.ensure_future(scrubbing.run())
        await stage.until(lambda: scrubbing.scrubbed_bytes >= RATE_BYTES_PER_S)
        log.drop_segments(len(log.segments) - 1, NOW)
        await asyncio.sleep(2 * PAUSE_S)
        assert not running.done()
        assert scrubbing.scrubbed_bytes < 2 * RATE_BYTES_PER_S
        running.cancel()

    play(story)


def test_what_is_cut_while_it_is_read_is_no_damage() -> None:
    async def story(stage: Stage) -> None:
        stage.host((OWN, OTHER), (OWN, OTHER), OWN)
        found: list[CorruptBatch] = []
        scrubbing = Scrubber(
            lambda: [stage.hosted], stage.node.clock, lambda _, damaged: found.append(damaged), lambda *_: None
        )
        running = asyncio.ensure_future(scrubbing.run())
        await asyncio.sleep(PAUSE_S)
        stage.hosted.log.truncate_to(1)
        await asyncio.sleep(PAUSE_S)
        assert found == []
        running.cancel()

    for seed in range(10):
        play(story, seed)
