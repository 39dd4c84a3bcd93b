# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

import pytest

from strandline.cli.elections import election_admin
from strandline.cli.elections.election_admin import ElectionResults
from strandline.cli.errors import CommandRefused
from strandline.cli.kafka_tools.kafka_leader_election import lines

FLAGS = ("kafka-leader-election", "--bootstrap-server", "127.0.0.1:1")


def test_kafkas_lines():
    elected = ElectionResults([("t", 0), ("t", 1)], [("u", 0)], {("v", 2): "nobody (ELIGIBLE_LEADERS_NOT_AVAILABLE)"})
    assert lines(elected, "PREFERRED") == [
        "Successfully completed leader election (PREFERRED) for partitions t-0, t-1",
        "Valid replica already elected for partitions u-0",
        "Error completing leader election (PREFERRED) for partition: v-2: nobody (ELIGIBLE_LEADERS_NOT_AVAILABLE)",
    ]
    assert lines(ElectionResults([], [], {}), "UNCLEAN") == []


def test_a_file_of_partitions(tmp_path):
    file = tmp_path / "partitions.json"
    file.write_text('{"partitions": [{"topic": "t", "partition": 1}, {"topic": "u", "partition": 0}]}')
    assert election_admin.read_partitions(str(file)) == [("t", 1), ("u", 0)]
    file.write_text('{"partitions": [{"topic": "t", "partition": 1}, {"topic": "t", "partition": 1}]}')
    with pytest.raises(CommandRefused, match="duplicate partitions: t-1"):
        election_admin.read_partitions(str(file))
    for broken in ("{", "{}", '{"partitions": [1]}', "[]"):
        file.write_text(broken)
        with pytest.raises(CommandRefused, match="is not of the form"):
            election_admin.read_partitions(str(file))


@pytest.mark.parametrize(
    ("flags", "code", "reason"),
    [
        ((*FLAGS, "--all-topic-partitions"), 2, "--election-type"),
        ((*FLAGS, "--election-type", "PREFERRED"), 2, "One and only one"),
        ((*FLAGS, "--election-type", "preferred", "--topic", "t"), 2, "partition"),
        ((*FLAGS, "--election-type", "preferred", "--all-topic-partitions", "--partition", "1"), 2, "only allowed"),
        (("elect",), 2, "or give --all"),
        (("elect", "t-0", "--all"), 2, "or give --all"),
        (("elect", "t"), 1, "'t' is not a partition"),
    ],
)
def test_wrong_usage(call, flags, code, reason):
    ran = call(*flags)
    assert ran.code == code
    assert reason in ran.err
