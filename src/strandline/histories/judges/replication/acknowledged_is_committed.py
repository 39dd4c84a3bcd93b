"""A4, A5: acks=all is answered without an error only once the batch is committed: not at the append, not because
time is up."""

from __future__ import annotations

from strandline.errors import ErrorCode
from strandline.histories.exchanges import PRODUCE, BrokerExchange
from strandline.histories.quorum_observation import Violation
from strandline.histories.replica_observation import ReplicaJudge, ReplicaObservation

ACKS_ALL = -1


class AcknowledgedIsCommitted(ReplicaJudge):
    def answered(self, observed: ReplicaObservation, node_id: int, exchange: BrokerExchange) -> None:
        if exchange.api_key != PRODUCE or exchange.acks != ACKS_ALL:
            return
        for place, answer in exchange.answers().items():
            key = observed.key(place)
            committed = None if key is None else observed.committed.get(key)
            if answer.error_code != ErrorCode.NONE or committed is None or committed.era:
                continue
            if answer.offset >= committed.end_offset:
                raise Violation(
                    f"{committed.name}: acknowledges {answer.offset}, and {committed.end_offset} is committed"
                )
