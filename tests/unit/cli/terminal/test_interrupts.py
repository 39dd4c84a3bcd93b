# mypy: allow-incomplete-defs, allow-untyped-defs, disable-error-code="unreachable"

from __future__ import annotations

import signal

import pytest

from strandline.cli.terminal.interrupts import ctrl_c


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_asks_and_the_second_interrupts(number):
    before = signal.getsignal(number)
    with ctrl_c() as asked:
        assert not asked.requested
        signal.raise_signal(number)
        assert asked.requested
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(number)
    assert signal.getsignal(number) is before
