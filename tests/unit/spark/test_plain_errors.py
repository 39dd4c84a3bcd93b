"""Errors as a user of Spark sees them: with a traceback only if it helps."""

# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

import os

import pytest

from strandline.client.errors import NoBrokerReachable
from strandline.errors import ErrorCode, KafkaError
from strandline.spark.errors import OptionError, SparkError
from strandline.spark.plain_errors import HIDE_TRACEBACK, RUNTIME, WORKER, plain_errors


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(RUNTIME, WORKER)
    monkeypatch.setenv(HIDE_TRACEBACK, "")

    return os.environ


@pytest.mark.parametrize(
    "error", [OptionError("option"), KafkaError(ErrorCode.CORRUPT_MESSAGE)], ids=["option", "kafka"]
)
def test_a_sentence_that_says_everything_comes_alone(environment, error: KafkaError | OptionError) -> None:
    with pytest.raises(type(error)), plain_errors():
        raise error
    assert environment[HIDE_TRACEBACK] == "1"


def test_a_bug_keeps_its_traceback(environment) -> None:
    with pytest.raises(AssertionError), plain_errors():
        raise AssertionError
    assert environment[HIDE_TRACEBACK] == ""


def test_only_workers_of_spark_are_changed(environment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(RUNTIME)
    with pytest.raises(OptionError), plain_errors():
        raise OptionError("option")
    assert environment[HIDE_TRACEBACK] == ""


def test_a_cluster_out_of_reach_is_told_by_its_option() -> None:
    with (
        pytest.raises(SparkError, match=r"option 'kafka.bootstrap.servers': no broker reachable at a:1"),
        plain_errors(),
    ):
        raise NoBrokerReachable(["a:1"], "refused")
