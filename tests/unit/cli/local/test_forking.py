# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

import os
import signal
import sys

import pytest

from strandline.cli.local.forking import ForkedChild, fork


def ended(child: ForkedChild) -> int:
    while (code := child.poll()) is None:
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    return code


@pytest.fixture
def log(tmp_path):
    return tmp_path / "log"


def test_the_child_ends_with_what_it_returned_and_says_it_in_its_log(log):
    def run() -> int:
        print("on stdout, é")
        sys.stderr.write("on stderr\n")
        return 3

    assert ended(fork(run, str(log), "child")) == 3
    assert sorted(log.read_text("utf-8").splitlines()) == ["on stderr", "on stdout, é"]


def test_a_child_that_fails_never_returns_into_its_parents_code(log):
    def run() -> int:
        raise KeyboardInterrupt

    assert ended(fork(run, str(log), "child")) == 1
    assert "KeyboardInterrupt" in log.read_text()


def test_the_child_holds_none_of_its_parents_files_and_leads_its_own_session(log, tmp_path):
    def run() -> int:
        held = [os.readlink(f"/proc/self/fd/{fd}") for fd in (0, 1, 2)]
        try:
            os.fstat(open_here)
        except OSError:
            print(*held, os.getsid(0) == os.getpid(), open("/proc/self/comm").read().strip())  # noqa: SIM115
        return 0

    with open(tmp_path / "held", "w") as file:
        open_here = file.fileno()
        assert ended(fork(run, str(log), "strandline-7")) == 0
    assert log.read_text() == f"/dev/null {log} {log} True strandline-7\n"


def test_a_signal_ends_the_child_as_if_it_were_a_program_of_its_own(log):
    def run() -> int:
        signal.pause()
        return 0

    before = signal.signal(signal.SIGTERM, lambda *_: None)
    try:
        child = fork(run, str(log), "child")
        os.kill(child.pid, signal.SIGTERM)
        assert ended(child) == -signal.SIGTERM
    finally:
        signal.signal(signal.SIGTERM, before)


def test_the_parent_gets_its_signals_as_before(log):
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    ended(fork(lambda: 0, str(log), "child"))
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == before
