# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

from strandline.cli.reassignment.reassignment_progress import MoveProgress, ReassignmentLines, measure
from strandline.client.flow.descriptions import Reassignment

MOVING = {("t", 0): Reassignment((3, 4, 1, 2), (3, 4), (1, 2))}


def test_progress_is_what_the_new_replicas_have_of_the_old_ones():
    sizes = {("t", 0, 1): 1000, ("t", 0, 2): 990, ("t", 0, 3): 1000, ("t", 0, 4): 500, ("u", 0, 4): 7}
    (progress,) = measure(MOVING, sizes, [1, 2, 3, 4]).values()
    assert progress == MoveProgress(1500, 2000)
    assert progress.percent == 75


def test_what_is_under_way_is_never_whole():
    sizes = {("t", 0, 1): 1000, ("t", 0, 3): 1200, ("t", 0, 4): 1000}
    assert measure(MOVING, sizes, [1, 2, 3, 4])["t", 0].percent == 99
    assert measure(MOVING, {}, [1, 2, 3, 4])["t", 0].percent == 0


def test_only_fewer_replicas_need_no_copy():
    assert measure({("t", 0): Reassignment((1, 2), (), (2,))}, {("t", 0, 1): 5}, [1, 2])["t", 0] == MoveProgress(0, 0)


def test_brokers_that_are_waited_for():
    assert measure(MOVING, {}, [1, 2, 3])["t", 0].missing == (4,)


def test_lines_without_a_terminal(capsys):
    lines = ReassignmentLines([("t", 0), ("t", 1)])
    waiting = MoveProgress(0, 10, (4,))
    lines.show({("t", 0): waiting, ("t", 1): waiting})
    lines.show({("t", 1): waiting})
    lines.show({})
    lines.close()
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.splitlines() == [
        "broker 4 is not alive; partitions that move to it wait",
        "t-0: ended (1 of 2)",
        "t-1: ended (2 of 2)",
    ]
