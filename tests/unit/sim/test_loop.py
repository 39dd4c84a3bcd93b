"""Virtual time, turns, and the ends of runs that would never end."""

# mypy: disable-error-code="attr-defined"

from __future__ import annotations

import asyncio
import itertools
import os
import subprocess
import sys

import pytest

from strandline.sim.loop import Deadlock, Runaway
from strandline.sim.world import World


def test_an_hour_takes_no_time() -> None:
    async def story() -> float:
        await asyncio.sleep(3000)
        return asyncio.get_running_loop().time()

    with World() as world:
        assert world.run(story()) == pytest.approx(3000)


def test_timers_fire_in_order_and_ties_as_they_were_set() -> None:
    async def story() -> list[int]:
        fired: list[int] = []
        loop = asyncio.get_running_loop()
        for number, when in enumerate([3.0, 1.0, 2.0, 1.0, 1.0]):
            loop.call_at(when, fired.append, number)
        loop.call_at(1.5, fired.append, 99).cancel()
        await asyncio.sleep(5)
        return fired

    with World() as world:
        assert world.run(story()) == [1, 3, 4, 2, 0]


def test_many_cancelled_timers_are_swept() -> None:
    async def story() -> int:
        for _ in range(5000):
            async with asyncio.timeout(1000):
                await asyncio.sleep(0)
        return len(asyncio.get_running_loop()._events)

    with World() as world:
        assert world.run(story()) < 1000


def test_a_deadlock_says_who_waits_where() -> None:
    async def waits_for_ever() -> None:
        await asyncio.Event().wait()

    with World() as world:
        world.node("n1").spawn(waits_for_ever())
        with pytest.raises(Deadlock, match="n1 is running: 1 tasks") as deadlock:
            world.run(asyncio.Event().wait())
        assert "waits_for_ever > Event.wait" in str(deadlock.value)


def test_a_busy_node_runs_into_the_time_limit() -> None:
    async def spin() -> None:
        for _ in itertools.count():
            await asyncio.sleep(0)

    async def story(world: World) -> None:
        await world.node("n1").spawn(spin())

    with World() as world, pytest.raises(Runaway, match="virtual time limit"):
        world.run(story(world), until=0.1)
    with World() as world, pytest.raises(Runaway, match="more than 1000 callbacks"):
        world.run(spin(), steps_max=1000)


def test_threads_are_refused() -> None:
    async def story() -> None:
        await asyncio.to_thread(print)

    with World() as world, pytest.raises(RuntimeError, match=r"Disk\.offload"):
        world.run(story())


def test_an_exception_nobody_handles_fails_the_run() -> None:
    def fail() -> None:
        raise ValueError("in a callback")

    async def story() -> None:
        asyncio.get_running_loop().call_soon(fail)
        await asyncio.sleep(1)

    with World() as world, pytest.raises(BaseExceptionGroup) as group:
        world.run(story())
    assert [type(error) for error in group.value.exceptions] == [ValueError]


def test_sets_of_tasks_and_futures_are_ordered_by_their_making() -> None:
    async def story() -> None:
        loop = asyncio.get_running_loop()
        tasks = [loop.create_task(asyncio.sleep(1)) for _ in range(100)]
        hashes = [hash(task) for task in tasks]
        assert hashes == sorted(hashes)
        assert max(hashes) < 10_000, "a sequence number, no address"
        done, _ = await asyncio.wait(tasks)
        assert done == set(tasks)
        futures = [loop.create_future() for _ in range(3)]
        assert hash(futures[0]) < hash(futures[1]) < hash(futures[2])
        assert hash(futures[0]) == hash(futures[0])

    with World() as world:
        world.run(story())


HISTORY = """
import asyncio, contextlib, sys
from strandline.sim.world import World

def history(seed):
    with World(seed) as world:
        async def echo(reader, writer):
            with contextlib.suppress(OSError):
                while line := await reader.readline():
                    disk.open("/log", create=True).append(line)
                    await disk.open("/log").sync()
                    if writer.is_closing():
                        break
                    writer.write(line)
        disk = world.node("n1").disk
        async def serve():
            await asyncio.start_server(echo, "n1", 9092)
        async def client(number):
            done = 0
            while done < 20:
                try:
                    async with asyncio.timeout(1):
                        reader, writer = await asyncio.open_connection("n1", 9092)
                        while done < 20:
                            writer.write(b"%d %d\\n" % (number, done))
                            if await reader.readline():
                                done += 1
                            else:
                                break
                except (OSError, TimeoutError):
                    await asyncio.sleep(0.1)
        async def main():
            await world.node("n1").spawn(serve())
            tasks = {world.node(f"c{n}").spawn(client(n)) for n in range(5)}
            await asyncio.sleep(0.01)
            world.network.cut("c1", "n1")
            world.network.reset_connections("c2", "n1")
            await asyncio.sleep(2)
            world.network.heal_all()
            world.node("n1").kill()
            world.node("n1").restart()
            await world.node("n1").spawn(serve())
            for task in [await t for t in asyncio.as_completed(tasks)]:
                pass
            world.node("n1").power_loss()
        world.run(main())
        return world.trace_hash, world.now

print(history(int(sys.argv[1])), history(int(sys.argv[1])))
"""


def test_a_seed_is_a_history_whatever_the_hash_seed_is() -> None:
    def history(seed: int, hash_seed: int) -> str:
        environment = {**os.environ, "PYTHONHASHSEED": str(hash_seed)}
        done = subprocess.run(
            [sys.executable, "-c", HISTORY, str(seed)], env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    first = history(1, 1)
    one, other = first.strip().removeprefix("(").removesuffix(")").split(") (")
    assert one == other, "twice in one process"
    assert history(1, 2) == first
    assert history(2, 1) != first


def test_whoever_looks_after_each_turn_sees_whose_it_was() -> None:
    with World(1) as world:
        turns: list[str] = []
        world.loop.after_turn = lambda process: turns.append(process.name)

        async def work() -> None:
            await asyncio.sleep(0.1)

        async def story() -> None:
            await world.node("n1").spawn(work())

        world.run(story())
        assert turns.count("n1") >= 2


def test_what_the_onlooker_raises_ends_the_run() -> None:
    with World(1) as world:

        def object_to(process: object) -> None:
            raise ZeroDivisionError

        world.loop.after_turn = object_to
        with pytest.raises(ZeroDivisionError):
            world.run(asyncio.sleep(1.0))


def test_turns_in_a_row_let_others_in_where_their_time_has_come() -> None:
    """One node spins while timers of another are due: they fire between its turns, not after them."""
    with World(3) as world:
        seen: list[str] = []

        async def spin() -> None:
            for _ in range(300):
                await asyncio.sleep(0)
            seen.append("spun")

        async def tick() -> None:
            for _ in range(8):
                await asyncio.sleep(0.001)
                seen.append("tick")

        async def story() -> None:
            await asyncio.gather(world.node("n1").spawn(spin()), world.node("n2").spawn(tick()))

        looks: list[str] = []
        world.loop.after_turn = lambda process: looks.append(process.name)
        world.run(story())
        assert 6 <= seen.index("spun") <= 8, "300 turns of 30 us"
        assert 3 < looks.count("n1") < 40, "one look at a row of turns"


def test_a_row_of_turns_ends_with_the_run() -> None:
    with World(3) as world:

        async def spin() -> None:
            for _ in itertools.count():
                await asyncio.sleep(0)

        async def story() -> None:
            await asyncio.sleep(0.01)

        world.node("n1").spawn(spin())
        world.run(story())
        assert world.now == pytest.approx(0.01, abs=0.001)


def test_names_of_tasks_are_the_same_in_every_run() -> None:
    def names() -> list[str]:
        with World(3) as world:

            async def story() -> list[str]:
                node = world.node("n1")
                tasks = [node.spawn(asyncio.sleep(0)), node.spawn(asyncio.sleep(0), name="named")]
                tasks[0].set_name(tasks[0].get_name() + "!")
                return [task.get_name() for task in tasks]

            return world.run(story())

    assert names() == names()
    assert names()[1] == "named"
    assert names()[0].startswith("n1-")
    assert names()[0].endswith("!")
