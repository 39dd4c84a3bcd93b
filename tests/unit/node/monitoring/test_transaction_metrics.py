"""Transactions of a broker in numbers."""

# mypy: allow-incomplete-defs, allow-untyped-calls, allow-untyped-defs, disable-error-code="arg-type"

from __future__ import annotations

import asyncio
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from strandline.ids import TopicPartition
from strandline.log.producers import Producers
from strandline.node.monitoring.transaction_metrics import LATE_MS, late_transactions, undecided_transactions
from strandline.records.batch import BatchBuilder
from strandline.transactions.markers import EndMarker
from strandline.wire import messages
from tests.unit.node.conftest import PRODUCE, Produce, Stage, frame

from .conftest import Looked
from .test_metrics import samples

FIND_COORDINATOR, INIT_PRODUCER_ID, ADD_PARTITIONS, END_TXN = 10, 22, 24, 26
Find, Init, Add, EndTxn = (
    messages.request(key) for key in (FIND_COORDINATOR, INIT_PRODUCER_ID, ADD_PARTITIONS, END_TXN)
)
SETTINGS = {
    "transaction_state_log_replication_factor": "1",
    "transaction_state_log_min_isr": "1",
    "transaction_state_log_num_partitions": "4",
    "transaction_max_timeout_ms": "600000",
}
COORDINATOR = "kafka_server_transaction_coordinator_metrics"
MARKERS = "kafka_coordinator_transaction_transactionmarkerchannelmanager"
VERIFICATION = "kafka_server_addpartitionstotxnmanager"
LATE = ("kafka_server_replicamanager_partitionswithlatetransactionscount",)


async def initialized(stage: Stage, tid: str, version: int = 4, **fields: object) -> tuple[int, int]:
    await stage.call(FIND_COORDINATOR, 4, Find(key_type=1, coordinator_keys=[tid]))
    request = Init(transactional_id=tid, transaction_timeout_ms=60_000, **fields)
    for _ in range(100):
        reply = await stage.call(INIT_PRODUCER_ID, version, request)
        if not reply.error_code:
            return reply.producer_id, reply.producer_epoch
        await asyncio.sleep(0.1)
    raise AssertionError(f"no producer id: {reply.error_code}")


async def begun(stage: Stage, tid: str, producer: tuple[int, int], topic: str) -> None:
    topics = [Add.AddPartitionsToTxnTopic(name=topic, partitions=[0])]
    request = Add(
        v3_and_below_transactional_id=tid,
        v3_and_below_producer_id=producer[0],
        v3_and_below_producer_epoch=producer[1],
        v3_and_below_topics=topics,
    )
    reply = await stage.call(ADD_PARTITIONS, 3, request)
    assert not reply.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code


async def ended(stage: Stage, tid: str, producer: tuple[int, int]) -> None:
    request = EndTxn(transactional_id=tid, producer_id=producer[0], producer_epoch=producer[1], committed=True)
    assert not (await stage.call(END_TXN, 3, request)).error_code


async def sent(stage: Stage, tid: str, producer: tuple[int, int]) -> int:
    builder = BatchBuilder()
    builder.append(b"k", b"v", timestamp=stage.host.clock.wall_ms())
    data = builder.build(producer_id=producer[0], producer_epoch=producer[1], base_sequence=0, transactional=True)
    records = Produce.PartitionProduceData(index=0, records=bytes(data))
    topics = [Produce.TopicProduceData(name="t", partition_data=[records])]
    end = stage.connect()
    end.feed(frame(PRODUCE, 11, Produce(transactional_id=tid, acks=-1, timeout_ms=60_000, topic_data=topics)))
    await asyncio.sleep(1)
    [(_, reply)] = end.replies()
    answer: Any = messages.decode_response(PRODUCE, 11, reply, 1)
    return int(answer.responses[0].partition_responses[0].error_code)


def test_transactional_ids_loads_and_verifications(play):
    async def story(stage: Stage):
        metrics = Looked(stage).metrics()
        before = samples(metrics)
        assert before["strandline_transactional_ids", "state=Ongoing"] == 0
        assert before[f"{COORDINATOR}_partition_load_total",] == 0
        await stage.create()
        producers = {tid: await initialized(stage, tid) for tid in ("a", "b", "c")}
        await begun(stage, "a", producers["a"], "t")
        await begun(stage, "b", producers["b"], "t")
        assert await sent(stage, "a", producers["a"]) == 0
        assert await sent(stage, "c", producers["c"]) != 0
        await ended(stage, "b", producers["b"])
        await asyncio.sleep(1)
        after = samples(metrics)
        states = {state: after["strandline_transactional_ids", f"state={state}"] for state in ("Empty", "Ongoing")}
        assert states == {"Empty": 1, "Ongoing": 1}
        assert after["strandline_transactional_ids", "state=CompleteCommit"] == 1
        assert after["strandline_transaction_partitions", "state=active"] == 4
        assert after["strandline_transaction_partitions", "state=loading"] == 0
        assert after[f"{COORDINATOR}_partition_load_total",] == 4
        assert after[f"{COORDINATOR}_partition_load_failed_total",] == 0
        assert after[f"{VERIFICATION}_verificationtimems_count",] == 2
        assert after[f"{VERIFICATION}_verificationfailurerate_total",] == 1
        assert after["kafka_cluster_partition_laststableoffsetlag", "partition=0", "topic=t"] == 2
        assert after[f"{MARKERS}_unknowndestinationqueuesize",] == 0
        assert after["strandline_transaction_markers_unsent",] == 0

    play(story, **SETTINGS)


def test_a_transaction_that_no_timeout_explains_is_late(play):
    async def story(stage: Stage):
        metrics = Looked(stage).metrics()
        await stage.create()
        producer = await initialized(stage, "a")
        await begun(stage, "a", producer, "t")
        assert await sent(stage, "a", producer) == 0
        stage.node.parts.transactions.coordinator.close()  # nobody aborts it
        await asyncio.sleep(895)
        assert samples(metrics)[LATE] == 0
        await asyncio.sleep(10)
        assert samples(metrics)[LATE] == 1

    play(story, **SETTINGS)


UNDECIDED = ("strandline_two_phase_transactions_undecided",)
AGE = "strandline_two_phase_transaction_age_seconds"


def test_txn_q4_one_of_two_phase_commit_that_nobody_ends_is_late_and_named(play):
    async def story(stage: Stage):
        metrics = Looked(stage).metrics()
        await stage.create()
        producer = await initialized(stage, "a", 6, enable2_pc=True)
        await begun(stage, "a", producer, "t")
        assert await sent(stage, "a", producer) == 0
        await asyncio.sleep(590)
        assert samples(metrics)[UNDECIDED] == 0
        await asyncio.sleep(400)
        found = samples(metrics)
        assert (found[LATE], found[UNDECIDED]) == (1, 1)
        assert found[AGE, "transactional_id=a"] == pytest.approx(991, abs=2)
        await ended(stage, "a", producer)
        await asyncio.sleep(1)
        found = samples(metrics)
        assert (found[LATE], found[UNDECIDED]) == (0, 0)
        assert (AGE, "transactional_id=a") not in found

    play(story, **SETTINGS, unstable_api_versions_enable="true", transaction_two_phase_commit_enable="true")


def test_txn_q4_of_many_undecided_transactions_the_oldest_are_named():
    began = {f"{'x' * 300}{number}": 1000 + number for number in range(3)} | {f"t{n:02}": 5000 - n for n in range(20)}

    class Undecided:
        def undecided(self, open_since_ms: int) -> dict[str, int]:
            assert open_since_ms == 9_000
            return began

    count, ages = undecided_transactions(Undecided(), 1_000, 10_000)
    assert count.samples[0].value == 23
    names = [sample.labels["transactional_id"] for sample in ages.samples]
    assert sorted(names) == [f"t{n:02}" for n in range(13, 20)] + ["x" * 200]
    assert {sample.labels["transactional_id"]: sample.value for sample in ages.samples}["x" * 200] == 9.0


def test_markers_that_can_not_be_sent_or_are_refused(play):
    async def story(stage: Stage):
        looked = Looked(stage)
        metrics, parts = looked.metrics(), stage.node.parts.transactions
        partition = await stage.create()
        producer = await initialized(stage, "a")
        await begun(stage, "a", producer, "t")
        sent_markers: list[EndMarker] = []
        keep = parts.sender.send
        parts.sender.send = sent_markers.append  # type: ignore[assignment,method-assign]
        await ended(stage, "a", producer)
        await asyncio.sleep(0.1)
        [marker] = sent_markers
        parts.coordinator.refused(marker)
        found = samples(metrics)
        assert found["strandline_transaction_markers_refused",] == 1
        assert found["strandline_events_total", "kind=marker refused"] == 1
        image = replace(stage.node.replicas.image, brokers={})
        parts.sender._image = lambda: image  # no broker is there any more
        keep(marker)
        await asyncio.sleep(0.1)
        found = samples(metrics)
        assert found[f"{MARKERS}_unknowndestinationqueuesize",] == found["strandline_transaction_markers_unsent",] == 1
        assert partition.log.log_end_offset == 0

    play(story, **SETTINGS)


class Marked:
    """A replica whose producer wrote then."""

    def __init__(self, timestamp: int, is_open: bool = True) -> None:
        producers = Producers()
        producers.add_batch(1, 0, 0, 0, 0, timestamp, is_open)
        self.log = SimpleNamespace(producers=producers)


def test_txn_t39_a_transaction_is_late_five_minutes_after_the_longest_timeout():
    timeout_ms, now_ms = 900_000, 10_000_000
    just = now_ms - timeout_ms - LATE_MS
    led: list[Any] = [Marked(just), Marked(just - 1), Marked(just - 1, is_open=False), Marked(-1)]
    assert late_transactions(led, timeout_ms, now_ms) == 1
    assert LATE_MS == 300_000


def test_transactions_with_all_markers_and_without_their_last_record_are_counted(play):
    async def story(stage: Stage):
        looked = Looked(stage)
        await stage.create()
        producer = await initialized(stage, "a")
        await begun(stage, "a", producer, "t")
        parts = stage.node.parts.transactions
        parts.sender.send = lambda marker: None  # type: ignore[method-assign]
        await ended(stage, "a", producer)
        await asyncio.sleep(0.1)
        [shard] = (shard for shard in looked.observed.transactions.shards if shard.transactions)
        name = (f"{MARKERS}_logappendretryqueuesize",)
        assert samples(looked.metrics())[name] == 0
        left: set[TopicPartition] = shard.unmarked["a"]
        left.clear()
        assert samples(looked.metrics())[name] == 1

    play(story, **SETTINGS)
