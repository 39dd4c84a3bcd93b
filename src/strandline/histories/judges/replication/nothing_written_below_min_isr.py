"""A3: with acks=all nothing is written while fewer than min.insync.replicas are in sync; the refusal says so."""

from __future__ import annotations

from collections import deque

from strandline.histories.exchanges import BrokerExchange
from strandline.histories.quorum_observation import Violation
from strandline.histories.replica_observation import Key, ReplicaJudge, ReplicaObservation, ReplicaStatus
from strandline.wire import produce
from strandline.wire.headers import read_request_header

ACKS_ALL = -1


class NothingWrittenBelowMinIsr(ReplicaJudge):
    def __init__(self) -> None:
        self._produced: dict[int, deque[bytes]] = {}
        """By broker, the requests. They are read only where a log grows that should not."""

    def answered(self, observed: ReplicaObservation, node_id: int, exchange: BrokerExchange) -> None:
        self._produced[node_id] = exchange.produced

    def changed(
        self, observed: ReplicaObservation, node_id: int, key: Key, before: ReplicaStatus | None, after: ReplicaStatus
    ) -> None:
        if before is None or not (before.leads and after.leads) or after.log_end_offset <= before.log_end_offset:
            return
        enough = observed.min_isr(node_id, key)
        if enough is None:
            return
        if len(before.isr) >= enough or len(after.isr) >= enough:
            return
        for batch in observed.batches(node_id, key, before.log_end_offset, after.log_end_offset):
            crc = batch.crc.to_bytes(4, "big")
            carriers = [request for request in self._produced.get(node_id, ()) if crc in request]
            if carriers and all(_acks(request) == ACKS_ALL for request in carriers):
                raise Violation(f"writes {batch} for acks=all with {after.isr} in sync, and {enough} are needed")


def _acks(request: bytes) -> int:
    header = read_request_header(request)
    return produce.parse(header.api_version, memoryview(request), header.body_position).acks
