"""Records of a topic to a stream, for `consume` and `kafka-console-consumer`.

Partitions are read by assignment, all of the topic's or the one that was named, or as a member of a group. Always true: what was
printed is flushed before waiting for more, so whoever reads the pipe sees each record when it is there; a group's offsets never
pass what was printed.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Container, Mapping
from typing import BinaryIO, NamedTuple

from strandline.cli.access.client_properties import Reach
from strandline.cli.access.connection import connect, require_topic
from strandline.cli.errors import Refused
from strandline.cli.terminal.interrupts import POLL_S, ctrl_c
from strandline.client.blocking import Client, Consumer, ConsumerConfig
from strandline.client.core.fetched import ConsumerRecord
from strandline.ids import TopicPartition

EARLIEST, LATEST = "earliest", "latest"
Reads = Callable[[str, list[TopicPartition]], None]
"""Called with a group's name, and with what its member here reads."""


class Wanted(NamedTuple):
    """What to read, and when to stop."""

    topic: str
    partition: int | None = None
    start: str | int = LATEST
    """EARLIEST, LATEST, or an offset."""
    records_max: int | None = None
    idle_s: float | None = None
    """Stop after that long without a record."""
    until_end: bool = False
    """Stop at what was the end when reading began."""
    create: bool = False


def consume(
    to: Reach,
    wanted: Wanted,
    config: ConsumerConfig,
    show: Callable[[ConsumerRecord], bytes],
    output: BinaryIO,
    reads: Reads | None = None,
) -> int:
    """Print records until told to stop; how many. Ctrl-C is a way to stop.

    As a member of a group, `reads` is called with its name and what this member reads, once it has joined and after each change.
    """
    count = 0
    in_group = config.group_id is not None and wanted.partition is None
    if in_group:
        # Where the group has no offset yet.
        config = dataclasses.replace(config, auto_offset_reset="earliest" if wanted.start == EARLIEST else "latest")
    with ctrl_c() as asked, connect(to) as client:
        partitions = _partitions(client, wanted)
        consumer = Consumer(client, config)
        if in_group:
            consumer.subscribe([wanted.topic], on_assigned=_telling(config.group_id or "", consumer, reads))
        else:
            consumer.assign(partitions)
            _seek(consumer, wanted, partitions)
        ends = consumer.end_offsets(partitions) if wanted.until_end else None
        last = time.monotonic()
        while not asked.to_end and (wanted.records_max is None or count < wanted.records_max):
            if ends is not None and _is_at(ends, consumer):
                break
            left = None if wanted.records_max is None else wanted.records_max - count
            records = consumer.poll(POLL_S if wanted.idle_s is None else min(POLL_S, wanted.idle_s), left)
            if ends is not None and not in_group:
                records = [record for record in records if record.offset < ends[record.topic, record.partition]]
            if records:
                output.write(b"".join(map(show, records)))
                output.flush()
                count += len(records)
                last = time.monotonic()
            elif wanted.idle_s is not None and time.monotonic() - last >= wanted.idle_s:
                break
        # A member says how far it came, and leaves; one whose output failed does neither.
        consumer.close()
    return count


def _telling(group: str, consumer: Consumer, reads: Reads | None) -> Callable[[list[TopicPartition]], None] | None:
    """Tells all that the member has, when that is not what was told before; a rebalance may have left it as it was."""
    if reads is None:
        return None
    told: list[TopicPartition] | None = None

    def on_assigned(_: list[TopicPartition]) -> None:
        nonlocal told
        held = sorted(consumer.assignment())
        if held != told:
            told = held
            reads(group, held)

    return on_assigned


def _is_at(ends: Mapping[TopicPartition, int], consumer: Consumer) -> bool:
    """Everything that is read here was read to its end."""
    assigned = consumer.assignment()
    return bool(assigned) and all(consumer.position(*key) >= ends.get(key, 0) for key in assigned)


def start_of(config: ConsumerConfig, given: Container[str], from_beginning: bool) -> str:
    """Where to begin when no offset was named, and the group has none: at what auto.offset.reset says if it was given."""
    if "auto.offset.reset" not in given:
        return EARLIEST if from_beginning else LATEST
    reset = config.auto_offset_reset
    if from_beginning and reset != EARLIEST:
        raise Refused(f"--from-beginning and auto.offset.reset={reset} contradict each other; remove one of them")
    if reset == "none":
        raise Refused("auto.offset.reset=none leaves no place to begin; name one with --partition and --offset")
    return reset


def _partitions(client: Client, wanted: Wanted) -> list[TopicPartition]:
    present = sorted(require_topic(client, wanted.topic, create=wanted.create).partitions)
    if wanted.partition is None:
        return [(wanted.topic, partition) for partition in present]
    if wanted.partition not in present:
        raise Refused(f"{wanted.topic} has partitions 0 to {len(present) - 1}, and no {wanted.partition}")
    return [(wanted.topic, wanted.partition)]


def _seek(consumer: Consumer, wanted: Wanted, partitions: list[TopicPartition]) -> None:
    if wanted.start == EARLIEST:
        consumer.seek_to_beginning(partitions)
    elif wanted.start == LATEST:
        consumer.seek_to_end(partitions)
        for key in partitions:
            # Now, not with the first fetch: records that arrive from here on belong to the reader.
            consumer.position(*key)
    else:
        for topic, partition in partitions:
            consumer.seek(topic, partition, int(wanted.start))
