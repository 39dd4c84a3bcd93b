"""Records from lines or from nothing to a topic, for `produce` and `kafka-console-producer`.

Always true: whoever types lines gets each one sent when the input pauses; a record that was not acknowledged ends the command
with exit code 1 and is counted.
"""

from __future__ import annotations

import os
import select
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

from strandline.cli.access.client_properties import Reach
from strandline.cli.access.connection import connect, require_topic
from strandline.cli.errors import Refused
from strandline.cli.records.lines import LineReader
from strandline.cli.terminal.interrupts import POLL_S, Asked, ctrl_c
from strandline.cli.terminal.output import is_terminal
from strandline.client.blocking import Producer, ProducerConfig
from strandline.errors import KafkaError

CHUNK_BYTES = 1 << 16
PROMPT = ">"


class Sender:
    """Sends records and remembers which of them were not acknowledged."""

    def __init__(self, producer: Producer, topic: str, partition: int | None) -> None:
        self._producer = producer
        self._topic = topic
        self._partition = partition
        self._pending: deque[Any] = deque()
        self._error: KafkaError | None = None
        self.sent = 0
        self.failed = 0

    def send(self, value: bytes | None, key: bytes | None = None, headers: Any = ()) -> None:
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
            raise Refused(f"{self.failed} of {self.sent} records were not acknowledged; the first: {reason}")


def produce_lines(
    to: Reach,
    topic: str,
    stream: BinaryIO,
    reader: LineReader,
    config: ProducerConfig,
    partition: int | None = None,
    *,
    sync: bool = False,
) -> int:
    """Each line is a record; with `sync`, each is acknowledged before the next is read. Returns how many there were."""
    with ctrl_c() as asked, connect(to) as client:
        require_topic(client, topic, create=True)
        with Producer(client, config) as producer:
            sender = Sender(producer, topic, partition)
            for number, line in enumerate(_lines(stream, sender.flush, asked), 1):
                key, value, headers = reader.parse(line.decode("utf-8", "surrogateescape"), number)
                sender.send(value, key, headers)
                if sync:
                    sender.flush()
                sender.check()
            sender.flush()
            sender.check()
            return sender.sent


def _lines(stream: BinaryIO, on_pause: Callable[[], None], asked: Asked) -> Iterator[bytes]:
    """Lines without their ends, until there are no more or Ctrl-C. Before waiting for input, what was sent is flushed."""
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
        while not asked.to_end and not select.select([descriptor], [], [], POLL_S)[0]:
            pass
        chunk = b"" if asked.to_end else os.read(descriptor, CHUNK_BYTES)
        if not chunk:
            break
        *lines, rest = (rest + chunk).split(b"\n")
        yield from (line.removesuffix(b"\r") for line in lines)
    if rest:
        yield rest


def produce_load(
    to: Reach, topic: str, count: int, size_bytes: int, config: ProducerConfig, partition: int | None = None
) -> tuple[int, float]:
    """`count` records of `size_bytes` random bytes, as fast as they are taken. How many, and in how many seconds."""
    with connect(to) as client:
        require_topic(client, topic, create=True)
        value = os.urandom(size_bytes)
        began = time.monotonic()
        with Producer(client, config) as producer, _progress(count) as advance:
            sender = Sender(producer, topic, partition)
            for done in range(1, count + 1):
                sender.send(value)
                if done % 1000 == 0:
                    advance(1000)
                    sender.check()
            sender.flush()
            advance(count % 1000)
        sender.check()
        return sender.sent, time.monotonic() - began


class _progress:
    """A bar on stderr, if that is a terminal."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._bar: Any = None

    def __enter__(self) -> Callable[[int], None]:
        if not is_terminal(sys.stderr):
            return lambda count: None
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

        self._bar = Progress(BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), console=Console(stderr=True))
        self._bar.start()
        task = self._bar.add_task("", total=self._total)
        return lambda count: self._bar.advance(task, count)

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()
