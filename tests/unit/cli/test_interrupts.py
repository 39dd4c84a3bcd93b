from __future__ import annotations

import signal

import pytest

from strandline.cli.interrupts import ctrl_c


def test_the_first_asks_and_the_second_interrupts():
    before = signal.getsignal(signal.SIGINT)
    with ctrl_c() as asked:
        assert not asked.to_end
        signal.raise_signal(signal.SIGINT)
        assert asked.to_end
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before
