"""A whole run: every API in every version, then record batches, then a look at what is left."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass

from strandline.wire import messages
from strandline.wire.headers import request_header

from .batches import Batches
from .mutations import frame, mutate
from .stage import MEMORY_GROWTH_BYTES_MAX, PRODUCE, TOPICS, Failure, Stage, memory_bytes

SOCKET_SHARE = 0.01
WARM_UP_MUTATIONS = 3
"""Codecs are made and caches filled before memory is measured."""


@dataclass(frozen=True, slots=True)
class Result:
    requests: int
    batches_kept: int
    failures: list[Failure]
    outcomes: dict[str, int]
    memory_growth_bytes: int
    seconds: float


async def run(
    stage: Stage,
    mutations: int,
    batches: int,
    seed: int,
    progress: Callable[[int, int], None] = lambda done, total: None,
    chosen: list[tuple[int, int]] | None = None,
) -> Result:
    """`mutations` of each API and version, and `batches` broken ones into each kind of topic."""
    started = time.monotonic()
    await stage.start()
    chosen = stage.cases() if chosen is None else chosen
    for case in chosen:
        await _requests(stage, case, WARM_UP_MUTATIONS, "warm-up")
    if batches:
        await _batches(stage, WARM_UP_MUTATIONS, "warm-up")
    memory_before = memory_bytes()
    total = len(chosen) * mutations + batches * len(TOPICS)
    for done, case in enumerate(chosen):
        await _requests(stage, case, mutations, f"{seed} {case}")
        progress((done + 1) * mutations, total)
    await _batches(stage, batches, str(seed))
    progress(total, total)
    await stage.check_clean()
    growth = memory_bytes() - memory_before
    requests = stage.outcomes.total()
    await stage.stop()
    kept = stage.check_logs()
    if growth > MEMORY_GROWTH_BYTES_MAX:
        stage.failures.append(Failure(f"memory grew by {growth / 2**20:.0f} MiB", "", b"", ""))
    seconds = time.monotonic() - started
    return Result(requests, kept, stage.failures, dict(stage.outcomes), growth, seconds)


async def _requests(stage: Stage, case: tuple[int, int], count: int, seed: str) -> None:
    chance = random.Random(seed)
    samples = stage.samples(chance)
    other_key, other_version = chance.choice(stage.cases())
    for _ in range(count):
        samples.topics = stage.topics or samples.topics
        payload = samples.payload(*case)
        if chance.random() >= stage.sound_share:
            payload = mutate(payload, samples.payload(other_key, other_version), chance)
        data, whole = frame(payload, chance)
        if chance.random() < SOCKET_SHARE:
            await stage.send_over_a_socket(data)
        else:
            await stage.send(*case, data, whole=whole)
    await stage.tidy()


async def _batches(stage: Stage, count: int, seed: str) -> None:
    """Broken batches in sound requests, into topics that look inside and topics that do not."""
    chance = random.Random(f"{seed} batches")
    batches = Batches(chance, int(time.time() * 1000))
    Produce = messages.request(PRODUCE)
    for topic in TOPICS:
        for _ in range(count):
            version = chance.choice(range(3, 13))
            data = Produce.PartitionProduceData(index=0, records=batches.draw())
            request = Produce(
                acks=chance.choice((-1, 1, 0)),
                timeout_ms=1000,
                topic_data=[Produce.TopicProduceData(name=topic, partition_data=[data])],
            )
            payload = request_header(PRODUCE, version, 1, "fuzz") + messages.encode_request(PRODUCE, version, request)
            await stage.send(PRODUCE, version, len(payload).to_bytes(4, "big") + payload, whole=True)
