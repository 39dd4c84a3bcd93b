# mypy: allow-incomplete-defs, allow-untyped-defs, disable-error-code="var-annotated"

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from strandline.cli.local.processes import age_s, identify, stop


@pytest.fixture
def child():
    process = subprocess.Popen([sys.executable, "-c", "print(flush=True); import time; time.sleep(60)"], stdout=-1)
    assert process.stdout is not None
    process.stdout.readline()
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def test_a_process_is_known_by_more_than_its_number(child):
    known = identify(child.pid)
    assert known.alive
    assert not known._replace(started_ticks=known.started_ticks - 1).alive
    assert not known._replace(boot_id="another boot").alive


def test_a_reused_number_gets_no_signal(child):
    identify(child.pid)._replace(started_ticks=1).send(signal.SIGKILL)
    assert child.poll() is None


def test_one_that_ended_and_waits_for_its_parent_is_not_alive(child):
    known = identify(child.pid)
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert not known.alive


def test_stop_asks_first(child):
    killed = []
    stop([identify(child.pid)], 10, killed.append, lambda: None)
    assert child.wait() == -signal.SIGTERM
    assert killed == []


def test_stop_kills_what_does_not_end():
    code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        killed = []
        known = identify(process.pid)
        stop([known], 0.05, killed.append, lambda: None)
        assert process.wait() == -signal.SIGKILL
        assert killed == [known]


def test_the_age_of_this_process_includes_its_start():
    assert 0 < age_s() < 3600
