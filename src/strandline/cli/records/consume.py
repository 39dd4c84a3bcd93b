"""`consume`: read records of a topic."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from strandline.cli.access.options import Access, access_options
from strandline.cli.terminal.output import example, is_terminal, note
from strandline.ids import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Sequence

    from strandline.client.core.completed_fetch import ConsumerRecord


def _offset(context: click.Context, parameter: click.Parameter, value: str | None) -> str | int | None:
    if value is None or value in ("earliest", "latest"):
        return value
    if value.isascii() and value.isdigit():
        return int(value)
    raise click.BadParameter("an offset is a number, 'earliest' or 'latest'")


def _group(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    if value is not None and not value.strip():
        raise click.BadParameter("the name of a group cannot be empty")
    return value


@click.command(
    epilog=example(
        "strandline consume greetings --from-beginning --key",
        "strandline consume greetings --partition 0 --offset 42 --max-messages 1 --json",
        "strandline consume greetings --group readers",
    )
)
@click.argument("topic")
@access_options
@click.option("--partition", "-p", type=click.IntRange(0), help="Read only this partition.  [default: all]")
@click.option(
    "--offset", "-o", callback=_offset, metavar="N|earliest|latest", help="Where to begin.  [default: latest]"
)
@click.option("--from-beginning", is_flag=True, help="Short for --offset earliest.")
@click.option("--max-messages", "-n", type=click.IntRange(1), help="Stop after that many.")
@click.option("--timeout", "timeout_s", type=float, metavar="SECONDS", help="Stop after that long without a record.")
@click.option("--until-end", "-e", is_flag=True, help="Stop at the current log end.")
@click.option("--key", "-k", "keys", is_flag=True, help="Print keys too, with a tab in between.")
@click.option("--json", "as_json", is_flag=True, help="Print a line of JSON for each record.")
@click.option(
    "--group", "-g", callback=_group, metavar="NAME", help="Read as a member of this group, from its committed offsets."
)
@click.option(
    "--group-protocol",
    type=click.Choice(("classic", "consumer")),
    help="The group protocol.  [default: classic]",
)
@click.option("--read-committed", is_flag=True, help="Leave out records of transactions that are not committed.")
def consume(
    topic: str,
    access: Access,
    partition: int | None,
    offset: str | int | None,
    from_beginning: bool,
    max_messages: int | None,
    timeout_s: float | None,
    until_end: bool,
    keys: bool,
    as_json: bool,
    group: str | None,
    group_protocol: str | None,
    read_committed: bool,
) -> None:
    """Read records of a topic and print them as they come, until Ctrl-C."""
    if offset is not None and from_beginning:
        raise click.UsageError("give --offset or --from-beginning, not both")
    if isinstance(offset, int) and partition is None:
        raise click.UsageError("a numeric --offset needs --partition")
    if group is not None and partition is not None:
        raise click.UsageError("give --group or --partition: a group divides the partitions among its members")
    if group_protocol is not None and group is None:
        raise click.UsageError("--group-protocol needs --group")
    from strandline.cli.access.client_properties import for_consumer, from_file, from_flag
    from strandline.cli.records.consuming import ConsumeOptions, start_of
    from strandline.cli.records.consuming import consume as consume_records
    from strandline.cli.records.lines import LineFormatter

    settings = from_file(access.command_config)
    if read_committed:
        settings |= from_flag({"isolation.level": "read_committed"}, "--read-committed")
    named = {"group.id": group, "group.protocol": group_protocol}
    settings |= from_flag({name: text for name, text in named.items() if text is not None}, "--group")
    reach, config = for_consumer(access, settings)
    start = start_of(config, settings, from_beginning) if offset is None else offset
    options = ConsumeOptions(topic, partition, start, max_messages, timeout_s, until_end)
    show = json_line if as_json else LineFormatter({"print.key": str(keys)}, for_terminal=is_terminal()).format
    is_watched = is_terminal(sys.stderr)
    count = consume_records(reach, options, config, show, sys.stdout.buffer, _note_assignment if is_watched else None)
    if is_watched:
        note(f"{count} records")


def _note_assignment(group: str, partitions: Sequence[TopicPartition]) -> None:
    from strandline.cli.groups.group_tables import assignment

    read = (
        assignment(partitions).replace(":", " ").replace(";", "; ")
        if partitions
        else "no partitions yet, other members have them all"
    )
    note(f"{group}: {read}")


def json_line(record: ConsumerRecord) -> bytes:
    """A record as a line of JSON; bytes that are not UTF-8 are given as base64 under another name."""
    import json

    line: dict[str, object] = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
    }
    _put(line, "key", record.key)
    _put(line, "value", record.value)
    if record.headers:
        line["headers"] = [_put({"key": key}, "value", value) for key, value in record.headers]
    return json.dumps(line).encode() + b"\n"


def _put(line: dict[str, object], name: str, data: bytes | None) -> dict[str, object]:
    import base64

    try:
        line[name] = None if data is None else data.decode()
    except UnicodeDecodeError:
        line[f"{name}_base64"] = base64.b64encode(data or b"").decode()
    return line
