"""`kafka-transactions`: transactions with Kafka's flags and Kafka's output, byte for byte.

Rows come in Kafka's tool in the order of a hash table; here they are sorted.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypedDict, Unpack

import click

from strandline.cli.access.options import Access, kafka_access_options
from strandline.cli.kafka_tools.kafka_flags import KafkaCommand
from strandline.cli.kafka_tools.kafka_tables import table_lines
from strandline.cli.terminal.escaping import echo
from strandline.cli.terminal.output import example

if TYPE_CHECKING:
    from strandline.cli.transactions.transaction_admin import OpenTransaction
    from strandline.client.blocking import Admin
    from strandline.client.flow.transaction_descriptions import (
        AbortTransactionSpec,
        ActiveProducer,
        DescribedTransaction,
        TransactionListing,
    )
    from strandline.errors import KafkaError

SERVER = "--bootstrap-server 127.0.0.1:9092"
LIST_HEADINGS = ("TransactionalId", "Coordinator", "ProducerId", "TransactionState")
DESCRIBE_HEADINGS = (
    "CoordinatorId",
    "TransactionalId",
    "ProducerId",
    "ProducerEpoch",
    "TransactionState",
    "TransactionTimeoutMs",
    "CurrentTransactionStartTimeMs",
    "TransactionDurationMs",
    "TopicPartitions",
)
PRODUCER_HEADINGS = (
    "ProducerId",
    "ProducerEpoch",
    "LatestCoordinatorEpoch",
    "LastSequence",
    "LastTimestamp",
    "CurrentTransactionStartOffset",
)
HANGING_HEADINGS = (
    "Topic",
    "Partition",
    "ProducerId",
    "ProducerEpoch",
    "CoordinatorEpoch",
    "StartOffset",
    "LastTimestamp",
    "Duration(min)",
)
MINUTE_MS = 60_000
DESCRIBE_REASONS = {
    "TRANSACTIONAL_ID_NOT_FOUND": "because the ID could not be found",
    "TRANSACTIONAL_ID_AUTHORIZATION_FAILED": "due to authorization failure",
}
FENCE_REASONS = {
    "TRANSACTIONAL_ID_AUTHORIZATION_FAILED": "due to transactional ID authorization failure",
    "CLUSTER_AUTHORIZATION_FAILED": "due to cluster authorization failure",
}
"""Of Kafka's client, by error code."""


class _ToolError(click.ClickException):
    """A failure in the words of Kafka's tool: exit code 1, without a word of ours."""

    def show(self, file: object = None) -> None:
        echo(self.message, err=True)


@click.group(epilog=example(f"strandline kafka-transactions {SERVER} list"))
@kafka_access_options()
@click.pass_context
def kafka_transactions(context: click.Context, access: Access) -> None:
    """List and describe transactions, and end those that hang, with Kafka's flags and output."""
    context.obj = access


def _command(name: str, flags: str = "") -> Callable[[Callable[..., object]], click.Command]:
    epilog = example(f"strandline kafka-transactions {SERVER} {name}{flags}")
    return kafka_transactions.command(name, cls=KafkaCommand, epilog=epilog)


@contextlib.contextmanager
def _failing(what: str, why: Callable[[KafkaError], str]) -> Iterator[None]:
    """What the cluster refuses is reported as Kafka's tool does."""
    from strandline.errors import KafkaError

    try:
        yield
    except KafkaError as error:
        raise _ToolError(f"{what}: {why(error)}. Enable debug logging for additional detail.") from None


def _print(lines: list[str]) -> None:
    for line in lines:
        echo(line)


@_command("list", " --duration-filter 60000")
@click.option(
    "--duration-filter", type=int, metavar="MS", help="Only those that run for longer than that; all if it is below 0."
)
@click.option("--transactional-id-pattern", metavar="REGEX", help="Only transactional ids that match, in RE2's syntax.")
@click.pass_obj
def list_(access: Access, duration_filter: int | None, transactional_id_pattern: str | None) -> None:
    """List the transactional ids."""
    from strandline.cli.access.connection import connect_admin

    longer_than_ms = None if duration_filter is None or duration_filter < 0 else duration_filter
    with (
        connect_admin(access) as admin,
        _failing("Failed to list transactions", lambda error: f"{error.message} with an unexpected exception"),
    ):
        found = admin.list_transactions(longer_than_ms=longer_than_ms, pattern=transactional_id_pattern)
    _print(listing_lines(found))


def listing_lines(found: list[TransactionListing]) -> list[str]:
    rows = [(t.transactional_id, str(t.coordinator_id), str(t.producer_id), t.state) for t in found]
    return table_lines(LIST_HEADINGS, rows)


@_command("describe", " --transactional-id payments-1")
@click.option("--transactional-id", required=True, help="The transactional id.")
@click.pass_obj
def describe(access: Access, transactional_id: str) -> None:
    """Show a transactional id, and its transaction if one is open."""
    from strandline.cli.access.connection import connect_admin, value_of

    def why(error: KafkaError) -> str:
        reason = DESCRIBE_REASONS.get(error.code.name, "due to unexpected error")
        return f"DescribeTransactions request for transactionalId `{transactional_id}` failed {reason}"

    failure = f"Failed to describe transaction state of transactional-id `{transactional_id}`"
    with connect_admin(access) as admin, _failing(failure, why):
        found = value_of(admin.describe_transactions([transactional_id])[transactional_id])
    _print(description_lines(found, _now_ms()))


def description_lines(found: DescribedTransaction, now_ms: int) -> list[str]:
    row = (
        str(found.coordinator_id),
        found.transactional_id,
        str(found.producer_id),
        str(found.producer_epoch),
        found.state,
        str(found.timeout_ms),
        "None" if found.start_ms is None else str(found.start_ms),
        "None" if found.start_ms is None else str(now_ms - found.start_ms),
        ",".join(f"{topic}-{partition}" for topic, partition in found.partitions),
    )
    return table_lines(DESCRIBE_HEADINGS, [row])


@_command("describe-producers", " --topic hello --partition 0")
@click.option("--broker-id", type=int, help="What the replica on this broker remembers; the leader's if not given.")
@click.option("--topic", required=True, help="The topic.")
@click.option("--partition", type=int, required=True, help="Its partition.")
@click.pass_obj
def describe_producers(access: Access, broker_id: int | None, topic: str, partition: int) -> None:
    """Show the producers that a partition remembers."""
    from strandline.cli.access.connection import connect_admin, value_of

    where = "leader" if broker_id is None else f"broker {broker_id}"
    failure = f"Failed to describe producers for partition {topic}-{partition} on {where}"
    with (
        connect_admin(access) as admin,
        _failing(failure, lambda error: _producers_reason(error, topic, partition, broker_id)),
    ):
        found = value_of(admin.describe_producers([(topic, partition)], node_id=broker_id)[topic, partition])
    _print(producer_lines(found))


def _producers_reason(error: KafkaError, topic: str, partition: int, broker_id: int | None) -> str:
    which = f"for partition {topic}-{partition}"
    if error.code.name == "NOT_LEADER_OR_FOLLOWER" and broker_id is not None:
        return f"Failed to describe active producers {which} on brokerId {broker_id}"
    if error.code.name == "TOPIC_AUTHORIZATION_FAILED":
        return f"Failed to describe active producers {which} due to authorization failure on topic `{topic}`"
    return f"Failed to describe active producers {which} due to unexpected error"


def producer_lines(found: list[ActiveProducer]) -> list[str]:
    rows = [
        (
            str(producer.producer_id),
            str(producer.producer_epoch),
            str(producer.coordinator_epoch),
            str(producer.last_sequence),
            str(producer.last_timestamp),
            "None" if producer.current_txn_start_offset < 0 else str(producer.current_txn_start_offset),
        )
        for producer in found
    ]
    return table_lines(PRODUCER_HEADINGS, rows)


class KafkaAbortOptions(TypedDict):
    """The options of `kafka-transactions abort` that identify the transaction."""

    start_offset: int | None
    producer_id: int | None
    producer_epoch: int | None
    coordinator_epoch: int | None


@_command("abort", " --topic hello --partition 0 --start-offset 42")
@click.option("--topic", required=True, help="The topic.")
@click.option("--partition", type=int, required=True, help="Its partition.")
@click.option("--start-offset", type=int, help="The offset at which the transaction began.")
@click.option("--producer-id", type=int, help="For brokers before 3.0, without --start-offset: the producer id,")
@click.option("--producer-epoch", type=int, help="its epoch,")
@click.option("--coordinator-epoch", type=int, help="and the last coordinator epoch.")
@click.pass_obj
def abort(access: Access, topic: str, partition: int, **options: Unpack[KafkaAbortOptions]) -> None:
    """Abort a transaction that hangs."""
    _check_identity(options)
    from strandline.cli.access.connection import connect_admin

    with connect_admin(access) as admin:
        spec = _spec(admin, topic, partition, options)
        name = spec_text(spec)
        with _failing(f"Failed to abort transaction {name}", lambda error: _abort_reason(error, spec)):
            admin.abort_transaction(spec)


def _check_identity(options: KafkaAbortOptions) -> None:
    if options["start_offset"] is not None:
        return
    if options["producer_id"] is None:
        raise _ToolError(
            "The transaction to abort must be identified either with --start-offset (for brokers on 3.0 or above) or with "
            "--producer-id, --producer-epoch, and --coordinator-epoch (for older brokers)"
        )
    if options["producer_epoch"] is None:
        raise _ToolError("Missing required argument --producer-epoch")
    if options["coordinator_epoch"] is None:
        raise _ToolError("Missing required argument --coordinator-epoch")


def _spec(admin: Admin, topic: str, partition: int, options: KafkaAbortOptions) -> AbortTransactionSpec:
    from strandline.cli.transactions import transaction_admin

    key, start_offset = (topic, partition), options["start_offset"]
    if start_offset is None:
        producer_id, epoch, coordinator_epoch = (
            options["producer_id"],
            options["producer_epoch"],
            options["coordinator_epoch"],
        )
        assert producer_id is not None
        assert epoch is not None
        assert coordinator_epoch is not None
        return transaction_admin.abort_spec(key, producer_id, epoch, coordinator_epoch)
    with _failing(
        f"Failed to validate producer state for partition {topic}-{partition}",
        lambda error: _producers_reason(error, topic, partition, None),
    ):
        found = transaction_admin.find_open(admin, key, start_offset)
    if found is None:
        raise _ToolError(
            f"Could not find any open transactions starting at offset {start_offset} on partition {topic}-{partition}"
        )
    return found.spec


def spec_text(spec: AbortTransactionSpec) -> str:
    topic, partition = spec.partition
    return (
        f"AbortTransactionSpec(topicPartition={topic}-{partition}, producerId={spec.producer_id}, "
        f"producerEpoch={spec.producer_epoch}, coordinatorEpoch={spec.coordinator_epoch})"
    )


def _abort_reason(error: KafkaError, spec: AbortTransactionSpec) -> str:
    reason = {
        "CLUSTER_AUTHORIZATION_FAILED": "due to cluster authorization error",
        "INVALID_PRODUCER_EPOCH": "due an invalid producer epoch",
        "TRANSACTION_COORDINATOR_FENCED": (
            f"since the provided coordinator epoch {spec.coordinator_epoch} has been fenced by the active coordinator"
        ),
    }.get(error.code.name, f"due to unexpected error: {error.message}")
    return f"WriteTxnMarkers request with {spec_text(spec)} failed {reason}"


class KafkaFindHangingOptions(TypedDict):
    """The options of `kafka-transactions find-hanging`."""

    broker_id: int | None
    max_transaction_timeout: int
    topic: str | None
    partition: int | None


@_command("find-hanging", " --broker-id 1")
@click.option("--broker-id", type=int, help="Search the replicas on this broker.")
@click.option(
    "--max-transaction-timeout",
    type=int,
    default=15,
    metavar="MINUTES",
    help="Only transactions without a record for longer than that.  [default: 15]",
)
@click.option("--topic", help="Search this topic only.")
@click.option("--partition", type=int, help="With --topic: search this partition only.")
@click.pass_obj
def find_hanging(access: Access, **options: Unpack[KafkaFindHangingOptions]) -> None:
    """Find transactions that hang."""
    broker_id, topic, partition = options["broker_id"], options["topic"], options["partition"]
    if topic is None and broker_id is None:
        raise _ToolError(
            "The `find-hanging` command requires either --topic or --broker-id to limit the scope of the search"
        )
    if topic is None and partition is not None:
        raise _ToolError("The --partition argument requires --topic to be provided")
    from strandline.cli.access.connection import connect_admin
    from strandline.cli.transactions import transaction_admin

    now_ms = _now_ms()
    with connect_admin(access) as admin:
        if topic is not None and partition is not None:
            searched = [(topic, partition)]
        else:
            searched = transaction_admin.partitions_of(admin, [] if topic is None else [topic], broker_id)
        found = transaction_admin.find_hanging(
            admin, searched, broker_id, silent_for_ms=options["max_transaction_timeout"] * MINUTE_MS, now_ms=now_ms
        )
    _print(hanging_lines(found, now_ms))


def hanging_lines(found: list[OpenTransaction], now_ms: int) -> list[str]:
    rows = [
        (
            transaction.partition[0],
            str(transaction.partition[1]),
            str(transaction.producer.producer_id),
            str(transaction.producer.producer_epoch),
            str(transaction.producer.coordinator_epoch),
            str(transaction.producer.current_txn_start_offset),
            str(transaction.producer.last_timestamp),
            str((now_ms - transaction.producer.last_timestamp) // MINUTE_MS),
        )
        for transaction in found
    ]
    return table_lines(HANGING_HEADINGS, rows)


@_command("forceTerminateTransaction", " --transactionalId payments-1")
@click.option("--transactionalId", "transactional_id", required=True, help="The transactional id.")
@click.pass_obj
def force_terminate(access: Access, transactional_id: str) -> None:
    """Abort what is open under a transactional id, and fence its producer."""
    from strandline.cli.access.connection import connect_admin

    def why(error: KafkaError) -> str:
        reason = FENCE_REASONS.get(error.code.name, "due to unexpected error")
        return f"InitProducerId request for transactionalId `{transactional_id}` failed {reason}"

    failure = f"Failed to force terminate transactionalId `{transactional_id}`"
    with connect_admin(access) as admin, _failing(failure, why):
        admin.force_terminate_transaction(transactional_id)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
