# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

import itertools
import json
from types import SimpleNamespace

import pytest

from strandline.cli.simulator import sim
from strandline.histories import required
from strandline.histories.coverage import FAULT, QUORUM
from tests.unit.histories import plays


@pytest.fixture
def playing(monkeypatch):
    """Histories without a cluster in place of real ones."""

    def playing(play) -> None:
        monkeypatch.setattr(sim, "_play", lambda: play)

    return playing


def test_many_seeds(call, playing):
    playing(plays.holding)
    ran = call("sim", "--seeds", "10", "--jobs", "2")
    assert ran.code == 0
    lines = ran.out.splitlines()
    assert lines[:3] == [
        "exercised\ttimes\tkinds\tthe rarest",
        "fault\t120\t1\tpower loss 120",
        "quorum\t20\t1\telection 20",
    ]
    assert "seeds per second" in lines[3]
    assert "simulated hours per minute" in lines[3]
    assert lines[4:] == [
        "120 faults, 5045 operations, 4000 acknowledged",
        "each at least 60.0 virtual seconds, 12 faults, 500 operations",
        "10 seeds, 0 failed",
    ]


def test_the_whole_coverage(call, playing):
    playing(plays.holding)
    ran = call("sim", "--seeds", "2", "--first", "5", "--jobs", "1", "--coverage")
    assert ran.out.splitlines()[:3] == [
        "exercised\twhat\ttimes",
        "fault\tpower loss\t24",
        "quorum\telection\t4",
    ]


def test_a_failed_seed_is_reported_with_its_fewest_faults(call, playing):
    playing(plays.failing)
    ran = call("sim", "--seeds", "4", "--jobs", "2")
    assert ran.code == 1
    assert "seed 1 failed: I4 at 8.000 s: n2 lost offset 7" in ran.err
    lines = ran.out.splitlines()
    assert lines[0] == "seed 1 failed: I4 at 8.000 s: n2 lost offset 7"
    assert lines[1].startswith("  the smallest set of faults that still fails: 2 of 8, after ")
    assert lines[2:8] == [
        "    #3 at 3.000 s: power loss n3",
        "    #8 at 8.000 s: power loss n8",
        "  then I4 at 8.000 s: n2 lost offset 7",
        "  again: strandline sim --seed 1 --without 1-2,4-7,9-",
        "seed 3 failed: I4 at 8.000 s: n2 lost offset 7",
        "  again: strandline sim --seed 3",
    ]
    assert lines[-1] == "4 seeds, 2 failed"


def test_a_crash_names_its_seed_and_is_not_shrunk(call, playing):
    playing(plays.crashing)
    ran = call("sim", "--seeds", "4", "--jobs", "1")
    assert ran.code == 1
    assert ran.out.splitlines()[:2] == [
        "seed 3 failed: the process crashed at 0.000 s: by signal SIGKILL",
        "  again: strandline sim --seed 3",
    ]
    assert ran.out.endswith("\n4 seeds, 1 failed\n")


def test_for_machines(call, playing):
    playing(plays.failing)
    ran = call("sim", "--seeds", "2", "--jobs", "1", "--json")
    assert ran.code == 1
    report = json.loads(ran.out)
    assert (report["seeds"], report["failed"], report["operations"]) == (2, 1, 1001)
    assert report["coverage"]["quorum"] == {"election": 4}
    [failure] = report["failures"]
    assert failure["problems"] == [{"property": "I4", "at": 8.0, "what": "n2 lost offset 7"}]
    assert [fault["number"] for fault in failure["smallest"]["faults"]] == [3, 8]
    assert failure["smallest"]["command"] == "strandline sim --seed 1 --without 1-2,4-7,9-"


def test_twice_finds_what_the_hash_seed_changes(call, playing):
    playing(plays.by_hash_seed)
    ran = call("sim", "--seeds", "7", "--jobs", "1", "--twice")
    assert ran.code == 1
    assert ran.out.startswith(
        "seed 5 failed: one seed is one history at 65.000 s: trace hash 1 with PYTHONHASHSEED=1, "
    )
    assert ran.out.endswith("\n7 seeds, 1 failed\n")
    assert call("sim", "--seeds", "5", "--jobs", "1", "--twice").code == 0


def test_ctrl_c_ends_it_with_what_was_done(call, playing):
    playing(plays.interrupting)
    ran = call("sim", "--seeds", "1000", "--jobs", "1")
    assert ran.code == 1
    assert ran.out.endswith("\n4 seeds, 1 failed\n")
    assert ran.err.splitlines()[-1] == "interrupted; this is the result so far"


def test_as_many_as_fit_into_the_time(call, playing, monkeypatch):
    playing(plays.holding)
    a_second_for_each = SimpleNamespace(monotonic=itertools.count().__next__)
    monkeypatch.setattr(sim, "time", a_second_for_each)
    ran = call("sim", "--time", "10s", "--jobs", "1")
    assert ran.code == 0
    assert ran.out.splitlines()[-1] == "9 seeds, 0 failed"


def test_what_was_required_and_is_too_rare_is_named(call, playing, monkeypatch):
    playing(plays.holding)
    monkeypatch.setattr(
        required, "required", lambda: [(FAULT, "power loss"), (QUORUM, "election"), (FAULT, "bit flip")]
    )
    ran = call("sim", "--seeds", "2", "--jobs", "1", "--require", "20")
    assert ran.code == 1
    assert ran.out.splitlines()[-3:] == [
        "required: quorum 'election' 4 times, fewer than 20",
        "required: fault 'bit flip' 0 times, fewer than 20",
        "2 seeds, 0 failed",
    ]


def test_one_seed_is_printed(call, playing):
    playing(plays.holding)
    ran = call("sim", "--seed", "7", "--without", "2-")
    assert ran.code == 0
    assert ran.out.splitlines() == [
        "seed 7: 3 combined nodes",
        "nemeses: leader killed, split",
        "    1.0000  fault 1   power loss n1",
        "    1.5000  n1        leader, epoch 2",
        "    7.5000  client1   creates t",
        "67.0 virtual seconds, 1 faults, 507 operations, 400 acknowledged",
        "trace 0007",
    ]


def test_one_seed_that_fails(call, playing):
    playing(plays.failing)
    ran = call("sim", "--seed", "7", "--jobs", "2")
    assert ran.code == 1
    assert "    8.0000  judge     VIOLATES I4: n2 lost offset 7\n" in ran.out
    assert ran.out.endswith("  again: strandline sim --seed 7 --without 1-2,4-7,9-\n")
    short = call("sim", "--seed", "7", "--no-shrink")
    assert short.code == 1
    assert short.out.endswith("seed 7 failed: I4 at 8.000 s: n2 lost offset 7\n")


def test_one_seed_for_machines(call, playing, tmp_path):
    playing(plays.holding)
    file = tmp_path / "7.jsonl"
    ran = call("sim", "--seed", "7", "--json", "--trace", str(file))
    kinds = [json.loads(line)["kind"] for line in ran.out.splitlines()]
    assert kinds[0] == "history"
    assert kinds[-1] == "end"
    assert "delivery" not in kinds
    assert "delivery" in [json.loads(line)["kind"] for line in file.read_text().splitlines()]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "nothing to do: give a number of histories (--seeds 1000), a time (--time 10m) or one seed (--seed 7)"),
        (["--seeds", "0"], "0 is not in the range x>=1"),
        (["--seed", "-1"], "-1 is not in the range x>=0"),
        (["--seed", "x"], "'x' is not a valid integer"),
        (["--time", "soon"], "'soon' is not a duration; write it as 30s, 10m or 2h"),
        (["--seed", "1", "--without", "x"], "'x' is no fault number; write them as 3,5 or 1-4,6,8-"),
        (["--seed", "1", "--seeds", "5"], "--seeds is for a search; --seed plays one history"),
        (["--seeds", "5", "--without", "1"], "--without is for one seed: name it with --seed"),
        (["--seeds", "5", "--trace", "f"], "--trace is for one seed: name it with --seed"),
    ],
)
def test_wrong_usage(call, arguments, said):
    ran = call("sim", *arguments)
    assert ran.code == 2
    assert ran.out == ""
    assert said in ran.err


def test_a_trace_that_can_not_be_written(call, playing, tmp_path):
    playing(plays.holding)
    ran = call("sim", "--seed", "1", "--trace", str(tmp_path / "none" / "f"))
    assert ran.code == 1
    assert ran.err == f"strandline: {tmp_path}/none/f: No such file or directory\n"


def test_chosen_seeds_are_written_and_played(call, playing, tmp_path):
    playing(plays.holding)
    file = tmp_path / "seeds.txt"
    ran = call("sim", "--seeds", "10", "--jobs", "1", "--choose", "3", "--out", str(file))
    assert ran.code == 0
    assert f"3 seeds written to {file}" in ran.err
    seeds = [line for line in file.read_text().splitlines() if not line.startswith("#")]
    assert len(seeds) == 3
    again = call("sim", "--seeds-from", str(file), "--jobs", "1")
    assert again.code == 0
    assert again.out.splitlines()[-1] == "3 seeds, 0 failed"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--seeds", "9", "--choose", "3"), "--choose and --out go together"),
        (("--seeds", "9", "--seeds-from", "FILE"), "--seeds-from names the seeds"),
        (("--seeds-from", "FILE"), "is not a list of seeds: line 1: 'seven' is no seed"),
    ],
)
def test_lists_of_seeds_that_make_no_sense(call, tmp_path, arguments, said):
    file = tmp_path / "seeds.txt"
    file.write_text("seven\n" if len(arguments) == 2 else "7\n")
    ran = call("sim", *(str(file) if argument == "FILE" else argument for argument in arguments))
    assert ran.code != 0
    assert said in ran.err
