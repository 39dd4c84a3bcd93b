"""The commit message of a task: where its records are, and for which run of which query they were written.

Always true: it is small and picklable, and names everything by value; the driver reads it in a process of its own.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

from pyspark import TaskContext
from pyspark.sql.datasource import WriterCommitMessage

QUERY_ID = "sql.streaming.queryId"
BATCH_ID = "streaming.sql.batchId"
"""Local properties that Spark sets on the tasks of a streaming query; `write` gets neither as an argument."""


class TaskAttempt(NamedTuple):
    """One attempt at one task. In a stream, a batch of the same query and number holds the same rows again."""

    stage_id: int
    task_index: int
    attempt_number: int
    query_id: str | None
    batch_id: int | None


class PartitionWritten(NamedTuple):
    topic: str
    partition: int
    first_offset: int
    next_offset: int
    """After the last record of ours; records of other producers may be in between."""
    records_count: int
    size_bytes: int


@dataclasses.dataclass(frozen=True, slots=True)
class TaskCommit(WriterCommitMessage):
    attempt: TaskAttempt | None
    """None: not written by a task of Spark."""
    written: tuple[PartitionWritten, ...]

    @property
    def records_count(self) -> int:
        return sum(each.records_count for each in self.written)


def this_attempt() -> TaskAttempt | None:
    context = TaskContext.get()
    if context is None:
        return None
    batch_id = context.getLocalProperty(BATCH_ID)
    return TaskAttempt(
        context.stageId(),
        context.partitionId(),
        context.attemptNumber(),
        context.getLocalProperty(QUERY_ID),
        None if batch_id is None else int(batch_id),
    )
