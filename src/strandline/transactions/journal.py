"""What a coordinator has its node keep of transactions, for those who look afterwards: what it decided by itself, and whom it
refused.

Always true: a transaction that its producer ends in time leaves nothing here; a producer that was fenced is noted once for each
epoch that fences it, however often it asks.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from strandline.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from strandline.transactions.markers import EndMarker
    from strandline.transactions.metadata import ProducerIdAndEpoch, TransactionMetadata
    from strandline.transactions.shard import TransactionShard

NAME_CHARACTERS_MAX = 200


def loaded(shard: TransactionShard) -> None:
    count = len(shard.transactions)
    decided = sum(metadata.state.is_prepared for metadata in shard.transactions.values())
    if count:
        shard.dependencies.note(
            "transactions loaded",
            shard.partition,
            f"coordinates {count} transactional id{'' if count == 1 else 's'}, {decided} of them to be ended",
            leader_epoch=shard.coordinator_epoch,
            transactional_ids=count,
            to_be_ended=decided,
        )


def aborted(shard: TransactionShard, transactional_id: str, decided: TransactionMetadata, why: str) -> None:
    """The coordinator's own decision is committed."""
    shard.dependencies.note(
        "transaction aborted",
        shard.partition,
        f"{_shown(transactional_id)}: {why}",
        transactional_id=_shown(transactional_id),
        producer_id=decided.producer_id,
        producer_epoch=decided.epoch,
        partitions=len(decided.partitions),
    )


@contextmanager
def noting_fenced(
    shard: TransactionShard, transactional_id: str, producer: ProducerIdAndEpoch | None
) -> Iterator[None]:
    try:
        yield
    except KafkaError as error:
        if error.code is ErrorCode.PRODUCER_FENCED and producer is not None:
            _fenced(shard, transactional_id, producer)
        raise


def _fenced(shard: TransactionShard, transactional_id: str, producer: ProducerIdAndEpoch) -> None:
    current = shard.transactions[transactional_id].producer
    if shard.fenced_by.get(transactional_id) == current:
        return
    shard.fenced_by[transactional_id] = current
    was, now = producer, current
    text = f"epoch {was.epoch} is refused, {now.epoch} is the current one"
    if was.producer_id != now.producer_id:
        text = f"producer id {was.producer_id} is refused, {now.producer_id} is the current one"
    shard.dependencies.note(
        "producer fenced",
        shard.partition,
        f"{_shown(transactional_id)}: {text}",
        transactional_id=_shown(transactional_id),
        producer_id=was.producer_id,
        producer_epoch=was.epoch,
        current_epoch=now.epoch,
    )


def refused(shard: TransactionShard, marker: EndMarker) -> None:
    """A leader does not take the end of this transaction from the coordinator that leads now (TXN-T33)."""
    shard.dependencies.note(
        "marker refused",
        shard.partition,
        f"{_shown(marker.transactional_id)}: a leader knows a newer epoch of producer {marker.producer.producer_id} or of its "
        "coordinator",
        transactional_id=_shown(marker.transactional_id),
        producer_id=marker.producer.producer_id,
        producer_epoch=marker.producer.epoch,
        leader_epoch=marker.coordinator_epoch,
    )


def _shown(transactional_id: str) -> str:
    """Thousands of events are kept, and each could have 32 KiB from whoever named it."""
    size = len(transactional_id)
    if size <= NAME_CHARACTERS_MAX:
        return transactional_id
    return f"{transactional_id[:NAME_CHARACTERS_MAX]}… ({size} characters)"
