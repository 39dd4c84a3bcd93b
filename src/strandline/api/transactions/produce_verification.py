"""Before a Produce opens transactions: what the coordinators have to be asked, and what came of it (TXN-V1 to TXN-V8, TXN-P1).

Always true: a batch of a transaction that is open here in its very epoch needs no question, nor does one that is in the log; any
other is appended only with the guard that was noted before its coordinator was asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import NamedTuple

from strandline.api.context import RequestContext
from strandline.errors import ErrorCode, KafkaError
from strandline.ids import TopicPartition
from strandline.log.log import Log
from strandline.log.verification_guards import NOT_REQUIRED, VerificationGuard
from strandline.records.header import HEADER, RECORDS_AT, BatchHeader
from strandline.replica.partition import Partition
from strandline.transactions.metadata import ProducerIdAndEpoch
from strandline.transactions.verification import PRODUCE_ADDS_PARTITIONS, produce_code
from strandline.wire.produce import ProduceRequest

Place = tuple[int, int]
"""Of a batch in the request: of its topic, and of its partition in that."""
_WRONG_PRODUCER = frozenset(
    {
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.PRODUCER_FENCED,
    }
)
"""None of its batches will be taken, so its question need not be remembered: anybody may claim any producer id."""
FindPartition = Callable[[str | bytes, int], Partition | None]


class _Unverified(NamedTuple):
    place: Place
    partition: TopicPartition
    log: Log


class ProduceVerification:
    """The transactional batches of one Produce."""

    def __init__(self, ctx: RequestContext, transactional_id: str) -> None:
        self._ctx = ctx
        self._transactional_id = transactional_id
        self._producer: ProducerIdAndEpoch | None = None
        self._guards: dict[Place, VerificationGuard] = {}
        self._errors: dict[Place, KafkaError] = {}
        self._unverified: list[_Unverified] = []

    def note(self, request: ProduceRequest, find: FindPartition) -> bool:
        """Note what has to be asked; False if that is nothing. KafkaError: the whole request is refused."""
        for topic_at, (topic, partitions) in enumerate(request.topics):
            for at, (index, records) in enumerate(partitions):
                header = _transactional_header(records)
                partition = None if header is None else find(topic, index)
                if header is None:
                    continue
                self._check_producer(header)
                if partition is None or partition.is_internal:
                    continue  # it is refused, and must not become part of the transaction
                if partition.leads:
                    self._note((topic_at, at), partition, header)
                else:
                    # It may be led here by the time the others are verified, but was not asked about.
                    reason = f"this node does not lead {partition}"
                    self._errors[topic_at, at] = KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, reason)
        return bool(self._unverified)

    def _check_producer(self, header: BatchHeader) -> None:
        """One request is of one producer (TXN-P1)."""
        producer = ProducerIdAndEpoch(header.producer_id, header.producer_epoch)
        if self._producer is None:
            self._producer = producer
        elif self._producer != producer:
            raise KafkaError(
                ErrorCode.INVALID_PRODUCER_ID_MAPPING,
                "transactional batches of several producer ids or epochs came in one request",
            )

    def _note(self, place: Place, partition: Partition, header: BatchHeader) -> None:
        log = partition.log
        if log.producers.is_in_transaction(header.producer_id, header.producer_epoch):
            return
        try:
            log.producers.check_epoch(header.producer_id, header.producer_epoch)
        except KafkaError as error:
            self._errors[place] = error
            return
        if log.has_batch(header):
            return  # it is answered, not written; its sequence, of a transaction that has ended, is none that is missing (TXN-V5)
        if self._verify_only and not self._ctx.node.config.transaction_partition_verification_enable:
            self._guards[place] = NOT_REQUIRED
            return
        self._guards[place] = log.guards.note(
            header.producer_id,
            header.producer_epoch,
            header.base_sequence,
            bumps_epoch=not self._verify_only,
            now_ms=self._ctx.now_ms,
            transactional_id=self._transactional_id,
        )
        self._unverified.append(_Unverified(place, (partition.topic, partition.index), log))

    @property
    def _verify_only(self) -> bool:
        return self._ctx.version < PRODUCE_ADDS_PARTITIONS

    async def ask(self) -> None:
        """Have the coordinator say yes or no to each. While the transaction before is still ending it is asked again for a moment:
        the producer need not hear of that (TXN-T27)."""
        assert self._producer is not None, "there is something to ask"
        config, loop = self._ctx.node.config, asyncio.get_running_loop()
        deadline = loop.time() + config.add_partitions_to_txn_retry_backoff_max_ms / 1000
        left = self._unverified
        while left:
            codes = await self._ctx.node.transactions.verify(
                self._transactional_id,
                self._producer,
                frozenset(one.partition for one in left),
                verify_only=self._verify_only,
            )
            is_over = self._verify_only or loop.time() >= deadline
            again = []
            for one in left:
                code = codes[one.partition]
                if code is ErrorCode.CONCURRENT_TRANSACTIONS and not is_over:
                    again.append(one)
                elif code:
                    if code in _WRONG_PRODUCER:
                        one.log.guards.remove(self._guards[one.place])
                    self._refuse(one.place, produce_code(code, self._ctx.version))
            left = again
            if left:
                await asyncio.sleep(config.add_partitions_to_txn_retry_backoff_ms / 1000)

    def _refuse(self, place: Place, code: ErrorCode) -> None:
        # Not by its name, which may be long: each of thousands of partitions would repeat it.
        self._errors[place] = KafkaError(
            code, f"the coordinator of the transaction does not confirm the partition: {code.name}"
        )

    def guard(self, place: Place) -> VerificationGuard | None:
        """With which the batch may be appended; KafkaError if it may not be."""
        if error := self._errors.get(place):
            raise error
        return self._guards.get(place)


def _transactional_header(records: memoryview | None) -> BatchHeader | None:
    """Of a transactional batch; what is no batch at all is refused where it is checked."""
    if records is None or len(records) < RECORDS_AT:
        return None
    header = BatchHeader._make(HEADER.unpack_from(records))
    return header if header.is_transactional and not header.is_control else None
