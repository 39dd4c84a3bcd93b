# mypy: allow-incomplete-defs, allow-untyped-calls, allow-untyped-defs, disable-error-code="arg-type"

from __future__ import annotations

import itertools
import multiprocessing
import os

from strandline.histories import worker_pool
from strandline.histories.worker_pool import CRASH, EXCEPTION, HUNG, HistoryTask, WorkerPool
from tests.unit.histories import plays


def played(play: worker_pool.Play, seeds: range, jobs: int = 1, **options: float) -> dict[int, list[str]]:
    with WorkerPool(play, jobs, **options) as some:
        return {
            task.seed: [f"{problem.property}: {problem.what}" for problem in outcome.problems]
            for task, outcome in some.play(map(HistoryTask, seeds))
        }


def test_every_seed_comes_back_without_its_transcript() -> None:
    with WorkerPool(plays.holding, 2) as some:
        found = [outcome for _, outcome in some.play(map(HistoryTask, range(20)))]
    assert sorted(outcome.seed for outcome in found) == list(range(20))
    assert all(outcome.faults and outcome.coverage and not outcome.transcript for outcome in found)


def test_processes_are_reused() -> None:
    with WorkerPool(plays.which_process, 2) as some:
        pids = {outcome.setting for _, outcome in some.play(map(HistoryTask, range(20)))}
        again = {outcome.setting for _, outcome in some.play(map(HistoryTask, range(20)))}
    assert len(pids | again) == 2
    assert str(os.getpid()) not in pids


def test_a_process_is_replaced_after_so_many_seeds(monkeypatch) -> None:
    monkeypatch.setattr(worker_pool, "SEEDS_PER_PROCESS", 2)
    with WorkerPool(plays.which_process, 1) as some:
        pids = [outcome.setting for _, outcome in some.play(map(HistoryTask, range(4)))]
    assert [len(list(same)) for _, same in itertools.groupby(pids)] == [2, 2]


def test_a_crash_names_its_seed_and_the_others_are_played() -> None:
    found = played(plays.crashing, range(6))
    assert found == {
        0: [],
        1: [],
        2: [],
        3: [f"{CRASH}: by signal SIGKILL"],
        4: [f"{CRASH}: with exit code 7"],
        5: [],
    }


def test_an_exception_names_its_seed_and_its_place() -> None:
    found = played(plays.raising, range(4))
    assert [seed for seed, problems in found.items() if problems] == [2]
    assert found[2][0].startswith(f"{EXCEPTION}: ZeroDivisionError: of seed 2 (plays.py:")


def test_a_seed_that_does_not_end_is_given_up(monkeypatch) -> None:
    monkeypatch.setattr(worker_pool, "POLL_S", 0.05)
    found = played(plays.hanging, range(3), jobs=2, seed_within_s=1.0)
    assert found == {0: [], 1: [f"{HUNG}: no end after 1 s"], 2: []}
    assert not multiprocessing.active_children()


def test_tasks_are_taken_only_when_a_process_is_free() -> None:
    taken = []

    def tasks():
        for seed in itertools.count():
            taken.append(seed)
            yield HistoryTask(seed)

    with WorkerPool(plays.holding, 2) as some:
        for number, _ in enumerate(some.play(tasks())):
            assert len(taken) <= number + 2
            if number == 5:
                break
        # What was under way when nobody wanted more is not mistaken for what is asked now.
        assert [task.seed for task, _ in some.play([HistoryTask(77)])] == [77]
    assert not multiprocessing.active_children()


def test_the_hash_seed_is_the_workers_and_not_ours() -> None:
    before = os.environ.get("PYTHONHASHSEED")
    with WorkerPool(plays.by_hash_seed, 1, hash_seed=9) as some:
        assert [outcome.trace_hash for _, outcome in some.play([HistoryTask(5)])] == ["9"]
    assert os.environ.get("PYTHONHASHSEED") == before


def test_what_is_left_out_reaches_the_history() -> None:
    with WorkerPool(plays.holding, 1) as some:
        [(_, outcome)] = some.play([HistoryTask(1, frozenset({1, 2}))])
    assert [fault.number for fault in outcome.faults] == list(range(3, 13))
