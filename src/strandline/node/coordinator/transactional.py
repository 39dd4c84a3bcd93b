"""Whether records may be written in a producer's transaction, and what is noted before its coordinator is asked
(TXN-V2, TXN-V6, TXN-T42).

A client's batch is checked by the log. What a coordinator writes for a producer has no sequence, so here the epoch and
the guard are all that is checked.
"""

from __future__ import annotations

from collections.abc import Iterable

from strandline.errors import ErrorCode, KafkaError
from strandline.log.log import Log
from strandline.log.producers import NO_SEQUENCE
from strandline.log.verification_guards import VerificationGuard
from strandline.node.coordinator.batch import PendingBatch

Producer = tuple[int, int]
"""A producer id and epoch."""


def note_question(log: Log, producer: Producer, now_ms: int, *, bumps_epoch: bool) -> VerificationGuard | None:
    """The guard that the records will need; None if the transaction has records here already.
    KafkaError if the epoch is an old one.
    """
    producer_id, epoch = producer
    log.producers.check_epoch(producer_id, epoch)
    if log.producers.is_in_transaction(producer_id, epoch):
        return None
    return log.guards.note(producer_id, epoch, NO_SEQUENCE, bumps_epoch=bumps_epoch, now_ms=now_ms)


def why_not(
    log: Log, producer: Producer, guard: VerificationGuard | None, gathered: Iterable[PendingBatch]
) -> ErrorCode:
    """Why nothing may be written in this transaction: the epoch is an old one, also beside what is gathered, or the
    transaction may have ended since its coordinator was asked.
    """
    producer_id, epoch = producer
    try:
        log.producers.check_epoch(producer_id, epoch)
        if not log.producers.is_in_transaction(producer_id, epoch):
            log.guards.check(producer_id, guard, first_sequence=0)
            log.producers.check_open(producer_id)
    except KafkaError as error:
        return error.code
    for batch in gathered:
        if batch.producer is not None and batch.producer[0] == producer_id and batch.producer[1] > epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH
    return ErrorCode.NONE
