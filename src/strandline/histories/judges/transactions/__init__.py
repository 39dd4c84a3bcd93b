"""Properties of transactions: all or nothing, what may be read and when, who decides and who may
end.

Those of logs are judged after every turn of a node, those of what clients wrote and read at the end.
"""

from __future__ import annotations

from collections.abc import Mapping

from strandline.histories.batches import all_batches
from strandline.histories.judges.transactions import all_or_nothing, copied_once, reads_committed
from strandline.histories.judges.transactions.aborted_index import AbortedIndexMatchesLog
from strandline.histories.judges.transactions.aborted_lists import AbortedListMatchesLog
from strandline.histories.judges.transactions.answered_is_committed import AnsweredIsCommitted
from strandline.histories.judges.transactions.complete_means_done import CompleteMeansDone
from strandline.histories.judges.transactions.coordinator_epochs import CoordinatorEpochs
from strandline.histories.judges.transactions.coordinator_first import CoordinatorFirst
from strandline.histories.judges.transactions.epochs_rise import EpochsRise
from strandline.histories.judges.transactions.fenced_is_refused import FencedIsRefused
from strandline.histories.judges.transactions.fenced_is_silent import FencedIsSilent
from strandline.histories.judges.transactions.legal_states import LegalTransactionStates
from strandline.histories.judges.transactions.newest_is_not_fenced import NewestIsNotFenced
from strandline.histories.judges.transactions.offsets_follow_markers import OffsetsFollowMarkers
from strandline.histories.judges.transactions.offsets_match_copies import OffsetsMatchCopies
from strandline.histories.judges.transactions.one_decision import OneDecision
from strandline.histories.judges.transactions.one_transaction_coordinator import OneTransactionCoordinator
from strandline.histories.judges.transactions.own_abort_fences import OwnAbortFences
from strandline.histories.judges.transactions.producers_match_log import ProducersMatchLog
from strandline.histories.judges.transactions.registered_is_taken import RegisteredIsTaken
from strandline.histories.judges.transactions.stable_offset import StableOffset
from strandline.histories.outcome import Problem
from strandline.histories.replica_observation import ReplicaObservation
from strandline.histories.transactions import partition_log
from strandline.histories.transactions.history import TransactionHistory
from strandline.histories.transactions.judge import TransactionJudge
from strandline.histories.transactions.partition_log import PartitionTransactions
from strandline.histories.transactions.plan import COPIES, LEDGER
from strandline.ids import TopicPartition

TRANSACTIONS: tuple[type[TransactionJudge], ...] = (
    StableOffset,
    CoordinatorFirst,
    OneDecision,
    CompleteMeansDone,
    EpochsRise,
    FencedIsSilent,
    FencedIsRefused,
    NewestIsNotFenced,
    OwnAbortFences,
    OffsetsFollowMarkers,
    OffsetsMatchCopies,
    AnsweredIsCommitted,
    CoordinatorEpochs,
    OneTransactionCoordinator,
    LegalTransactionStates,
    AbortedListMatchesLog,
    AbortedIndexMatchesLog,
    ProducersMatchLog,
    RegisteredIsTaken,
)


def transaction_judges() -> list[TransactionJudge]:
    return [judge() for judge in TRANSACTIONS]


def judge(history: TransactionHistory, observed: ReplicaObservation, now: float) -> list[Problem]:
    """When everything was read once more, and all replicas are alike."""
    logs = _logs(observed)
    return [
        Problem(each.NAME, now, what)
        for each in (all_or_nothing, reads_committed, copied_once)
        for what in each.judge(history, logs)
    ]


def _logs(observed: ReplicaObservation) -> Mapping[TopicPartition, PartitionTransactions]:
    found: dict[TopicPartition, PartitionTransactions] = {}
    for name in (LEDGER, COPIES):
        topic = observed.image.topics.get(name)
        for index, state in enumerate(() if topic is None else topic.partitions):
            assert topic is not None
            log = observed.log(state.leader, (topic.topic_id, index))
            found[name, index] = partition_log.of([] if log is None else all_batches(log))
    return found
