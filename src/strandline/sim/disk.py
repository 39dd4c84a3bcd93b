"""A disk in memory that outlives its node: a kill keeps all that was written, a power loss only what was synced.

`sync` and `offload` take virtual time, and wait for a worker of their directory; calls that block take none. `read` may answer
None, as for pages that are not in memory, until `read_blocking` has fetched them.

Always true: a sync covers what was written before its call, and nothing later; a sync inside offloaded work covers what was
written before the offload, and what the work itself wrote; offloaded work may be overtaken, and cut short by a kill or a power
loss, at each of its changes and syncs, though most of it runs at one moment; niced work always may be, and goes on while its node
is paused; after a failed sync the bytes it should have covered never become durable, unless they are written again.
"""

from __future__ import annotations

import asyncio
import contextvars
import errno
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TypeVar

from strandline.ports import A, Buffer, Clock, Disk, Pace, WorkLost
from strandline.sim.context import NODE, ProcessState, SimProcess
from strandline.sim.faults import Fault
from strandline.sim.file import SimFile
from strandline.sim.inode import PAGE_BYTES, Inode, SyncMark
from strandline.sim.loop import SimLoop
from strandline.sim.namespace import Directory, clean, error
from strandline.sim.storage import Storage
from strandline.sim.worker import Worker
from strandline.sim.workers import Workers

T = TypeVar("T")
Begin = Callable[[SimProcess, Callable[[], None]], Callable[[], None]]
"""Starts work once a worker is free for it; what is returned is to be called when it has ended."""
CHANGES = (Fault.READ_ONLY, Fault.WRITE_ERROR)
GROWTH = (Fault.FULL, *CHANGES)


class _Work:
    """Offloaded work: what its syncs may cover, and the thread it runs in, if others may run between its steps."""

    __slots__ = ("changes", "marks", "own_changes", "worker", "wrote")

    def __init__(self, marks: dict[Inode, SyncMark] | None, changes: int, worker: Worker[object] | None) -> None:
        self.worker = worker
        self.marks = marks
        """None for a process of its own: its syncs cover all that was written before them, as the system's do."""
        self.changes = changes
        self.wrote: dict[Inode, None] = {}
        self.own_changes = False


class SimDisk(Storage):
    def __init__(
        self,
        loop: SimLoop,
        clock: Clock,
        randomness: random.Random,
        *,
        number: int = 0,
        capacity_bytes: int = 1 << 40,
        sync_s: tuple[float, float] = (0.0002, 0.004),
        offload_s: tuple[float, float] = (0.00005, 0.002),
        cold_probability: float = 0.01,
        thread_probability: float = 0.125,
        overtake_probability: float = 0.3,
    ) -> None:
        super().__init__(
            loop, clock, randomness, number=number, capacity_bytes=capacity_bytes, cold_probability=cold_probability
        )
        self.sync_s = sync_s
        self.offload_s = offload_s
        self.thread_probability = thread_probability
        """How often offloaded work is one that others may overtake, and a kill cut short."""
        self.overtake_probability = overtake_probability
        """How often others run between two steps of such work."""
        self.niced_lost_probability = 0.0
        """How often a step of niced work is its process's last."""
        self._work: _Work | None = None
        self._workers: dict[Worker[object], None] = {}
        self._pool = Workers()
        loop.at_close.append(self._abandon_workers)

    # Disk

    def open(self, path: str, *, create: bool = False) -> SimFile:
        path = clean(path)
        if create:
            self._let_others_run()
        entry = self._names.find(path)
        if entry is None and create:
            self.faults.check(path, *GROWTH, Fault.NO_HANDLES)
            directory, name = self._names.place(path)
            entry = self._new_inode()
            self._change((directory, name, entry))
            self._record(b"crea", path)
        file = SimFile(self, path, self._names.file(path))
        self._files[file] = None
        return file

    def exists(self, path: str) -> bool:
        return self._names.find(path) is not None

    def is_dir(self, path: str) -> bool:
        return isinstance(self._names.find(path), Directory)

    def is_link(self, path: str) -> bool:
        return False

    def listdir(self, path: str) -> Sequence[str]:
        self.faults.check(clean(path), Fault.READ_ERROR, Fault.NO_HANDLES)
        return sorted(self._names.directory(path).names)

    def size(self, path: str) -> int:
        return len(self._names.file(path).data)

    def mkdir(self, path: str) -> None:
        path = clean(path)
        self._let_others_run()
        if not self.is_dir(path):
            self.faults.check(path, *GROWTH)
            self._note_own_change()
            self._names.make_directories(path)
            self._record(b"mkdr", path)

    def rename(self, old: str, new: str) -> None:
        old, new = clean(old), clean(new)
        self._let_others_run()
        self.faults.check(old, *CHANGES)
        self.faults.check(new, *CHANGES)
        self._note_own_change()
        self._names.rename(old, new)
        for file in self._files:
            if file.path == old or file.path.startswith(old + "/"):
                file.path = new + file.path[len(old) :]
        self._record(b"move", f"{old} {new}")

    def remove(self, path: str) -> None:
        path = clean(path)
        self._let_others_run()
        entry = self._names.find(path)
        if isinstance(entry, Directory):
            raise error(errno.EISDIR, path)
        if entry is not None:
            self.faults.check(path, *CHANGES)
            directory, name = self._names.place(path)
            self._change((directory, name, None))
            self._record(b"rmov", path)

    def remove_tree(self, path: str) -> None:
        path = clean(path)
        self._let_others_run()
        if self.exists(path):
            self.faults.check(path, *CHANGES)
            self._note_own_change()
            self._names.remove_tree(*self._names.place(path))
            self._record(b"rmtr", path)

    def read_file(self, path: str) -> bytes:
        path = clean(path)
        inode = self._names.file(path)
        self.faults.check(path, Fault.READ_ERROR, Fault.NO_HANDLES)
        return bytes(inode.data)

    def write_file(self, path: str, data: bytes) -> None:
        path = clean(path)
        self._let_others_run()
        directory, name = self._names.place(path)
        if isinstance(directory.names.get(name), Directory):
            raise error(errno.EISDIR, path)
        self.faults.check(path, *GROWTH, Fault.SYNC_ERROR, Fault.NO_HANDLES, size=len(data))
        self._claim(path, len(data))
        self._change((directory, name, self._new_inode(data)))
        self._names.sync(directory, self._names.changes)
        self._record(b"file", path, data)

    def sync_dir(self, path: str) -> None:
        self._let_others_run()
        directory = self._names.directory(path)
        self.faults.check(clean(path), Fault.SYNC_ERROR, Fault.NO_HANDLES)
        work = self._work
        before_work = work is not None and work.marks is not None and not work.own_changes
        self._names.sync(directory, work.changes if work is not None and before_work else self._names.changes)
        self._record(b"sdir", path)

    def usage(self, path: str) -> tuple[int, int]:
        self._names.directory(path)
        free_bytes = max(0, self.capacity_bytes - self._used_bytes)
        return self.capacity_bytes, self.faults.room(clean(path), free_bytes)

    def lock(self, path: str) -> None:
        path = clean(path)
        holder = self._locks.get(path)
        if holder is not None and holder.state is not ProcessState.DEAD:
            raise BlockingIOError(errno.EAGAIN, f"{holder.name} holds the lock", path)
        if not self.exists(path):
            self.open(path, create=True).close()
        self._locks[path] = NODE.get(self._loop.outside)

    def mtime_ms(self, path: str) -> int:
        return self._names.file(path).mtime_ms

    def dedicate_workers(self, path: str) -> None:
        self._pool.dedicate(clean(path))

    async def offload(self, work: Callable[[], T], path: str) -> T:
        path = clean(path) if path else ""
        return await self._offload(work, path, lambda process, start: self._pool.begin(process, path, start))

    async def offload_compute(self, work: Callable[[], T]) -> T:
        return await self._offload(work, "", self._pool.begin_computing)

    async def _offload(self, work: Callable[[], T], path: str, begin: Begin) -> T:
        marks = {inode: inode.begin_sync() for inode in self._dirty}
        run = partial(contextvars.copy_context().run, work)
        worker = self._new_worker(run) if self._randomness.random() < self.thread_probability else None
        horizon = _Work(marks, self._names.changes, worker)
        process = NODE.get(self._loop.outside)
        done: asyncio.Future[T] = self._loop.create_future()

        def go_on(_: None) -> None:
            if process.state is ProcessState.PAUSED:  # a stopped process has no running threads either
                process.stopped.append(go_on)
                return
            if process.state is ProcessState.RUNNING:
                if worker is None:
                    with self._at_work(horizon):
                        _hand_over(run, done)
                elif (wait_s := self._step(worker, horizon)) is not None:
                    self._loop.schedule(self._loop.time() + wait_s, go_on)
                    return
                else:
                    _hand_over(worker.result, done)
            for inode, mark in marks.items():
                inode.marks.pop(mark, None)
            end()

        end = begin(process, lambda: self._loop.schedule(self._loop.time() + self._pause_s(path), go_on))
        return await done

    async def offload_niced(self, work: Callable[[Disk, Pace, A], T], argument: A, bytes_per_second: float) -> T:
        def pace(size_bytes: int) -> None:
            worker.wait(self._pause_s() + size_bytes / bytes_per_second)

        worker = self._new_worker(partial(contextvars.copy_context().run, work, self, pace, argument))
        horizon = _Work(None, 0, worker)
        process = NODE.get(self._loop.outside)
        done: asyncio.Future[T] = self._loop.create_future()

        def go_on(_: None) -> None:
            # Stopping the parent does not stop its child; its death does, and so does the cancellation of the work.
            if process.state is ProcessState.DEAD or done.done():
                return
            if self.niced_lost_probability and self._randomness.random() < self.niced_lost_probability:
                done.set_exception(WorkLost(f"the process that ran {work.__name__} was killed"))
            elif (wait_s := self._step(worker, horizon)) is not None:
                self._loop.schedule(self._loop.time() + wait_s, go_on)
            else:
                _hand_over(worker.result, done)

        self._loop.schedule(self._loop.time() + self._pause_s(), go_on)
        return await done

    def _new_worker(self, work: Callable[[], T]) -> Worker[T]:
        worker = Worker(work)
        self._workers[worker] = None
        return worker

    def _step(self, worker: Worker[object], horizon: _Work) -> float | None:
        """Let the work go on until it waits: for how long; None once it is done."""
        with self._at_work(horizon):
            wait_s = worker.step()
        if wait_s is None:
            del self._workers[worker]
        return wait_s

    @contextmanager
    def _at_work(self, horizon: _Work) -> Iterator[None]:
        self._work = horizon
        try:
            yield
        finally:
            self._work = None

    def _pause_s(self, path: str = "") -> float:
        """How long offloaded work takes until its next change; what is for no directory in particular may be for the slowest."""
        slowness = self.faults.slowness(path) if path else self.faults.worst_slowness()
        return self._randomness.uniform(*self.offload_s) * slowness

    # What files call

    def append(self, path: str, inode: Inode, data: Buffer) -> None:
        self._let_others_run()
        content = bytes(data)
        self.faults.check(path, *GROWTH, size=len(content))
        self._claim(path, len(content))
        inode.data += content
        self._note_written(inode)
        self._record_file(b"writ", inode, content)

    def read(self, path: str, inode: Inode, position: int, size: int) -> bytes | None:
        self.faults.check(path, Fault.READ_ERROR)
        size = min(size, len(inode.data) - position)
        if size <= 0:
            return b""
        if self.cold_probability and self._randomness.random() < self.cold_probability:
            inode.cold.add(position // PAGE_BYTES)
        if inode.cold and inode.is_cold(position, size):
            return None
        return bytes(inode.data[position : position + size])

    def rewrite(self, path: str, inode: Inode, position: int, data: Buffer) -> None:
        self._let_others_run()
        content = bytes(data)
        self.faults.check(path, *CHANGES)
        assert inode.data[position : position + len(content)] == content, "only what is there is written again"
        inode.rewrite(position, position + len(content))
        self._note_written(inode)
        self._record_file(b"rewr", inode, b"%d " % position + content)

    def truncate(self, path: str, inode: Inode, size: int) -> None:
        self._let_others_run()
        self.faults.check(path, *CHANGES)
        self._used_bytes -= len(inode.data) - size
        inode.truncate(size)
        self._note_written(inode)
        self._record_file(b"trun", inode, b"%d" % size)

    async def sync(self, path: str, inode: Inode) -> None:
        mark = inode.begin_sync()
        process = NODE.get(self._loop.outside)
        done: asyncio.Future[None] = self._loop.create_future()

        def start() -> None:
            if process.state is ProcessState.DEAD:
                self._loop.schedule(self._loop.time(), leave)
            else:
                wait_s = self._randomness.uniform(*self.sync_s) * self.faults.slowness(path)
                self._loop.schedule(self._loop.time() + wait_s, finish)

        def leave(_: None) -> None:
            """It had not begun, and its process is dead."""
            inode.marks.pop(mark, None)
            end()

        def finish(_: None) -> None:
            """The device is done, even if the process that asked has died."""
            failure = self._end_sync(path, inode, mark)
            end()
            if done.done():
                return
            if failure is None:
                done.set_result(None)
            else:
                done.set_exception(failure)

        end = self._pool.begin(process, path, start)
        await done

    def sync_blocking(self, path: str, inode: Inode) -> None:
        work = self._work
        if work is None or work.marks is None or inode in work.wrote:
            mark = inode.begin_sync()
            self._let_others_run()
        else:
            before = work.marks.get(inode)
            if before is None:
                return  # it was clean when the work was handed over
            self._let_others_run()
            mark = SyncMark(before.upto)
            mark.cut = before.cut
        failure = self._end_sync(path, inode, mark)
        if failure is not None:
            raise failure

    def forget(self, file: SimFile) -> None:
        self._files.pop(file, None)

    # Within

    def _change(self, *edits: tuple[Directory, str, Inode | Directory | None]) -> None:
        self._note_own_change()
        self._names.change(*edits)

    def _note_own_change(self) -> None:
        if self._work is not None:
            self._work.own_changes = True

    def _note_written(self, inode: Inode) -> None:
        inode.mtime_ms = self._clock.wall_ms()
        self._dirty[inode] = None
        if self._work is not None:
            self._work.wrote[inode] = None

    def _let_others_run(self) -> None:
        """Called before each change: here offloaded work may be overtaken, or go no further."""
        worker = None if self._work is None else self._work.worker
        if worker is not None and self._randomness.random() < self.overtake_probability:
            worker.wait(self._pause_s())

    def _abandon_workers(self) -> None:
        for worker in self._workers:
            worker.abandon()


def _hand_over(work: Callable[[], T], done: asyncio.Future[T]) -> None:
    try:
        result = work()
    except Exception as failure:
        if not done.done():  # else the waiting task was cancelled
            done.set_exception(failure)
    else:
        if not done.done():
            done.set_result(result)
