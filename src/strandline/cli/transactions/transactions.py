"""`transactions`: transactional ids and their transactions, the producers of a partition, and ending what hangs.

Always true: what is found by its start offset is aborted only if it hangs, so that no transaction is torn that its coordinator
would end whole.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypedDict, Unpack

import click

from strandline.cli.access.options import Access, access_options
from strandline.cli.errors import CommandRefused, explain
from strandline.cli.option_values import topic_partition
from strandline.cli.terminal.escaping import echo, shown
from strandline.cli.terminal.output import example, json_option, note, print_json, print_table

if TYPE_CHECKING:
    from collections.abc import Iterable

    from strandline.cli.transactions.transaction_admin import OpenTransaction
    from strandline.client.blocking import Admin
    from strandline.client.flow.transaction_descriptions import (
        AbortTransactionSpec,
        ActiveProducer,
        DescribedTransaction,
    )
    from strandline.errors import KafkaError
    from strandline.ids import TopicPartition

STATES = ("Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "PrepareEpochFence")
DESCRIBE_COLUMNS = ("transactional id", "state", "coordinator", "producer", "epoch", "timeout", "age", "partitions")
PRODUCER_COLUMNS = (
    "topic",
    "partition",
    "producer",
    "epoch",
    "coordinator epoch",
    "last sequence",
    "last timestamp",
    "open since offset",
)
HANGING_COLUMNS = ("topic", "partition", "producer", "epoch", "coordinator epoch", "start offset", "silent for min")


@click.group(epilog=example("strandline transactions list", "strandline transactions describe payments-1"))
def transactions() -> None:
    """List and describe transactions, find those that hang, and end them."""


@transactions.command(
    "list",
    epilog=example("strandline transactions list --state ongoing", "strandline transactions list --pattern 'pay.*'"),
)
@access_options
@click.option(
    "--state", "states", multiple=True, type=click.Choice(STATES, case_sensitive=False), help="Only in this state."
)
@click.option("--producer-id", "producer_ids", multiple=True, type=int, help="Only of this producer id.")
@click.option("--longer-than", type=click.IntRange(0), metavar="MS", help="Only those that run for longer than that.")
@click.option("--pattern", metavar="REGEX", help="Only transactional ids that match as a whole, in RE2's syntax.")
@json_option
def list_(
    access: Access,
    states: tuple[str, ...],
    producer_ids: tuple[int, ...],
    longer_than: int | None,
    pattern: str | None,
    as_json: bool,
) -> None:
    """List the transactional ids."""
    from strandline.cli.access.connection import connect_admin
    from strandline.errors import ErrorCode, KafkaError

    with connect_admin(access) as admin:
        try:
            found = admin.list_transactions(
                states=states, producer_ids=producer_ids, longer_than_ms=longer_than, pattern=pattern
            )
        except KafkaError as error:
            if error.code is not ErrorCode.INVALID_REGULAR_EXPRESSION:
                raise
            raise CommandRefused(f"--pattern {pattern}: not a regular expression of RE2") from None
    if as_json:
        print_json([listing._asdict() for listing in found])
        return
    rows = [(t.transactional_id, t.state, t.coordinator_id, t.producer_id) for t in found]
    is_filtered = bool(states or producer_ids or longer_than is not None or pattern)
    empty = "no transactional id fits" if is_filtered else "no transactional ids"
    print_table(("transactional id", "state", "coordinator", "producer"), rows, empty=empty)


@transactions.command(
    epilog=example("strandline transactions describe payments-1", "strandline transactions describe --json")
)
@click.argument("names", nargs=-1, metavar="[TRANSACTIONAL-ID]...")
@access_options
@json_option
def describe(names: tuple[str, ...], access: Access, as_json: bool) -> int:
    """Show transactional ids: producer, state, and the partitions of an open transaction.

    Without an id, all of them. Exit code 1 if a named one does not exist.
    """
    from strandline.cli.access.connection import connect_admin
    from strandline.errors import KafkaError

    with connect_admin(access) as admin:
        chosen = names or [listing.transactional_id for listing in admin.list_transactions()]
        answers = sorted(admin.describe_transactions(chosen).items())
    now_ms = _now_ms()
    found = [answer for _, answer in answers if not isinstance(answer, KafkaError)]
    if as_json:
        print_json([_details(each, now_ms) for each in found])
    else:
        print_table(
            DESCRIBE_COLUMNS, [_row(each, now_ms) for each in found], empty="" if names else "no transactional ids"
        )
    errors = {name: answer for name, answer in answers if isinstance(answer, KafkaError)}
    # One that was not named and has expired since it was listed is not a failure.
    return _refuse(
        _refusal(name, error)
        for name, error in errors.items()
        if names or error.code.name != "TRANSACTIONAL_ID_NOT_FOUND"
    )


def _details(described: DescribedTransaction, now_ms: int) -> dict[str, object]:
    partitions = [{"topic": topic, "partition": partition} for topic, partition in described.partitions]
    return described._asdict() | {"partitions": partitions, "age_ms": _age_ms(described, now_ms)}


def _row(described: DescribedTransaction, now_ms: int) -> tuple[object, ...]:
    age_ms = _age_ms(described, now_ms)
    return (
        described.transactional_id,
        described.state,
        described.coordinator_id,
        described.producer_id,
        described.producer_epoch,
        f"{described.timeout_ms} ms",
        None if age_ms is None else f"{age_ms} ms",
        [f"{topic}-{partition}" for topic, partition in described.partitions] or None,
    )


def _age_ms(described: DescribedTransaction, now_ms: int) -> int | None:
    return None if described.start_ms is None else max(0, now_ms - described.start_ms)


@transactions.command(
    "describe-producers",
    epilog=example(
        "strandline transactions describe-producers hello-0",
        "strandline transactions describe-producers hello-0 --broker-id 2",
    ),
)
@click.argument("partitions", nargs=-1, required=True, metavar="TOPIC-PARTITION...")
@access_options
@click.option(
    "--broker-id", type=int, metavar="ID", help="What the replica on this broker remembers.  [default: the leader]"
)
@json_option
def describe_producers(partitions: tuple[str, ...], access: Access, broker_id: int | None, as_json: bool) -> int:
    """Show the producers that partitions remember, and since which offset they have a transaction open."""
    chosen = [topic_partition(text) for text in partitions]
    from strandline.cli.access.connection import connect_admin
    from strandline.errors import KafkaError

    with connect_admin(access) as admin:
        answers = sorted(admin.describe_producers(chosen, node_id=broker_id).items())
    rows = [(key, producer) for key, answer in answers if not isinstance(answer, KafkaError) for producer in answer]
    if as_json:
        print_json([_producer_details(key, producer) for key, producer in rows])
    else:
        table = [(*key, *(_known(number) for number in _numbers(producer))) for key, producer in rows]
        print_table(PRODUCER_COLUMNS, table, empty="no producers")
    return _refuse(
        f"{topic}-{partition}: {explain(answer)}"
        for (topic, partition), answer in answers
        if isinstance(answer, KafkaError)
    )


def _numbers(producer: ActiveProducer) -> tuple[int, ...]:
    """In the order of the columns."""
    return (
        producer.producer_id,
        producer.producer_epoch,
        producer.coordinator_epoch,
        producer.last_sequence,
        producer.last_timestamp,
        producer.current_txn_start_offset,
    )


def _producer_details(key: TopicPartition, producer: ActiveProducer) -> dict[str, object]:
    known = {name: _known(number) for name, number in producer._asdict().items()}
    return {"topic": key[0], "partition": key[1], **known}


def _known(number: int) -> int | None:
    return None if number < 0 else number


class FindHangingOptions(TypedDict):
    """The options of `transactions find-hanging`."""

    topics: tuple[str, ...]
    broker_id: int | None
    max_transaction_timeout: int
    as_json: bool


@transactions.command(
    "find-hanging",
    epilog=example("strandline transactions find-hanging", "strandline transactions find-hanging --topic hello --json"),
)
@access_options
@click.option("--topic", "-t", "topics", multiple=True, help="Only in this topic.  [default: all, internal ones too]")
@click.option("--broker-id", type=int, metavar="ID", help="Only in replicas on this broker, as it remembers them.")
@click.option(
    "--max-transaction-timeout",
    type=click.IntRange(0),
    default=15,
    show_default=True,
    metavar="MINUTES",
    help="Only those without a record for longer than that: transaction.max.timeout.ms of the brokers.",
)
@json_option
def find_hanging(access: Access, **options: Unpack[FindHangingOptions]) -> None:
    """Find transactions that are open at a partition and that no coordinator will end.

    They hold back consumers with isolation.level=read_committed, and compaction; `abort` ends them.
    """
    from strandline.cli.access.connection import connect_admin
    from strandline.cli.transactions import transaction_admin

    now_ms, broker_id = _now_ms(), options["broker_id"]
    with connect_admin(access) as admin:
        partitions = transaction_admin.partitions_of(admin, options["topics"], broker_id)
        found = transaction_admin.find_hanging(
            admin, partitions, broker_id, silent_for_ms=options["max_transaction_timeout"] * 60_000, now_ms=now_ms
        )
    if options["as_json"]:
        print_json([_producer_details(*each) | {"silent_ms": now_ms - each.producer.last_timestamp} for each in found])
        return
    print_table(HANGING_COLUMNS, [_hanging_row(each, now_ms) for each in found], empty="no transaction hangs")
    if found:
        (topic, partition), producer = found[0]
        where = f"{shown(topic, err=True)}-{partition} --start-offset {producer.current_txn_start_offset}"
        note(f"`strandline transactions abort {where}` ends the first")


def _hanging_row(each: OpenTransaction, now_ms: int) -> tuple[object, ...]:
    producer = each.producer
    return (
        *each.partition,
        producer.producer_id,
        producer.producer_epoch,
        _known(producer.coordinator_epoch),
        producer.current_txn_start_offset,
        (now_ms - producer.last_timestamp) // 60_000,
    )


class AbortOptions(TypedDict):
    """The options of `transactions abort`: what identifies the transaction."""

    start_offset: int | None
    producer_id: int | None
    producer_epoch: int | None
    coordinator_epoch: int | None
    as_json: bool


@transactions.command(
    epilog=example(
        "strandline transactions abort hello-0 --start-offset 42",
        "strandline transactions abort hello-0 --producer-id 1000 --producer-epoch 3 --coordinator-epoch 5",
    )
)
@click.argument("partition", metavar="TOPIC-PARTITION")
@access_options
@click.option("--start-offset", type=click.IntRange(0), metavar="N", help="The transaction that began there.")
@click.option("--producer-id", type=int, metavar="ID", help="Without --start-offset: its producer id,")
@click.option("--producer-epoch", type=int, metavar="N", help="the epoch of that producer,")
@click.option(
    "--coordinator-epoch", type=int, metavar="N", help="and the last coordinator epoch, -1 if there was none."
)
@json_option
def abort(partition: str, access: Access, **options: Unpack[AbortOptions]) -> None:
    """End a transaction that hangs, at one partition: its records there count as aborted.

    What a coordinator will still end is refused, because an abort behind its back may tear it: `force-terminate` ends that. Named
    by its producer, a transaction is aborted in any case.
    """
    key = topic_partition(partition)
    _check_identity(options)
    from strandline.cli.access.connection import connect_admin

    with connect_admin(access) as admin:
        spec = _spec(admin, key, options)
        admin.abort_transaction(spec)
    if options["as_json"]:
        topic, index = spec.partition
        print_json({"topic": topic, "partition": index, "producer_id": spec.producer_id, "aborted": True})
    else:
        echo(f"Aborted the transaction of producer {spec.producer_id} at {shown(partition)}.")


def _check_identity(options: AbortOptions) -> None:
    by_producer = (options["producer_id"], options["producer_epoch"], options["coordinator_epoch"])
    if options["start_offset"] is None and None in by_producer:
        raise click.UsageError(
            "name the transaction by --start-offset, or by --producer-id, --producer-epoch and --coordinator-epoch"
        )
    if options["start_offset"] is not None and by_producer != (None, None, None):
        raise click.UsageError("give --start-offset or the producer's numbers, not both")


def _spec(admin: Admin, key: TopicPartition, options: AbortOptions) -> AbortTransactionSpec:
    from strandline.cli.transactions import transaction_admin

    producer_id, producer_epoch, epoch = (
        options["producer_id"],
        options["producer_epoch"],
        options["coordinator_epoch"],
    )
    if producer_id is not None and producer_epoch is not None and epoch is not None:
        return transaction_admin.abort_spec(key, producer_id, producer_epoch, epoch)
    assert options["start_offset"] is not None
    found = transaction_admin.find_open(admin, key, options["start_offset"])
    if found is None:
        where = f"{shown(key[0], err=True)}-{key[1]}"
        raise CommandRefused(
            f"no transaction is open at {where} since offset {options['start_offset']}; "
            f"`strandline transactions describe-producers {where}` shows those that are"
        )
    ending = transaction_admin.transaction_that_ends(admin, found)
    if ending is not None:
        name = shown(ending.transactional_id, err=True)
        raise CommandRefused(
            f"this is part of the transaction of '{name}', which is {ending.state} and will be ended by its coordinator; "
            f"`strandline transactions force-terminate {name}` aborts all of it"
        )
    return found.spec


@transactions.command("force-terminate", epilog=example("strandline transactions force-terminate payments-1"))
@click.argument("names", nargs=-1, required=True, metavar="TRANSACTIONAL-ID...")
@access_options
@json_option
def force_terminate(names: tuple[str, ...], access: Access, as_json: bool) -> int:
    """Abort the open transactions of transactional ids, and fence their producers."""
    from strandline.cli.access.connection import connect_admin
    from strandline.errors import KafkaError

    with connect_admin(access) as admin:
        answers = admin.fence_producers(names)
    errors = {name: answer for name, answer in answers.items() if isinstance(answer, KafkaError)}
    if as_json:
        print_json(
            [
                {
                    "transactional_id": name,
                    "terminated": name not in errors,
                    "error": errors[name].code.name if name in errors else None,
                }
                for name in answers
            ]
        )
    else:
        for name in answers:
            if name not in errors:
                echo(f"Terminated what transactional id {shown(name)} had open.")
    return _refuse(_refusal(name, error) for name, error in errors.items())


def _refusal(name: str, error: KafkaError) -> str:
    """Why the coordinator refused, and what to do first."""
    if error.code.name == "TRANSACTIONAL_ID_NOT_FOUND":
        known = "`strandline transactions list` lists the existing ones"
        return f"there is no transactional id '{shown(name, err=True)}'; {known}"
    return explain(error)


def _refuse(messages: Iterable[str]) -> int:
    """Print each message on its own line; returns the exit code."""
    lines = list(messages)
    for line in lines:
        CommandRefused(line).show()
    return 1 if lines else 0


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
