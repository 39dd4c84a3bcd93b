"""Sending records to a topic, from lines or of random bytes, for `produce` and `kafka-console-producer`.

Always true: when the input pauses, all lines read so far are sent; a record that is not acknowledged is counted and ends the
command with exit code 1.
"""

from __future__ import annotations

import os
import select
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, BinaryIO

from strandline.cli.access.client_properties import ConnectionSettings
from strandline.cli.access.connection import connect, require_topic
from strandline.cli.errors import CommandRefused
from strandline.cli.records.lines import LineReader
from strandline.cli.terminal.interrupts import POLL_S, StopRequest, ctrl_c
from strandline.cli.terminal.output import is_terminal
from strandline.client.blocking import Producer, ProducerConfig
from strandline.errors import KafkaError

if TYPE_CHECKING:
    from rich.progress import Progress

    from strandline.cli.records.lines import Headers
    from strandline.client.blocking import PendingRecord

CHUNK_BYTES = 1 << 16
PROMPT = ">"


class RecordSender:
    """A producer for one topic that counts records which were not acknowledged."""

    def __init__(self, producer: Producer, topic: str, partition: int | None) -> None:
        self._producer = producer
        self._topic = topic
        self._partition = partition
        self._pending: deque[PendingRecord] = deque()
        self._error: KafkaError | None = None
        self.sent = 0
        self.failed = 0

    def send(self, value: bytes | None, key: bytes | None = None, headers: Headers = ()) -> None:
        self._pending.append(self._producer.send(self._topic, value, key, self._partition, headers))
        self.sent += 1
        while self._pending and self._pending[0].done:
            self._settle()

    def flush(self) -> None:
        self._producer.flush()
        while self._pending:
            self._settle()

    def _settle(self) -> None:
        try:
            self._pending.popleft().result()
        except KafkaError as error:
            self.failed += 1
            self._error = self._error or error

    def check(self) -> None:
        if self._error is not None:
            reason = f"{self._error.message} ({self._error.code.name})"
            raise CommandRefused(f"{self.failed} of {self.sent} records were not acknowledged; the first: {reason}")


def produce_lines(
    to: ConnectionSettings,
    topic: str,
    stream: BinaryIO,
    reader: LineReader,
    config: ProducerConfig,
    partition: int | None = None,
    *,
    sync: bool = False,
) -> int:
    """Send each line as a record; with `sync`, wait for each before reading the next. Returns how many were sent."""
    with ctrl_c() as stop, connect(to) as client:
        require_topic(client, topic, create=True)
        with Producer(client, config) as producer:
            sender = RecordSender(producer, topic, partition)
            for number, line in enumerate(_lines(stream, sender.flush, stop), 1):
                key, value, headers = reader.parse(line.decode("utf-8", "surrogateescape"), number)
                sender.send(value, key, headers)
                if sync:
                    sender.flush()
                sender.check()
            sender.flush()
            sender.check()
            return sender.sent


def _lines(stream: BinaryIO, on_pause: Callable[[], None], stop: StopRequest) -> Iterator[bytes]:
    """Lines without line ends, until the input ends or Ctrl-C. Before waiting for input, `on_pause` is called."""
    try:
        descriptor = stream.fileno()
    except (OSError, AttributeError):
        yield from (line.rstrip(b"\r\n") for line in stream)
        return
    prompt = is_terminal(sys.stdout) and stream.isatty()
    rest = b""
    while True:
        if prompt or not select.select([descriptor], [], [], 0)[0]:
            on_pause()
        if prompt:
            sys.stdout.write(PROMPT)
            sys.stdout.flush()
        while not stop.requested and not select.select([descriptor], [], [], POLL_S)[0]:
            pass
        chunk = b"" if stop.requested else os.read(descriptor, CHUNK_BYTES)
        if not chunk:
            break
        *lines, rest = (rest + chunk).split(b"\n")
        yield from (line.removesuffix(b"\r") for line in lines)
    if rest:
        yield rest


def produce_load(
    to: ConnectionSettings,
    topic: str,
    count: int,
    size_bytes: int,
    config: ProducerConfig,
    partition: int | None = None,
) -> tuple[int, float]:
    """Send `count` records of `size_bytes` random bytes as fast as possible. Returns how many, and the seconds."""
    with connect(to) as client:
        require_topic(client, topic, create=True)
        value = os.urandom(size_bytes)
        began = time.monotonic()
        with Producer(client, config) as producer, _LoadProgress(count) as advance:
            sender = RecordSender(producer, topic, partition)
            for done in range(1, count + 1):
                sender.send(value)
                if done % 1000 == 0:
                    advance(1000)
                    sender.check()
            sender.flush()
            advance(count % 1000)
        sender.check()
        return sender.sent, time.monotonic() - began


class _LoadProgress:
    """A progress bar on stderr, if that is a terminal."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._bar: Progress | None = None

    def __enter__(self) -> Callable[[int], None]:
        if not is_terminal(sys.stderr):
            return lambda count: None
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

        bar = self._bar = Progress(
            BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), console=Console(stderr=True)
        )
        bar.start()
        task = bar.add_task("", total=self._total)
        return lambda count: bar.advance(task, count)

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()
