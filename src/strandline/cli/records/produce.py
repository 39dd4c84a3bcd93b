"""`produce`: write records to a topic."""

from __future__ import annotations

import sys
from typing import BinaryIO

import click

from strandline.cli.access.options import Access, access_options
from strandline.cli.option_values import key_values
from strandline.cli.terminal.output import example, note

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


@click.command(
    epilog=example(
        "echo 'k1:hello' | strandline produce greetings --key-separator :",
        "strandline produce greetings --file lines.txt --compression zstd",
        "strandline produce greetings --count 100000 --size 1000",
    )
)
@click.argument("topic")
@access_options
@click.option(
    "--file", "-f", type=click.File("rb"), default="-", metavar="FILE", help="Lines to send.  [default: stdin]"
)
@click.option("--key-separator", "-k", metavar="TEXT", help="Separates the key from the value in a line.")
@click.option("--partition", "-p", type=click.IntRange(0), help="Send all to this partition.")
@click.option("--acks", type=click.Choice(["all", "1", "0"]), help="Which replicas acknowledge.  [default: all]")
@click.option("--compression", type=click.Choice(CODECS), help="How batches are compressed.  [default: none]")
@click.option(
    "--property", "properties", multiple=True, metavar="KEY=VALUE", help="A producer property, by Kafka's name."
)
@click.option("--count", type=click.IntRange(1), help="Send that many records of random bytes instead of lines.")
@click.option(
    "--size",
    default=100,
    show_default=True,
    type=click.IntRange(0),
    metavar="BYTES",
    help="The size of each of these records.",
)
def produce(
    topic: str,
    access: Access,
    file: BinaryIO,
    key_separator: str | None,
    partition: int | None,
    acks: str | None,
    compression: str | None,
    properties: tuple[str, ...],
    count: int | None,
    size: int,
) -> None:
    """Write records to a topic: each line of a file or of stdin, or a load of random bytes."""
    from strandline.cli.access.client_properties import for_producer, from_file, from_flag
    from strandline.cli.records.lines import LineReader
    from strandline.cli.records.producing import produce_lines, produce_load

    settings = from_file(access.command_config) | from_flag(key_values(properties, "--property"), "--property")
    settings |= from_flag({} if acks is None else {"acks": acks}, "--acks")
    settings |= from_flag({} if compression is None else {"compression.type": compression}, "--compression")
    reach, config = for_producer(access, settings)
    if count is not None:
        done, seconds = produce_load(reach, topic, count, size, config, partition)
        megabytes = done * size / 1e6
        note(
            f"{done} records, {megabytes:.1f} MB in {seconds:.2f} s ({done / seconds:,.0f}/s, {megabytes / seconds:.1f} MB/s)"
        )
        return
    reader = LineReader({} if key_separator is None else {"parse.key": "true", "key.separator": key_separator})
    done = produce_lines(reach, topic, file, reader, config, partition)
    if sys.stderr.isatty():
        note(f"{done} records")
