"""Anomalies in the history of clients, under the names of Jepsen's kafka workload; judged at the end."""

from __future__ import annotations

from strandline.histories.judges.clients.aborted_read import AbortedRead
from strandline.histories.judges.clients.dirty_read import DirtyRead
from strandline.histories.judges.clients.duplicate import Duplicate
from strandline.histories.judges.clients.early_ack import EarlyAck
from strandline.histories.judges.clients.falling_end import FallingEnd
from strandline.histories.judges.clients.inconsistent_offsets import InconsistentOffsets
from strandline.histories.judges.clients.int_nonmonotonic_poll import IntNonmonotonicPoll
from strandline.histories.judges.clients.int_nonmonotonic_send import IntNonmonotonicSend
from strandline.histories.judges.clients.int_poll_skip import IntPollSkip
from strandline.histories.judges.clients.invented import Invented
from strandline.histories.judges.clients.lost_write import LostWrite
from strandline.histories.judges.clients.nonmonotonic_poll import NonmonotonicPoll
from strandline.histories.judges.clients.nonmonotonic_send import NonmonotonicSend
from strandline.histories.judges.clients.poll_skip import PollSkip
from strandline.histories.judges.clients.repeatable_read import RepeatableRead
from strandline.histories.judges.clients.unseen import Unseen
from strandline.histories.outcome import Problem
from strandline.histories.record_history import ClientJudge, RecordHistory

CLIENTS: tuple[type[ClientJudge], ...] = (
    EarlyAck,
    DirtyRead,
    FallingEnd,
    InconsistentOffsets,
    LostWrite,
    RepeatableRead,
    Unseen,
    Duplicate,
    AbortedRead,
    Invented,
    IntPollSkip,
    IntNonmonotonicPoll,
    PollSkip,
    NonmonotonicPoll,
    IntNonmonotonicSend,
    NonmonotonicSend,
)


def judge(history: RecordHistory) -> list[Problem]:
    """Everything that must not have happened. To be called when all was read once more (`stored`)."""
    return [Problem(each.name, at, what) for each in CLIENTS for at, what in each.judge(history)]
