# mypy: allow-incomplete-defs, allow-untyped-defs, disable-error-code="arg-type"

from __future__ import annotations

import pytest

from strandline.cli.errors import CommandRefused
from strandline.cli.kafka_tools.kafka_metadata_quorum import replication_lines, status_lines
from strandline.cli.quorum import quorum_admin
from strandline.client.flow.descriptions import QuorumInfo, QuorumReplicaState, RaftEndpoint
from strandline.ids import ZERO_UUID, Uuid

IDS = [Uuid(bytes([number] * 16)) for number in range(4)]
LEADER = QuorumReplicaState(101, IDS[1], 500, 90_000, 90_000)
CLOSE = QuorumReplicaState(102, IDS[2], 499, 89_990, 89_900)
FAR = QuorumReplicaState(103, IDS[3], 20, 60_000, -1)
OBSERVER = QuorumReplicaState(1, ZERO_UUID, 500, 89_999, 89_999)


def quorum(*voters: QuorumReplicaState, leader: int = 101) -> QuorumInfo:
    endpoints = {101: (RaftEndpoint("CONTROLLER", "::1", 10092),)}
    return QuorumInfo(leader, 7, 499, voters, (OBSERVER,), endpoints)


def test_the_slowest_voter_decides_the_lag():
    assert quorum_admin.follower_lag(quorum(LEADER)) == (0, 0)
    assert quorum_admin.follower_lag(quorum(CLOSE, LEADER)) == (1, 100)
    assert quorum_admin.follower_lag(quorum(LEADER, CLOSE, FAR)) == (480, -1)


def test_the_status_in_kafkas_lines():
    assert status_lines(quorum(CLOSE, LEADER), "some-id") == [
        "ClusterId:              some-id",
        "LeaderId:               101",
        "LeaderEpoch:            7",
        "HighWatermark:          499",
        "MaxFollowerLag:         1",
        "MaxFollowerLagTimeMs:   100",
        'CurrentVoters:          [{"id": 102, "directoryId": "AgICAgICAgICAgICAgICAg"}, '
        '{"id": 101, "directoryId": "AQEBAQEBAQEBAQEBAQEBAQ", "endpoints": ["CONTROLLER://[::1]:10092"]}]',
        'CurrentObservers:       [{"id": 1}]',
    ]


def test_replication_in_kafkas_table():
    lines = replication_lines(quorum(FAR, LEADER), False, 0)
    assert [line.replace("\t", "|") for line in lines] == [
        "NodeId|DirectoryId           |LogEndOffset|Lag|LastFetchTimestamp|LastCaughtUpTimestamp|Status  |",
        "101   |AQEBAQEBAQEBAQEBAQEBAQ|500         |0  |90000             |90000                |Leader  |",
        "103   |AwMDAwMDAwMDAwMDAwMDAw|20          |480|60000             |-1                   |Follower|",
        "1     |AAAAAAAAAAAAAAAAAAAAAA|500         |0  |89999             |89999                |Observer|",
    ]
    assert "\t30000 ms ago      \t-1                   \t" in replication_lines(quorum(FAR, LEADER), True, 90_000)[2]


def test_a_leader_that_is_not_a_voter_is_refused():
    with pytest.raises(CommandRefused, match="9, is not one of its voters"):
        quorum_admin.rows(quorum(LEADER, leader=9))


def controller_file(tmp_path, roles: str = "controller"):
    file = tmp_path / "controller.properties"
    broker = "" if roles == "controller" else ",PLAINTEXT://127.0.0.1:9092"
    file.write_text(
        f"process.roles={roles}\nnode.id=104\nlog.dirs={tmp_path}/data\ncontroller.listener.names=CONTROLLER\n"
        f"listeners=CONTROLLER://127.0.0.1:10095{broker}\ncontroller.quorum.bootstrap.servers=127.0.0.1:10092\n"
    )
    return file


def test_a_controller_is_read_from_its_own_configuration(tmp_path):
    file = controller_file(tmp_path)
    with pytest.raises(CommandRefused, match="storage format"):
        quorum_admin.read_controller(str(file))
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "meta.properties").write_text("#\nversion=1\nnode.id=104\n")
    with pytest.raises(CommandRefused, match="names no directory id"):
        quorum_admin.read_controller(str(file))
    (tmp_path / "data" / "meta.properties").write_text(f"version=1\ndirectory.id={IDS[2]}\n")
    assert str(quorum_admin.read_controller(str(file))) == (
        "controller 104 with directory id AgICAgICAgICAgICAgICAg and endpoints: CONTROLLER://127.0.0.1:10095"
    )


def test_trying_out_needs_no_cluster(call, tmp_path):
    file = controller_file(tmp_path)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "meta.properties").write_text(f"directory.id={IDS[2]}\n")
    server = ("--bootstrap-controller", "127.0.0.1:1")
    tail = "controller 104 with directory id AgICAgICAgICAgICAgICAg and endpoints: CONTROLLER://127.0.0.1:10095"
    ours = call("quorum", "add-controller", str(file), "--dry-run")
    assert ours.out == f"Would add {tail}.\n"
    theirs = call("kafka-metadata-quorum", *server, "--command-config", str(file), "add-controller", "--dry-run")
    assert theirs.out == f"DRY RUN of adding {tail}\n"
    removed = call("kafka-metadata-quorum", *server, "remove-controller", "-i", "3", "-d", str(IDS[1]), "--dry-run")
    assert removed.out == f"DRY RUN of removing KRaft controller 3 with directory id {IDS[1]}\n"
    assert call("quorum", "remove-controller", "3", str(IDS[1]), "--dry-run").out.startswith(
        "Would remove controller 3"
    )


@pytest.mark.parametrize(
    ("flags", "code", "reason"),
    [
        (("quorum", "describe", "--status", "--replication"), 2, "not both"),
        (("quorum", "describe", "--human-readable"), 2, "goes with --replication"),
        (("quorum", "describe", "-b", "a:1", "--bootstrap-controller", "b:1"), 2, "not both"),
        (("quorum", "remove-controller", "3", "no-id"), 2, "is not a Uuid"),
        (("kafka-metadata-quorum", "--bootstrap-server", "a:1", "describe"), 1, "One of --status or --replication"),
        (("kafka-metadata-quorum", "--bootstrap-server", "a:1", "add-controller"), 1, "You must supply the conf"),
        (("kafka-metadata-quorum", "describe", "--status"), 2, "Missing option '--bootstrap-server'"),
        (("quorum", "describe", "--bootstrap-controller", "127.0.0.1:1"), 1, "127.0.0.1:1"),
    ],
)
def test_what_cannot_be_done_is_one_line(call, flags, code, reason):
    ran = call(*flags)
    assert ran.code == code
    assert reason in ran.err
    assert ran.out == ""
