"""`kafka-console-producer` and `kafka-console-consumer`, with Kafka's flags.

Left out: several topics by pattern (--include); Java classes (--formatter, --line-reader, deserializers).
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TypedDict, Unpack

import click

from strandline.cli.access.options import Access, kafka_access_options
from strandline.cli.errors import CommandRefused
from strandline.cli.kafka_tools.kafka_flags import kafka_command
from strandline.cli.option_values import key_values, value_of_option
from strandline.cli.terminal.output import example, is_terminal, note

STRING_CLASSES = ("org.apache.kafka.common.serialization.StringDeserializer",)


class ConsoleProducerOptions(TypedDict):
    """The options of `kafka-console-producer` beside topic and cluster."""

    compression_codec: str | None
    batch_size: int | None
    timeout: int | None
    request_required_acks: str | None
    request_timeout_ms: int | None
    max_memory_bytes: int | None
    reader_property: tuple[str, ...]
    reader_config: str | None
    command_property: tuple[str, ...]
    line_reader: str | None


class ConsoleConsumerOptions(TypedDict):
    """The options of `kafka-console-consumer` beside topic and cluster."""

    partition: int | None
    offset: str | None
    from_beginning: bool
    max_messages: int | None
    timeout_ms: int | None
    isolation_level: str | None
    formatter_property: tuple[str, ...]
    formatter_config: str | None
    command_property: tuple[str, ...]
    skip_message_on_error: bool
    key_deserializer: str | None
    value_deserializer: str | None
    formatter: str | None
    group: str | None
    include: str | None


def _properties(path: str | None, pairs: tuple[str, ...], flag: str) -> dict[str, str]:
    """The properties of a file and of the command line, which wins."""
    from strandline.cli.access.client_properties import from_file

    return {name: setting.text for name, setting in from_file(path).items()} | key_values(pairs, flag)


def _refuse(options: Mapping[str, object], names: tuple[str, ...], reason: str) -> None:
    for name in names:
        if options[name] is not None:
            raise CommandRefused(f"--{name.replace('_', '-')}: {reason}")


@kafka_command(
    epilog=example(
        "echo hello | strandline kafka-console-producer --bootstrap-server 127.0.0.1:9092 --topic peter-test01"
    )
)
@kafka_access_options("--producer.config")
@click.option("--topic", required=True, help="Where to.")
@click.option("--sync", is_flag=True, help="Wait for each record before the next is sent.")
@click.option("--compression-codec", is_flag=False, flag_value="gzip", help="none, gzip, snappy, lz4 or zstd.")
@click.option("--batch-size", type=int, help="The largest batch, in bytes.")
@click.option("--timeout", type=int, metavar="MS", help="How long a record waits for others (linger.ms).")
@click.option("--request-required-acks", help="all, 1 or 0.")
@click.option("--request-timeout-ms", type=int, help="How long a request may take.")
@click.option("--max-memory-bytes", type=int, help="The buffer for records that wait to be sent.")
@click.option(
    "--reader-property",
    "--property",
    "reader_property",
    multiple=True,
    metavar="KEY=VALUE",
    help="How lines are read: parse.key, …",
)
@click.option("--reader-config", type=click.Path(exists=True, dir_okay=False), metavar="FILE", help="A file of them.")
@click.option(
    "--command-property",
    "--producer-property",
    "command_property",
    multiple=True,
    metavar="KEY=VALUE",
    help="A producer property: acks, …",
)
@click.option("--line-reader", hidden=True)
def kafka_console_producer(access: Access, topic: str, sync: bool, **options: Unpack[ConsoleProducerOptions]) -> None:
    """Send each line of stdin as a record, with Kafka's flags."""
    _refuse(options, ("line_reader",), "Java classes cannot be loaded here")
    from strandline.cli.access.client_properties import for_producer, from_file, from_flag
    from strandline.cli.records.lines import LineReader
    from strandline.cli.records.producing import produce_lines

    flags = {
        "compression.type": "compression_codec",
        "batch.size": "batch_size",
        "linger.ms": "timeout",
        "acks": "request_required_acks",
        "request.timeout.ms": "request_timeout_ms",
        "buffer.memory": "max_memory_bytes",
    }
    settings = from_file(access.command_config)
    settings |= from_flag(key_values(options["command_property"], "--command-property"), "--command-property")
    for name, flag in flags.items():
        if (value := value_of_option(options, flag)) is not None:
            settings |= from_flag({name: str(value)}, f"--{flag.replace('_', '-')}")
    reading = LineReader(_properties(options["reader_config"], options["reader_property"], "--reader-property"))
    reach, config = for_producer(access, settings)
    produce_lines(reach, topic, sys.stdin.buffer, reading, config, sync=sync)


@kafka_command(
    epilog=example(
        "strandline kafka-console-consumer --bootstrap-server 127.0.0.1:9092 --topic peter-test01 --from-beginning"
    )
)
@kafka_access_options("--consumer.config")
@click.option("--topic", required=True, help="Where from.")
@click.option("--partition", type=click.IntRange(0), help="Read only this partition.")
@click.option("--offset", metavar="N|earliest|latest", help="Where to begin; needs --partition.")
@click.option("--from-beginning", is_flag=True, help="Begin with the oldest record.")
@click.option("--max-messages", type=int, help="Stop after that many.")
@click.option("--timeout-ms", type=int, help="Stop after that long without a record.")
@click.option(
    "--isolation-level",
    type=click.Choice(["read_uncommitted", "read_committed"]),
    help="Whether records of open and aborted transactions are shown.  [default: read_uncommitted]",
)
@click.option(
    "--formatter-property",
    "--property",
    "formatter_property",
    multiple=True,
    metavar="KEY=VALUE",
    help="What is printed: print.key, …",
)
@click.option(
    "--formatter-config", type=click.Path(exists=True, dir_okay=False), metavar="FILE", help="A file of them."
)
@click.option(
    "--command-property",
    "--consumer-property",
    "command_property",
    multiple=True,
    metavar="KEY=VALUE",
    help="A consumer property: max.poll.records, …",
)
@click.option("--skip-message-on-error", is_flag=True, hidden=True)
@click.option("--key-deserializer", hidden=True)
@click.option("--value-deserializer", hidden=True)
@click.option("--formatter", hidden=True)
@click.option("--group", help="Read as a member of this group.")
@click.option("--include", hidden=True)
def kafka_console_consumer(access: Access, topic: str, **options: Unpack[ConsoleConsumerOptions]) -> None:
    """Print the records of a topic, with Kafka's flags and output."""
    _refuse(options, ("include",), "one topic is read at a time; name it with --topic")
    _refuse(options, ("formatter",), "Java classes cannot be loaded here")
    for name in ("key_deserializer", "value_deserializer"):
        if options[name] not in (None, *STRING_CLASSES):
            raise CommandRefused(
                f"--{name.replace('_', '-')}: Java classes cannot be loaded here; bytes are printed unchanged"
            )
    from strandline.cli.access.client_properties import for_consumer, from_file, from_flag
    from strandline.cli.records.consuming import ConsumeOptions, consume, start_of
    from strandline.cli.records.lines import LineFormatter

    formatter = LineFormatter(
        _properties(options["formatter_config"], options["formatter_property"], "--formatter-property"),
        for_terminal=is_terminal(),
    )
    settings = from_file(access.command_config)
    settings |= from_flag(key_values(options["command_property"], "--command-property"), "--command-property")
    if options["isolation_level"] is not None:
        settings |= from_flag({"isolation.level": options["isolation_level"]}, "--isolation-level")
    offset = _offset(options)
    if options["group"] is not None:
        settings |= from_flag({"group.id": options["group"]}, "--group")
    reach, config = for_consumer(access, settings)
    start = start_of(config, settings, options["from_beginning"]) if offset is None else offset
    idle_s = None if options["timeout_ms"] is None else options["timeout_ms"] / 1000
    records_max = options["max_messages"] if options["max_messages"] not in (None, -1) else None
    consume_options = ConsumeOptions(topic, options["partition"], start, records_max, idle_s, create=True)
    count = consume(reach, consume_options, config, formatter.format, sys.stdout.buffer)
    note(f"Processed a total of {count} messages")


def _offset(options: ConsoleConsumerOptions) -> str | int | None:
    offset = options["offset"]
    if offset is None:
        return None
    if options["partition"] is None:
        raise click.UsageError("The partition is required when offset is specified.")
    if options["from_beginning"]:
        raise click.UsageError("Options from-beginning and offset cannot be specified together.")
    if offset in ("earliest", "latest"):
        return str(offset)
    if offset.isascii() and offset.isdigit():
        return int(offset)
    raise click.UsageError(
        f"The provided offset value '{offset}' is incorrect. Valid values are 'earliest', 'latest', or a non-negative long."
    )
