"""E2: an OffsetFetch is answered with committed offsets only: every later coordinator has them too."""

from __future__ import annotations

from strandline.histories.exchanges import OFFSET_FETCH, CoordinatorExchange
from strandline.histories.groups.observation import GroupJudge, GroupObservation, committed_of
from strandline.histories.judges.groups.acknowledged_is_logged import committed_in
from strandline.histories.quorum_observation import Violation

NOTHING = -1


class AnswersCommitted(GroupJudge):
    def answered(self, observed: GroupObservation, exchange: CoordinatorExchange) -> None:
        log_key, broker_id = observed.offsets_key, exchange.broker_id
        if exchange.api_key != OFFSET_FETCH or log_key is None:
            return
        replica = observed.replicas.replicas.get((broker_id, log_key))
        if replica is None or not replica.leads or replica.high_watermark >= replica.log_end_offset:
            return
        answer = committed_of(exchange, observed.group_id)
        if answer is None or answer.error_code:
            return
        answered = {
            (key, found.committed_offset) for key, found in observed.keys_of(answer.topics) if not found.error_code
        }
        end = replica.high_watermark
        doubtful = answered & committed_in(observed, broker_id, end, replica.log_end_offset)
        doubtful -= {(key, NOTHING) for key, _ in answered}
        if doubtful:
            doubtful -= committed_in(observed, broker_id, 0, end)
        for key, offset in sorted(doubtful):
            raise Violation(f"answers {offset} for {observed.name(key)}, which is in its log from {end} on only")
