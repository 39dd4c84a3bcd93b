"""TXN-TI7: a completion is written only when each partition of the decision has its marker below the high watermark,
behind everything that the producer has written there."""

from __future__ import annotations

from strandline.histories.quorum_observation import Violation
from strandline.histories.transactions.judge import TransactionJudge, TransactionRecord
from strandline.histories.transactions.observation import TransactionObservation
from strandline.transactions.states import TransactionState


class CompleteMeansDone(TransactionJudge):
    def appended(self, seen: TransactionObservation, node_id: int, record: TransactionRecord) -> None:
        decided, completed = seen.decisions.get(record.transactional_id), record.metadata
        if decided is None or completed is None or not completed.state.is_completed:
            return
        is_commit = completed.state is TransactionState.COMPLETE_COMMIT
        for name in sorted(decided.partitions):
            if not seen.is_there(name):
                continue
            last = seen.last_committed(name, decided.producer_id)
            if last is None or (last.epoch, last.is_commit) != (decided.epoch, is_commit):
                raise Violation(
                    f"{record.transactional_id} is {completed.state.label}, and {name[0]}-{name[1]} has last {last}, not a "
                    f"marker of {decided.producer}"
                )
