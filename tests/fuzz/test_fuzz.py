"""A share of the fuzz in every test run; `python -m tests.fuzz` shows the whole of it."""

# mypy: allow-incomplete-defs, allow-untyped-calls, allow-untyped-defs

from __future__ import annotations

import pathlib

import pytest

from strandline.errors import ErrorCode

from .controller_stage import ControllerStage, DynamicControllerStage
from .run import run
from .stage import Stage
from .transaction_stage import APIS, TransactionStage

APIS_SERVED_MIN = 8


@pytest.mark.timeout(120)
async def test_a_node_survives_broken_requests_and_batches(tmp_path: pathlib.Path) -> None:
    stage = Stage(tmp_path / "data")
    result = await run(stage, mutations=40, batches=60, seed=20)
    assert not shown(result)
    assert result.requests > 40 * len(stage.cases())
    assert result.batches_kept > 100
    for way in ("reply", "closed", "waits", "socket"):
        assert result.outcomes[way] > 0


@pytest.mark.timeout(120)
@pytest.mark.parametrize("kind", [ControllerStage, DynamicControllerStage])
async def test_an_active_controller_survives_broken_requests(tmp_path: pathlib.Path, kind) -> None:
    stage = kind(tmp_path / "data")
    result = await run(stage, mutations=15, batches=0, seed=20)
    assert not shown(result)
    assert result.requests > 15 * len(stage.cases())
    for way in ("reply", "closed", "socket"):
        assert result.outcomes[way] > 0
    served = {name for name, error in stage.answers if error is ErrorCode.NONE}
    assert len(served) > APIS_SERVED_MIN, "some requests of nearly every API get past all checks"


ALL_WRITTEN = {"Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort"}


@pytest.mark.timeout(120)
async def test_a_coordinator_of_transactions_survives_broken_requests(tmp_path: pathlib.Path) -> None:
    stage = TransactionStage(tmp_path / "data")
    result = await run(stage, mutations=40, batches=0, seed=20)
    assert not shown(result)
    assert result.requests > 40 * len(stage.cases())
    served = {name for name, error in stage.answers if error is ErrorCode.NONE}
    assert served >= {stage.apis[key].name for key in APIS}, "some requests of every API get past all checks"
    assert stage.states_written() == ALL_WRITTEN


def shown(result):
    return [(failure.api, failure.what, failure.data.hex()[:400], failure.error) for failure in result.failures[:3]]
