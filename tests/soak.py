"""How often a test repeats itself: a few times in `make test`, many times in `make soak` (STRANDLINE_SOAK=1)."""

from __future__ import annotations

import os

import pytest

SOAK = bool(os.environ.get("STRANDLINE_SOAK"))

soak_only = pytest.mark.soak
"""For a test that takes long and adds to what its neighbours show: `make test` leaves it to `make soak`."""


def times(in_test: int, in_soak: int) -> int:
    return in_soak if SOAK else in_test
