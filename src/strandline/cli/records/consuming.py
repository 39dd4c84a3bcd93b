"""Printing the records of a topic to a stream, for `consume` and `kafka-console-consumer`.

The partitions are all of the topic, or a named one, or those that a group assigns. Always true: output is flushed before waiting
for more records, so that the reader of a pipe sees each record at once; a group's offsets never pass what was printed.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Container, Mapping
from typing import BinaryIO, NamedTuple

from strandline.cli.access.client_properties import ConnectionSettings
from strandline.cli.access.connection import connect, require_topic
from strandline.cli.errors import CommandRefused
from strandline.cli.terminal.interrupts import POLL_S, ctrl_c
from strandline.client.blocking import Client, Consumer, ConsumerConfig
from strandline.client.core.completed_fetch import ConsumerRecord
from strandline.ids import TopicPartition

EARLIEST, LATEST = "earliest", "latest"
OnAssignment = Callable[[str, list[TopicPartition]], None]
"""Called with a group's name and the partitions assigned to this member."""


class ConsumeOptions(NamedTuple):
    """What to read, and when to stop."""

    topic: str
    partition: int | None = None
    start: str | int = LATEST
    """EARLIEST, LATEST, or an offset."""
    records_max: int | None = None
    idle_s: float | None = None
    """Stop after that long without a record."""
    until_end: bool = False
    """Stop at the log end of the time when reading began."""
    create: bool = False


def consume(
    to: ConnectionSettings,
    options: ConsumeOptions,
    config: ConsumerConfig,
    show: Callable[[ConsumerRecord], bytes],
    output: BinaryIO,
    on_assignment: OnAssignment | None = None,
) -> int:
    """Print records until an option or Ctrl-C stops it; returns how many.

    As a member of a group, `on_assignment` is called after joining and after each change of the assignment.
    """
    count = 0
    in_group = config.group_id is not None and options.partition is None
    if in_group:
        # For partitions without a committed offset.
        config = dataclasses.replace(config, auto_offset_reset="earliest" if options.start == EARLIEST else "latest")
    with ctrl_c() as stop, connect(to) as client:
        partitions = _partitions(client, options)
        consumer = Consumer(client, config)
        if in_group:
            consumer.subscribe(
                [options.topic], on_assigned=_on_assigned(config.group_id or "", consumer, on_assignment)
            )
        else:
            consumer.assign(partitions)
            _seek(consumer, options, partitions)
        ends = consumer.end_offsets(partitions) if options.until_end else None
        last = time.monotonic()
        while not stop.requested and (options.records_max is None or count < options.records_max):
            if ends is not None and _is_at(ends, consumer):
                break
            left = None if options.records_max is None else options.records_max - count
            records = consumer.poll(POLL_S if options.idle_s is None else min(POLL_S, options.idle_s), left)
            if ends is not None and not in_group:
                records = [record for record in records if record.offset < ends[record.topic, record.partition]]
            if records:
                output.write(b"".join(map(show, records)))
                output.flush()
                count += len(records)
                last = time.monotonic()
            elif options.idle_s is not None and time.monotonic() - last >= options.idle_s:
                break
        # Closing commits the offsets and leaves the group; if the output failed, neither happens.
        consumer.close()
    return count


def _on_assigned(
    group: str, consumer: Consumer, on_assignment: OnAssignment | None
) -> Callable[[list[TopicPartition]], None] | None:
    """A callback that reports the whole assignment, if it differs from the last one; a rebalance may not change it."""
    if on_assignment is None:
        return None
    reported: list[TopicPartition] | None = None

    def on_assigned(_: list[TopicPartition]) -> None:
        nonlocal reported
        assigned = sorted(consumer.assignment())
        if assigned != reported:
            reported = assigned
            on_assignment(group, assigned)

    return on_assigned


def _is_at(ends: Mapping[TopicPartition, int], consumer: Consumer) -> bool:
    """Whether every assigned partition was read to its end."""
    assigned = consumer.assignment()
    return bool(assigned) and all(consumer.position(*key) >= ends.get(key, 0) for key in assigned)


def start_of(config: ConsumerConfig, given: Container[str], from_beginning: bool) -> str:
    """Where to begin without an offset and without a committed one: at auto.offset.reset if it was given."""
    if "auto.offset.reset" not in given:
        return EARLIEST if from_beginning else LATEST
    reset = config.auto_offset_reset
    if from_beginning and reset != EARLIEST:
        raise CommandRefused(
            f"--from-beginning and auto.offset.reset={reset} contradict each other; remove one of them"
        )
    if reset == "none":
        raise CommandRefused("auto.offset.reset=none gives no offset to begin with; give --partition and --offset")
    return reset


def _partitions(client: Client, options: ConsumeOptions) -> list[TopicPartition]:
    present = sorted(require_topic(client, options.topic, create=options.create).partitions)
    if options.partition is None:
        return [(options.topic, partition) for partition in present]
    if options.partition not in present:
        raise CommandRefused(f"{options.topic} has partitions 0 to {len(present) - 1}, but no {options.partition}")
    return [(options.topic, options.partition)]


def _seek(consumer: Consumer, options: ConsumeOptions, partitions: list[TopicPartition]) -> None:
    if options.start == EARLIEST:
        consumer.seek_to_beginning(partitions)
    elif options.start == LATEST:
        consumer.seek_to_end(partitions)
        for key in partitions:
            # Resolve the offset now, not with the first fetch: records written from here on are read.
            consumer.position(*key)
    else:
        for topic, partition in partitions:
            consumer.seek(topic, partition, int(options.start))
