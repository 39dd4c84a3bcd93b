"""`dump-log` and `kafka-dump-log`: log files as lines of text.

Always true: the two print the same lines, which are those of Apache Kafka's own tool.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from strandline.cli.errors import CommandRefused
from strandline.cli.kafka_tools.kafka_flags import kafka_command
from strandline.cli.terminal.output import example, is_terminal, note
from strandline.escaping import escaped

if TYPE_CHECKING:
    from strandline.cli.storage.dump.indexes import IndexMismatches
    from strandline.cli.storage.dump.segments import DumpOptions, Gaps, Show

WHOLE_FILE = 0x7FFF_FFFF


@click.command(
    epilog=example("strandline dump-log --print-data-log .strandline/node-1/data/hello-0/00000000000000000000.log")
)
@click.argument("files", nargs=-1, required=True, type=click.Path())
@click.option("--print-data-log", "-p", is_flag=True, help="Also print keys and values.")
@click.option("--records", "deep", is_flag=True, help="Also print a line for each record.")
@click.option(
    "--metadata",
    "--cluster-metadata-decoder",
    is_flag=True,
    help="Show values as records of __cluster_metadata.",
)
@click.option("--transaction-log-decoder", is_flag=True, help="Show records as those of __transaction_state.")
@click.option("--verify-index-only", is_flag=True, help="Check indexes without printing them.")
@click.option(
    "--max-bytes",
    type=click.IntRange(1),
    default=WHOLE_FILE,
    metavar="BYTES",
    help="Read no more of each file.  [default: all of it]",
)
def dump_log(
    files: tuple[str, ...],
    print_data_log: bool,
    deep: bool,
    metadata: bool,
    transaction_log_decoder: bool,
    verify_index_only: bool,
    max_bytes: int,
) -> None:
    """Print the batches and records of log files: .log .index .timeindex .txnindex .snapshot .checkpoint."""
    from strandline.cli.storage.dump.segments import DumpOptions

    contents = print_data_log or metadata or transaction_log_decoder
    show = _decoder(metadata, transaction_log_decoder)
    options = DumpOptions(deep or contents, contents, True, max_bytes, show)
    _dump_all(files, options, sanity_only=False, verify_only=verify_index_only)


@kafka_command(
    epilog=example(
        "strandline kafka-dump-log --print-data-log --files .strandline/node-1/data/hello-0/00000000000000000000.log"
    )
)
@click.option("--files", required=True, metavar="FILE,…", help="The files to print.")
@click.option("--print-data-log", is_flag=True, help="Also print keys and values.")
@click.option("--deep-iteration", is_flag=True, help="Also print a line for each record.")
@click.option("--index-sanity-check", is_flag=True, help="Only run the checks that a broker runs at its start.")
@click.option("--verify-index-only", is_flag=True, help="Check indexes without printing them.")
@click.option(
    "--max-message-size",
    type=int,
    default=5 * 1024 * 1024,
    metavar="BYTES",
    help="Ignored: batches of any size are read.",
)
@click.option(
    "--max-bytes",
    type=click.IntRange(1),
    default=WHOLE_FILE,
    metavar="BYTES",
    help="Read no more of each file.  [default: all of it]",
)
@click.option("--skip-record-metadata", is_flag=True, help="Of records, print only keys and values.")
@click.option("--cluster-metadata-decoder", is_flag=True, help="Show values as records of __cluster_metadata.")
@click.option("--transaction-log-decoder", is_flag=True, help="Show records as those of __transaction_state.")
@click.option("--key-decoder-class", hidden=True)
@click.option("--value-decoder-class", hidden=True)
@click.option("--offsets-decoder", is_flag=True, hidden=True)
@click.option("--remote-log-metadata-decoder", is_flag=True, hidden=True)
@click.option("--share-group-state-decoder", is_flag=True, hidden=True)
def kafka_dump_log(
    files: str,
    print_data_log: bool,
    deep_iteration: bool,
    index_sanity_check: bool,
    verify_index_only: bool,
    max_message_size: int,
    max_bytes: int,
    skip_record_metadata: bool,
    cluster_metadata_decoder: bool,
    transaction_log_decoder: bool,
    key_decoder_class: str | None,
    value_decoder_class: str | None,
    **decoders: bool,
) -> None:
    """Print the batches and records of log files, with Kafka's flags and output."""
    from strandline.cli.storage.dump.segments import DumpOptions

    for name, given in decoders.items():
        if given:
            raise CommandRefused(
                f"--{name.replace('_', '-')} is not supported yet; --print-data-log shows the bytes as text"
            )
    for decoder in (key_decoder_class, value_decoder_class):
        if decoder is not None and not decoder.endswith(".StringDecoder"):
            raise CommandRefused(f"the Java class {decoder} cannot be loaded here; leave it out to see text")
    contents = any(
        (print_data_log, cluster_metadata_decoder, transaction_log_decoder, key_decoder_class, value_decoder_class)
    )
    show = _decoder(cluster_metadata_decoder, transaction_log_decoder)
    options = DumpOptions(deep_iteration or contents, contents, not skip_record_metadata, max_bytes, show)
    _dump_all(tuple(files.split(",")), options, sanity_only=index_sanity_check, verify_only=verify_index_only)


def _decoder(metadata: bool, transactions: bool) -> Show:
    """The first that is given, in the order of Kafka's tool."""
    from strandline.cli.storage.dump.segments import as_metadata, as_text
    from strandline.cli.storage.dump.transaction_log import as_transactions

    return as_transactions if transactions else as_metadata if metadata else as_text


def _dump_all(files: tuple[str, ...], options: DumpOptions, *, sanity_only: bool, verify_only: bool) -> None:
    from strandline.cli.storage.dump.indexes import IndexMismatches

    for path in files:
        if not os.path.exists(path):
            raise CommandRefused(f"there is no file {path}")
        if os.path.isdir(path):
            raise CommandRefused(
                f"{path} is a directory; name the files in it: .log .index .timeindex .txnindex .snapshot .checkpoint"
            )
    gaps: Gaps = {}
    mismatches = IndexMismatches()
    # One line for each record: click would take several times as long.
    write, show = sys.stdout.write, escaped if is_terminal() else str
    for path in map(os.path.normpath, files):
        write(f"Dumping {path}\n")
        for line in _lines(path, options, sanity_only, verify_only, gaps, mismatches):
            write(show(line) + "\n")
    sys.stdout.flush()
    for line in mismatches.lines():
        note(line)
    for path, pairs in gaps.items():
        note(f"Non-consecutive offsets in {path}")
        for before, after in pairs.items():
            note(f"  {before} is followed by {after}")


def _lines(
    path: str, options: DumpOptions, sanity_only: bool, verify_only: bool, gaps: Gaps, mismatches: IndexMismatches
) -> Iterator[str]:
    from strandline.cli.storage.dump import indexes, segments

    suffix = os.path.splitext(os.path.basename(path))[1]
    if suffix in (".log", ".checkpoint"):
        return segments.dump(path, options, gaps)
    if suffix == ".index":
        return indexes.dump_index(path, sanity_only, verify_only, mismatches)
    if suffix == ".timeindex":
        return indexes.dump_time_index(path, sanity_only, verify_only, mismatches)
    if suffix == ".txnindex":
        return indexes.dump_txn_index(path)
    if suffix == ".snapshot":
        return indexes.dump_producer_snapshot(path)
    note(f"Ignoring unknown file {path}")
    return iter(())
