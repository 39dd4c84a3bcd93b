# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import asyncio
import contextlib
import errno
import math
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from strandline.ports import Disk, Pace, WorkLost
from strandline.runtime.disk import FileDisk
from strandline.runtime.niced import NicedProcesses
from strandline.runtime.niced_child import BURST_S, NICENESS, BytePacer


@pytest.fixture
def niced() -> Iterator[NicedProcesses]:
    niced = NicedProcesses()
    yield niced
    niced.close()


def who(disk: Disk, pace: Pace, argument: None) -> tuple[int, int]:
    return os.getpid(), os.nice(0)


def grow(disk: Disk, pace: Pace, path: str) -> None:
    """Until somebody ends it."""
    file = disk.open(path, create=True)
    while True:
        file.append(b"x")
        time.sleep(0.001)


def die(disk: Disk, pace: Pace, status: int) -> None:
    os._exit(status)


def is_alive(pid: int) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    return False


def kill_and_wait(pid: int) -> None:
    """A child of ours, with all its threads; its status is left for whoever started it."""
    os.kill(pid, signal.SIGKILL)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)


def wait_until_dead(pid: int) -> None:
    deadline = time.monotonic() + 30
    while is_alive(pid):
        assert time.monotonic() < deadline, "it lives on"
        time.sleep(0.01)


async def comes_true(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110  # another process makes it so
            await asyncio.sleep(0.01)


async def test_it_is_another_process_and_comes_last(niced: NicedProcesses) -> None:
    pid, niceness = await niced.run(who, None, math.inf)
    assert pid != os.getpid()
    assert niceness == NICENESS
    if sys.platform == "linux":
        assert psutil.Process(pid).ionice().ioclass == psutil.IOPRIO_CLASS_IDLE
    assert (await niced.run(who, None, math.inf))[0] == pid, "one process serves one work after the other"


async def test_one_that_ends_is_an_error_and_the_next_work_has_another(niced: NicedProcesses) -> None:
    first, _ = await niced.run(who, None, math.inf)
    with pytest.raises(WorkLost, match="ended with status 7"):
        await niced.run(die, 7, math.inf)
    second, _ = await niced.run(who, None, math.inf)
    kill_and_wait(second)
    third, _ = await niced.run(who, None, math.inf)
    assert len({first, second, third}) == 3


async def test_one_that_cannot_be_started_is_no_broken_disk(
    niced: NicedProcesses, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise BlockingIOError(errno.EAGAIN, "too many processes")

    with monkeypatch.context() as patch:
        patch.setattr(subprocess, "Popen", refuse)
        with pytest.raises(WorkLost, match="too many processes"):
            await niced.run(who, None, math.inf)
    await niced.run(who, None, math.inf)


async def test_one_that_is_idle_for_long_is_ended() -> None:
    niced = NicedProcesses(idle_s=0.01)
    pid, _ = await niced.run(who, None, math.inf)
    await comes_true(lambda: not is_alive(pid))
    assert (await niced.run(who, None, math.inf))[0] != pid
    niced.close()


async def test_closing_the_disk_ends_what_runs(tmp_path: Path) -> None:
    disk = FileDisk()
    path = tmp_path / "grows"
    work = asyncio.get_running_loop().create_task(disk.offload_niced(grow, str(path), math.inf))
    await comes_true(path.exists)
    disk.close()
    size = path.stat().st_size
    with pytest.raises(WorkLost):
        await work
    assert path.stat().st_size == size


PARENT = """
    import asyncio, math
    from strandline.runtime.disk import FileDisk
    from tests.unit.runtime.test_niced import grow, who

    async def main():
        disk = FileDisk()
        print((await disk.offload_niced(who, None, math.inf))[0], flush=True)
        await disk.offload_niced(grow, {path!r}, math.inf)

    asyncio.run(main())
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_it_dies_with_its_parent(tmp_path: Path, how: signal.Signals) -> None:
    path = tmp_path / "grows"
    parent = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(PARENT.format(path=str(path)))],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    deadline = time.monotonic() + 30
    while not path.exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    parent.send_signal(how)
    parent.communicate()
    wait_until_dead(child)
    size = path.stat().st_size
    time.sleep(0.05)
    assert path.stat().st_size == size


class HandClock:
    def __init__(self) -> None:
        self.now = 100.0
        self.slept: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


def test_a_throttle_keeps_the_rate_and_saves_up_only_a_moment() -> None:
    clock = HandClock()
    throttle = BytePacer(1000, lambda: clock.now, clock.sleep)
    throttle.pace(500)
    assert clock.slept == [pytest.approx(0.5)]
    clock.now += 10  # it computed, and used nothing
    throttle.pace(int(1000 * BURST_S))
    assert len(clock.slept) == 1
    throttle.pace(1000)
    assert clock.slept[1] == pytest.approx(1.0)


def test_without_a_limit_nothing_is_waited_for() -> None:
    clock = HandClock()
    BytePacer(math.inf, lambda: clock.now, clock.sleep).pace(1 << 40)
    assert clock.slept == []
