"""`groups`: what it says to somebody who looks at groups and changes them."""

# mypy: allow-incomplete-defs, allow-untyped-calls, allow-untyped-defs

from __future__ import annotations

import json
from pathlib import Path

import pytest

from strandline.cli.access import connection
from strandline.errors import ErrorCode, KafkaError
from tests.unit.cli.groups.in_memory_groups import InMemoryGroups, member

A, B = ("hello", 0), ("hello", 1)


@pytest.fixture
def groups(monkeypatch: pytest.MonkeyPatch) -> InMemoryGroups:
    """`readers` rests at 4 of 10, `live` has a member that reads all of hello."""
    found = InMemoryGroups({A: 10, B: 0})
    found.add("readers", {A: 4})
    found.add("live", {A: 10}, member("m", A, B))
    monkeypatch.setattr(connection, "connect_admin", found.connect)
    return found


def test_no_groups_and_none_that_match_are_two_things(groups, call):
    assert call("groups", "list", "--state", "dead").err == "no group is Dead\n"
    assert call("groups", "list", "--type", "consumer").err == "no group is of type Consumer\n"
    assert call("groups", "list", "--type", "consumer", "--state", "empty", "--state", "dead").err == (
        "no group of type Consumer is Empty or Dead\n"
    )
    groups.groups.clear()
    assert "creates one" in call("groups", "list").err


def test_json_names_a_group_alike(groups, call):
    listed = json.loads(call("groups", "list", "--json").out)
    described = json.loads(call("groups", "describe", "--json").out)
    assert [group["group"] for group in listed] == [group["group"] for group in described] == ["live", "readers"]


def test_those_that_are_there_are_described_and_the_other_is_named(groups, call):
    done = call("groups", "describe", "readers", "nosuch", "live")
    assert done.code == 1
    assert {"readers", "live"} < {line.split("\t")[0] for line in done.out.splitlines()}
    assert done.err.splitlines()[-1].startswith("strandline: there is no group 'nosuch';")
    assert call("groups", "describe", "readers", "live").code == 0


def test_a_group_that_has_died_since_it_was_listed_is_no_failure_unless_it_was_named(groups, call):
    groups.add("dying", {}, state="Dead")
    assert call("groups", "describe").code == 0
    assert call("groups", "describe", "dying").code == 1


def test_a_group_that_can_not_be_described_is_a_failure_named_or_not(groups, call, monkeypatch):
    error = KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "group 'live' is still loading")
    described = groups.describe_groups
    monkeypatch.setattr(groups, "describe_groups", lambda names: described(names) | {"live": error})
    done = call("groups", "describe")
    assert done.code == 1
    assert "readers\thello\t0" in done.out
    assert done.err.splitlines()[-1] == "strandline: group 'live' is still loading (COORDINATOR_LOAD_IN_PROGRESS)"


def test_a_partition_that_is_held_without_a_commit_is_described(groups, call):
    rows = [line.split("\t") for line in call("groups", "describe", "live").out.splitlines()]
    assert rows[2] == ["live", "hello", "1", "-", "0", "-", "m", "c", "/127.0.0.1"]


def test_the_lag_ends_before_open_transactions_for_those_who_read_committed(groups, call):
    groups.stable[A] = 7
    rows = [
        call("groups", "describe", "readers", "--isolation-level", f"read_{level}").out.splitlines()[1].split("\t")
        for level in ("uncommitted", "committed")
    ]
    assert [row[4:6] for row in rows] == [["10", "6"], ["7", "3"]]


def test_one_view_at_a_time(groups, call):
    done = call("groups", "describe", "--members", "--state")
    assert (done.code, done.err.splitlines()[-1]) == (2, "Error: give one of --members, --state")
    assert call("groups", "describe", "--state").out.splitlines()[1].startswith("live\tClassic\tStable\t1")


# Resets


def reset(call, *arguments):
    return call("groups", "reset-offsets", *arguments)


def test_a_plan_shows_what_it_changes_and_only_execute_does_it(groups, call):
    done = reset(call, "readers", "--topic", "hello", "--to-latest")
    assert done.out.splitlines() == [
        "topic\tpartition\tcurrent offset\tnew offset\tdifference",
        "hello\t0\t4\t10\t+6",
        "hello\t1\t-\t0\t-",
    ]
    assert done.err == "nothing was changed; --execute does it\n"
    assert groups.offsets["readers"] == {A: 4}
    done = reset(call, "readers", "--topic", "hello", "--to-latest", "--execute")
    assert done.err == "2 offsets of group 'readers' were set\n"
    assert groups.offsets["readers"] == {A: 10, B: 0}
    done = reset(call, "readers", "--topic", "hello:0", "--shift-by", "-1", "--json")
    assert json.loads(done.out) == [
        {"topic": "hello", "partition": 0, "current_offset": 10, "offset": 9, "difference": -1}
    ]


def test_a_group_with_members_can_be_planned_for_and_not_reset(groups, call):
    done = reset(call, "live", "--topic", "hello", "--to-earliest")
    assert done.code == 0
    assert "hello\t0\t10\t0\t-10" in done.out
    assert "is Stable: --execute needs a group without members" in done.err
    done = reset(call, "live", "--topic", "hello", "--to-earliest", "--execute")
    assert (done.code, done.out) == (1, "")
    assert "stop its members first" in done.err
    assert groups.offsets["live"] == {A: 10}


def test_a_group_that_a_reset_makes_is_called_new(groups, call):
    assert "creates group 'fresh'" in reset(call, "fresh", "-t", "hello", "--to-earliest").err
    assert "fresh" not in groups.groups
    assert "(the group is new)" in reset(call, "fresh", "-t", "hello", "--to-earliest", "--execute").err
    assert groups.offsets["fresh"] == {A: 0, B: 0}
    assert "there is no group 'other'" in reset(call, "other", "--all-topics", "--to-earliest", "--execute").err


def test_a_topic_that_is_not_there_is_named(groups, call):
    done = reset(call, "readers", "--topic", "nosuch", "--to-earliest")
    assert (done.code, "there is no topic 'nosuch'" in done.err) == (1, True)


def test_a_time_after_the_last_record_takes_the_end(groups, call):
    done = reset(call, "readers", "--topic", "hello:0", "--to-datetime", "2040-01-01T00:00:00")
    assert done.err.splitlines()[0] == "hello-0 has no record that late; its end is taken"
    assert "hello\t0\t4\t10\t+6" in done.out


@pytest.mark.parametrize("text", ["-PT5M", "PT-5M"])
def test_ago_is_not_negative(groups, call, text):
    done = reset(call, "readers", "--topic", "hello", f"--by-duration={text}")
    assert (done.code, f"{text} is negative" in done.err) == (2, True)


def test_a_file_that_is_no_plan_is_one_line(groups, call, tmp_path: Path):
    file = tmp_path / "plan.csv"
    for content, said in ((b"hello,0,1\nhello, 0\n", "line 2 of the file is not"), (b"\xff\xfe\x00", "is not text")):
        file.write_bytes(content)
        done = reset(call, "readers", "--from-file", str(file))
        assert (done.code, done.out, len(done.err.splitlines())) == (1, "", 1)
        assert said in done.err
    file.write_bytes(b"hello,0,7\n")
    assert "hello\t0\t4\t7\t+3" in reset(call, "readers", "--from-file", str(file)).out


# Deletions


def test_each_group_that_can_not_be_deleted_says_what_to_do(groups, call):
    done = call("groups", "delete", "live", "nosuch", "readers")
    assert (done.code, done.out) == (1, "Deleted group readers.\n")
    assert done.err.splitlines() == [
        "strandline: group 'live' has members; stop them first",
        "strandline: there is no group 'nosuch'; `strandline groups list` lists the existing ones",
    ]


def test_deletions_as_json(groups, call):
    done = call("groups", "delete", "live", "readers", "--json")
    assert done.code == 1
    assert json.loads(done.out) == [
        {"group": "live", "deleted": False, "error": "NON_EMPTY_GROUP"},
        {"group": "readers", "deleted": True, "error": None},
    ]
    done = call("groups", "delete-offsets", "live", "--topic", "hello:1", "--json")
    assert json.loads(done.out) == [
        {"topic": "hello", "partition": 1, "deleted": False, "error": "GROUP_SUBSCRIBED_TO_TOPIC"}
    ]


def test_offsets_that_can_not_be_deleted_are_named_once_for_a_topic(groups, call):
    done = call("groups", "delete-offsets", "live", "--topic", "hello")
    assert (done.code, done.out, done.err) == (1, "", "strandline: group 'live' reads hello; stop its members first\n")
    done = call("groups", "delete-offsets", "readers", "--topic", "hello", "--topic", "nosuch")
    assert (done.code, done.out) == (1, "Deleted the offsets of group readers for 2 partitions.\n")
    assert "'nosuch' does not exist" in done.err
