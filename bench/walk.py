"""`python -m bench.walk`: what it costs to walk every record of a produced batch, in machine code and in Python, for each codec.

A batch is appended to a log in this machine's temporary directory as a leader does it, without the network: once as if its records
had been checked before, once with the walk in machine code, once with the plain one. The numbers are the best of several rounds,
because other work on the machine only adds to them.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace

import click
from rich.console import Console
from rich.table import Table

from strandline.columnar import compiled_walk
from strandline.columnar.kernels import standalone
from strandline.config.topic_config import TopicConfig
from strandline.log.log import Log
from strandline.log.record_checks import CheckedRecords
from strandline.log.recovery import load
from strandline.records import walk
from strandline.records.batch import BatchBuilder
from strandline.records.compression import CompressionType
from strandline.records.header import assign
from strandline.runtime.disk import FileDisk

NOW_MS = 1_700_000_000_000
SHAPES = ((1, 100), (16, 1000), (150, 100), (950, 1000), (5000, 10))
"""Records in a batch, and bytes of each value. The benchmark's small batches have 16 records, its default ones 950."""
ROUND_BYTES = 2_000_000
ROUNDS = 40


def batch_of(count: int, value_bytes: int, codec: CompressionType) -> bytearray:
    """Values that shrink to a third or so, as text does."""
    builder = BatchBuilder()
    for i in range(count):
        noise = os.urandom(value_bytes // 4 + 1).hex().encode()
        builder.append(b"key-%d" % i, (noise + bytes(value_bytes))[:value_bytes], timestamp=NOW_MS + i // 10)
    return builder.build(codec=codec)


def append_us(log: Log, batch: bytearray, count: int, checked: CheckedRecords | None) -> float:
    """Of one append, at best."""
    view, best_s = memoryview(batch), float("inf")
    times = max(ROUND_BYTES // (len(batch) + 1000 * count), 3)
    for _ in range(ROUNDS):
        start_s = time.perf_counter()
        for _ in range(times):
            assign(view, 0, -1)
            log.append_as_leader(view, 0, NOW_MS, None, checked)
        best_s = min(best_s, (time.perf_counter() - start_s) / times)
        log.truncate_fully_and_start_at(0)
    return best_s * 1e6


def rows() -> Iterator[tuple[str, ...]]:
    compiled = compiled_walk.load()
    config = replace(TopicConfig.build(), max_message_bytes=1 << 30)
    with tempfile.TemporaryDirectory() as directory:
        disk = FileDisk()
        log = load(disk, directory, config, log_start_offset=0, recovery_point=0, clean=False, now_ms=NOW_MS).log
        for codec in CompressionType:
            for count, value_bytes in SHAPES:
                batch = batch_of(count, value_bytes, codec)
                before = append_us(log, batch, count, CheckedRecords(None, NOW_MS + (count - 1) // 10, config))
                cells = []
                for walker in (compiled, walk.PLAIN):
                    if walker is None:
                        cells += ["-", "-"]
                        continue
                    walk.use(walker)
                    after = append_us(log, batch, count, None)
                    cells += [f"{after:.1f}", f"{(after - before) / count:.3f}"]
                yield str(codec), f"{count} x {value_bytes}", str(len(batch)), f"{before:.1f}", *cells
        log.close()
        disk.close()


@click.command()
def main() -> None:
    """Measure what the walk adds to an append."""
    subprocess.run(standalone.command(), env=standalone.environment(os.environ), check=False)
    table = Table(title="Appending one batch, in microseconds, and what the walk adds to it for each record")
    heads = ("codec", "records x bytes", "batch bytes", "not walked", "machine code", "a record", "Python", "a record")
    for head in heads:
        table.add_column(head, justify="left" if head == "codec" else "right")

    async def fill() -> None:
        for row in rows():
            table.add_row(*row)

    asyncio.run(fill())
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
