"""One member of a group as a process of its own, with a client library that is not told that it is watched.

    python -m tests.system.member_process confluent '{"bootstrap": …, "group": …, "topics": […], …}'

It prints a line of JSON for all that happens to it: `assigned`, `revoked` and `lost` with partitions, `seen` with offsets before
it commits them, `committed` after, `refused` where a commit failed for good, `left` at the end of a close. `at` is the machine's
monotonic clock, the same for all processes. A line on its stdin closes it; if stdin ends, so does it, without a word to anybody.

Always true: what was seen of a partition is committed before the partition is given up, and nothing is committed that was not told
as `seen` before.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
import threading
import time
import warnings
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

POLL_S = 0.1
PATIENT_POLL_S = 2
BATCH_MAX = 200
COMMIT_TIMEOUT_S = 30
COMMIT_PAUSE_S = 0.05
REFUSALS = {"ILLEGAL_GENERATION", "UNKNOWN_MEMBER_ID", "STALE_MEMBER_EPOCH", "FENCED_MEMBER_EPOCH", "_ASSIGNMENT_LOST"}
"""Commits that somebody else will make: whoever owns the partition now."""

Place = tuple[str, int]


def tell(event: str, **more: Any) -> None:
    print(json.dumps({"event": event, "at": time.monotonic(), **more}), flush=True)


def listed(partitions: Iterable[Any]) -> list[list[Any]]:
    return sorted([each.topic, each.partition] for each in partitions)


class Progress:
    """What was seen and is not committed yet."""

    def __init__(self) -> None:
        self.offsets: dict[Place, list[int]] = {}

    def take(self, topic: str, partition: int, offset: int) -> None:
        self.offsets.setdefault((topic, partition), []).append(offset)

    def hand_over(self) -> dict[Place, int]:
        """Tell what was seen; where to go on in each partition."""
        taken, self.offsets = self.offsets, {}
        tell("seen", records=[[*place, offsets] for place, offsets in taken.items()])
        return {place: offsets[-1] + 1 for place, offsets in taken.items()}


def told(following: dict[Place, int]) -> list[list[Any]]:
    return [[*place, offset] for place, offset in following.items()]


def committed_or_refused(following: dict[Place, int], commit: Callable[[], object], name: Callable[[Any], str]) -> None:
    """Until the coordinator took it or somebody else owns the partitions."""
    deadline = time.monotonic() + COMMIT_TIMEOUT_S
    while True:
        try:
            commit()
        except Exception as error:
            code = name(error)
            if code in REFUSALS or time.monotonic() > deadline:
                tell("refused", offsets=told(following), code=code)
                return
            tell("again", code=code)
            time.sleep(COMMIT_PAUSE_S)
        else:
            tell("committed", offsets=told(following))
            return


def confluent(settings: dict[str, Any], closing: threading.Event) -> None:
    from confluent_kafka import Consumer, KafkaException, TopicPartition

    consumer = Consumer(
        {
            "bootstrap.servers": settings["bootstrap"],
            "group.id": settings["group"],
            "client.id": settings["name"],
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "log_level": 0,
            "fetch.wait.max.ms": 50,
            "topic.metadata.refresh.interval.ms": 500,
            **settings["config"],
        }
    )
    progress = Progress()

    def commit() -> None:
        if progress.offsets:
            following = progress.hand_over()
            offsets = [TopicPartition(*place, offset) for place, offset in following.items()]

            def once() -> None:
                for each in consumer.commit(offsets=offsets, asynchronous=False) or ():
                    if each.error is not None:
                        raise KafkaException(each.error)

            committed_or_refused(following, once, lambda error: str(error.args[0].name()))

    def revoked(_: Any, partitions: Any) -> None:
        commit()
        tell("revoked", partitions=listed(partitions))

    consumer.subscribe(
        settings["topics"],
        on_assign=lambda _, partitions: tell("assigned", partitions=listed(partitions)),
        on_revoke=revoked,
        on_lost=lambda _, partitions: tell("lost", partitions=listed(partitions)),
    )
    while not closing.is_set():
        message = consumer.poll(POLL_S)
        for _ in range(BATCH_MAX):
            if message is None:
                break
            if (error := message.error()) is None:
                topic, partition, offset = message.topic(), message.partition(), message.offset()
                assert topic is not None
                assert partition is not None
                assert offset is not None
                progress.take(topic, partition, offset)
            else:
                tell("error", code=error.name())
            message = consumer.poll(0)
        commit()
    consumer.close()


def strandline(settings: dict[str, Any], closing: threading.Event) -> None:
    from strandline.client.blocking import Client, ClientConfig, Consumer, ConsumerConfig
    from strandline.errors import KafkaError

    config: dict[str, Any] = {
        "group_id": settings["group"],
        "enable_auto_commit": False,
        "auto_offset_reset": "earliest",
    }
    given: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in settings["config"].items()
    }
    client = Client(settings["bootstrap"], config=ClientConfig(client_id=settings["name"], metadata_max_age_ms=500))
    consumer = Consumer(client, ConsumerConfig(fetch_max_wait_ms=50, **config, **given))
    progress = Progress()

    def generation() -> int:
        return consumer.group_metadata().generation_id

    def commit() -> None:
        if progress.offsets:
            following = progress.hand_over()
            committed_or_refused(
                following,
                lambda: consumer.commit(following),
                lambda error: error.code.name if isinstance(error, KafkaError) else repr(error),
            )

    def assigned(partitions: list[Place]) -> None:
        tell("assigned", partitions=sorted(map(list, partitions)), generation=generation())

    def revoked(partitions: list[Place]) -> None:
        commit()
        tell("revoked", partitions=sorted(map(list, partitions)), generation=generation())

    def lost(partitions: list[Place]) -> None:
        tell("lost", partitions=sorted(map(list, partitions)))

    consumer.subscribe(settings["topics"], on_assigned=assigned, on_revoked=revoked, on_lost=lost)
    while not closing.is_set():
        for record in consumer.poll(POLL_S, BATCH_MAX):
            progress.take(record.topic, record.partition, record.offset)
        commit()
        if settings.get("tell_generation"):
            tell("generation", generation=generation())
    consumer.close()
    client.close()


def kafka_python(settings: dict[str, Any], closing: threading.Event) -> None:
    warnings.simplefilter("ignore")
    from kafka import ConsumerRebalanceListener, KafkaConsumer, TopicPartition
    from kafka.structs import OffsetAndMetadata

    config = {"enable_auto_commit": False, "auto_offset_reset": "earliest", "fetch_max_wait_ms": 50}
    consumer = KafkaConsumer(
        bootstrap_servers=settings["bootstrap"],
        group_id=settings["group"],
        client_id=settings["name"],
        metadata_max_age_ms=500,
        **config,
        **settings["config"],
    )
    progress = Progress()

    def commit() -> None:
        if progress.offsets:
            following = progress.hand_over()
            offsets = {TopicPartition(*place): OffsetAndMetadata(offset, "", -1) for place, offset in following.items()}
            committed_or_refused(following, lambda: consumer.commit(offsets), code_of)

    class Listener(ConsumerRebalanceListener):  # type: ignore[misc]
        def on_partitions_revoked(self, revoked: Any) -> None:
            commit()
            tell("revoked", partitions=listed(revoked))

        def on_partitions_assigned(self, assigned: Any) -> None:
            tell("assigned", partitions=listed(assigned))

    # If it joins again because of new metadata, and its poll ends before that is through, 3.0.12 never looks at the answer and
    # never sends a heartbeat again. So it knows its topics when it joins, and polls for longer than a join takes.
    for topic in settings["topics"]:
        consumer.partitions_for_topic(topic)
    consumer.subscribe(settings["topics"], listener=Listener())
    while not closing.is_set():
        for records in consumer.poll(PATIENT_POLL_S * 1000, BATCH_MAX).values():
            for record in records:
                progress.take(record.topic, record.partition, record.offset)
        commit()
    consumer.close()


def code_of(error: Any) -> str:
    """kafka-python and aiokafka say it with a class for each code."""
    if type(error).__name__ == "CommitFailedError":
        return "ILLEGAL_GENERATION"
    return str(getattr(error, "message", type(error).__name__))


def aiokafka(settings: dict[str, Any], closing: threading.Event) -> None:
    asyncio.run(_aiokafka(settings, closing))


async def _aiokafka(settings: dict[str, Any], closing: threading.Event) -> None:
    from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition
    from aiokafka.coordinator.assignors.range import RangePartitionAssignor

    consumer = AIOKafkaConsumer(
        bootstrap_servers=settings["bootstrap"],
        group_id=settings["group"],
        client_id=settings["name"],
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        fetch_max_wait_ms=50,
        metadata_max_age_ms=500,
        partition_assignment_strategy=(RangePartitionAssignor,),
        **settings["config"],
    )
    progress = Progress()
    one_commit = asyncio.Lock()
    """A rebalance runs beside the application: it waits for a commit that is under way."""

    async def commit() -> None:
        async with one_commit:
            if progress.offsets:
                following = progress.hand_over()
                offsets = {TopicPartition(*place): offset for place, offset in following.items()}
                await _committed_or_refused(following, lambda: consumer.commit(offsets))

    class Listener(ConsumerRebalanceListener):  # type: ignore[misc]
        async def on_partitions_revoked(self, revoked: Any) -> None:
            await commit()
            tell("revoked", partitions=listed(revoked))

        async def on_partitions_assigned(self, assigned: Any) -> None:
            tell("assigned", partitions=listed(assigned))

    consumer.subscribe(settings["topics"], listener=Listener())
    await consumer.start()
    while not closing.is_set():
        for records in (await consumer.getmany(timeout_ms=int(POLL_S * 1000), max_records=BATCH_MAX)).values():
            for record in records:
                progress.take(record.topic, record.partition, record.offset)
        await commit()
    # It does not call the listener when it leaves, and others may have them before `stop` returns.
    tell("revoked", partitions=listed(consumer.assignment()))
    await consumer.stop()


async def _committed_or_refused(following: dict[Place, int], commit: Callable[[], Awaitable[object]]) -> None:
    deadline = time.monotonic() + COMMIT_TIMEOUT_S
    while True:
        try:
            await commit()
        except Exception as error:
            code = code_of(error)
            if code in REFUSALS or time.monotonic() > deadline:
                tell("refused", offsets=told(following), code=code)
                return
            tell("again", code=code)
            await asyncio.sleep(COMMIT_PAUSE_S)
        else:
            tell("committed", offsets=told(following))
            return


LIBRARIES = {"confluent": confluent, "strandline": strandline, "kafka_python": kafka_python, "aiokafka": aiokafka}


def main(library: str, settings: str) -> None:
    closing = threading.Event()

    def listen() -> None:
        if not sys.stdin.readline():
            os._exit(1)
        closing.set()

    logging.disable()  # some libraries tell much of nodes that are down
    threading.Thread(target=listen, daemon=True).start()
    LIBRARIES[library](json.loads(settings), closing)
    tell("left")


if __name__ == "__main__":
    main(*sys.argv[1:])
