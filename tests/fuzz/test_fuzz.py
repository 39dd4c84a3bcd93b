"""A share of the fuzz in every test run; `python -m tests.fuzz` shows the whole of it."""

from __future__ import annotations

import pytest

from .run import cases, run


@pytest.mark.timeout(120)
async def test_a_node_survives_broken_requests_and_batches(tmp_path):
    result = await run(tmp_path / "data", mutations=40, batches=60, seed=20)
    shown = [(failure.api, failure.what, failure.data.hex()[:400], failure.error) for failure in result.failures[:3]]
    assert not shown
    assert result.requests > 40 * len(cases())
    assert result.batches_kept > 100
    for way in ("reply", "closed", "waits", "socket"):
        assert result.outcomes[way] > 0
