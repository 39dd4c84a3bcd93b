"""Which task of which query a commit message is from."""

# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

import pytest
from pyspark import TaskContext, cloudpickle

from strandline.spark.sink.commits import BATCH_ID, QUERY_ID, PartitionWritten, TaskAttempt, TaskCommit, this_attempt


@pytest.fixture
def context(monkeypatch: pytest.MonkeyPatch):
    """A task's context, as Spark's worker fills it in."""
    monkeypatch.setattr(TaskContext, "_taskContext", None)
    context = TaskContext._getOrCreate()
    context._stageId, context._partitionId, context._attemptNumber = 7, 3, 1
    context._localProperties = {}
    return context


def test_outside_of_spark_there_is_no_attempt() -> None:
    assert this_attempt() is None


def test_a_task_of_a_batch_query_has_neither_query_nor_batch(context) -> None:
    assert this_attempt() == TaskAttempt(7, 3, 1, None, None)


def test_a_task_of_a_stream_knows_its_query_and_batch(context) -> None:
    context._localProperties = {QUERY_ID: "q", BATCH_ID: "12"}
    assert this_attempt() == TaskAttempt(7, 3, 1, "q", 12)


def test_a_message_is_the_same_after_its_way_to_the_driver() -> None:
    message = TaskCommit(TaskAttempt(7, 3, 1, "q", 12), (PartitionWritten("t", 0, 10, 20, 9, 900),))
    assert cloudpickle.loads(cloudpickle.dumps(message)) == message
    assert message.records_count == 9
