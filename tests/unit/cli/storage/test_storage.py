# mypy: allow-incomplete-defs, allow-untyped-calls, allow-untyped-defs, disable-error-code="attr-defined, union-attr"

from __future__ import annotations

import json

import pytest

from strandline.metadata import snapshot
from strandline.metadata.features import METADATA_VERSIONS

ID = "MkU3OEVBNTcwNTJENDM2Qg"


@pytest.fixture
def properties(tmp_path):
    path = tmp_path / "server.properties"
    path.write_text(
        "process.roles=broker,controller\nnode.id=1\nlisteners=PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093\n"
        "controller.listener.names=CONTROLLER\ncontroller.quorum.voters=1@127.0.0.1:9093\n"
        f"log.dirs={tmp_path}/a,{tmp_path}/b\n"
    )
    return str(path)


def test_format_then_info(call, properties, tmp_path):
    ran = call("kafka-storage", "format", "-t", ID, "-c", properties)
    assert ran.code == 0
    assert ran.out == (
        "Bootstrap metadata: BootstrapMetadata(records=[ApiMessageAndVersion(FeatureLevelRecord(name='metadata.version', "
        "featureLevel=30) at version 0), ApiMessageAndVersion(FeatureLevelRecord(name='eligible.leader.replicas.version', "
        "featureLevel=1) at version 0), ApiMessageAndVersion(FeatureLevelRecord(name='group.version', "
        "featureLevel=1) at version 0), ApiMessageAndVersion(FeatureLevelRecord(name='transaction.version', "
        "featureLevel=2) at version 0)], metadataVersionLevel=30, source=format command)\n"
        f"Formatting metadata directory {tmp_path}/a with metadata.version 4.3-IV0.\n"
        f"Formatting data directory {tmp_path}/b with metadata.version 4.3-IV0.\n"
    )
    info = call("storage", "info", "--config", properties)
    assert info.code == 0
    assert info.out.startswith(
        f"Found log directories:\n  {tmp_path}/a\n  {tmp_path}/b\n\nFound metadata: {{cluster.id={ID}, "
    )


def test_a_formatted_directory_is_refused_or_ignored(call, properties):
    call("storage", "format", "--config", properties, "--cluster-id", ID)
    again = call("storage", "format", "--config", properties, "--cluster-id", ID)
    assert again.code == 1
    assert "already formatted" in again.err
    ignored = call("storage", "format", "--config", properties, "--cluster-id", ID, "--ignore-formatted")
    assert (ignored.code, ignored.out) == (0, "All of the log directories are already formatted.\n")


def test_another_cluster_is_refused(call, properties):
    call("storage", "format", "--config", properties, "--cluster-id", ID)
    other = call("storage", "random-uuid").out.strip()
    ran = call("storage", "format", "--config", properties, "--cluster-id", other, "--ignore-formatted")
    assert ran.code == 1
    assert f"belongs to node 1 of cluster {ID}" in ran.err


def test_info_names_the_problems(call, properties, tmp_path):
    (tmp_path / "a").mkdir()
    ran = call("storage", "info", "--config", properties, "--json")
    assert ran.code == 1
    assert json.loads(ran.out)["problems"] == [f"{tmp_path}/a is not formatted.", f"{tmp_path}/b does not exist"]


def test_errors_are_one_line(call, properties, tmp_path):
    assert "is not a Uuid" in call("storage", "format", "-c", properties, "-t", "short").err
    missing = call("storage", "info", "-c", str(tmp_path / "none"))
    assert (missing.code, missing.err.count("\n")) == (1, 1)


@pytest.fixture
def dynamic(properties, tmp_path):
    path = tmp_path / "dynamic.properties"
    with open(properties) as file:
        path.write_text(file.read().replace("voters=1@", "bootstrap.servers="))
    return str(path)


@pytest.fixture
def format_(call):
    def run(path, *flags):
        return call("kafka-storage", "format", "-t", ID, "-c", path, *flags)

    return run


def records(path):
    return [(record.name, record.feature_level) for record in snapshot.read(path.read_bytes()).records]


def test_bootstrap_records_are_left_in_every_directory(format_, properties, tmp_path):
    assert format_(properties).code == 0
    for name in ("a", "b"):
        assert records(tmp_path / name / "bootstrap.checkpoint") == [
            ("metadata.version", 30),
            ("eligible.leader.replicas.version", 1),
            ("group.version", 1),
            ("transaction.version", 2),
        ]
    assert not list(tmp_path.glob("*/__cluster_metadata-0/*"))


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (["-r", "3.9"], [("metadata.version", 21)]),
        (["--release-version", "3.7-IV2"], [("metadata.version", 17)]),
        (["-f", "metadata.version=22"], [("metadata.version", 22), ("group.version", 1)]),
        (
            ["-f", "eligible.leader.replicas.version=0"],
            [("metadata.version", 30), ("group.version", 1), ("transaction.version", 2)],
        ),
        (
            ["-f", "group.version=0"],
            [("metadata.version", 30), ("eligible.leader.replicas.version", 1), ("transaction.version", 2)],
        ),
        (
            ["-r", "4.0", "--feature", "eligible.leader.replicas.version=1", "-f", "kraft.version=0"],
            [
                ("metadata.version", 25),
                ("eligible.leader.replicas.version", 1),
                ("group.version", 1),
                ("transaction.version", 2),
            ],
        ),
    ],
)
def test_a_release_and_features(format_, properties, tmp_path, flags, expected):
    ran = format_(properties, *flags)
    assert ran.code == 0
    assert f"with metadata.version {METADATA_VERSIONS[expected[0][1]]}.\n" in ran.out
    assert records(tmp_path / "a" / "bootstrap.checkpoint") == expected


@pytest.mark.parametrize(
    ("flags", "reason"),
    [
        (["-r", "9.9"], "Unknown metadata.version '9.9'. Supported metadata.version are: 3.3-IV3, "),
        (["-f", "metadata.version=31"], "No feature metadata.version with level 31"),
        (["-f", "metadata.version=30", "-r", "4.3"], "Use --release-version instead of --feature metadata.version=X"),
        (["-f", "share.version=1"], "Unsupported feature: share.version. Supported features are: "),
        (["-f", "eligible.leader.replicas.version=2"], "No feature eligible.leader.replicas.version with level 2"),
        (["-f", "eligible.leader.replicas.version=1", "-r", "3.9"], "because it depends on metadata.version level 23"),
        (["-f", "kraft.version=1"], "Cannot set kraft.version to 1"),
        (["-f", "kraft.version"], "Can't parse feature=level string kraft.version: equals sign not found."),
        (["-f", "kraft.version=x"], "unable to parse x as a short"),
        (["--add-scram", "SCRAM-SHA-256=[name=x,password=y]"], "--add-scram: "),
        (["--standalone"], "You cannot specify controller.quorum.voters and format the node with"),
        (["--initial-controllers", f"1@127.0.0.1:9093:{ID}"], "You cannot specify controller.quorum.voters"),
    ],
)
def test_what_cannot_be_is_refused_by_name(format_, properties, tmp_path, flags, reason):
    ran = format_(properties, *flags)
    assert (ran.code, ran.out, ran.err.count("\n")) == (1, "", 1)
    assert reason in ran.err
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize(
    ("flags", "reason"),
    [
        ([], "Because controller.quorum.voters is not set on this controller, you must specify one of the following"),
        (["-s", "-f", "kraft.version=0"], "Cannot set kraft.version to 0"),
        (["-s", "-f", "kraft.version=2"], "No feature kraft.version with level 2"),
        (["-I", "1@h:b:c"], "--initial-controllers: '1@h:b:c' is not ID@HOST:PORT:DIRECTORY_ID"),
        (["-I", "1@h:1:short"], "'short' is not a Uuid"),
    ],
)
def test_a_dynamic_quorum_that_cannot_be(format_, dynamic, tmp_path, flags, reason):
    ran = format_(dynamic, *flags)
    assert (ran.code, ran.out, ran.err.count("\n")) == (1, "", 1)
    assert reason in ran.err
    assert not (tmp_path / "a").exists()


def voters(tmp_path):
    found = snapshot.read((tmp_path / "a/__cluster_metadata-0/00000000000000000000-0000000000.checkpoint").read_bytes())
    assert (found.kraft_version, found.records) == (1, [])
    return found.voters.voters


def test_a_quorum_of_one(format_, dynamic, tmp_path):
    ran = format_(dynamic, "--standalone")
    assert f"Formatting dynamic metadata voter directory {tmp_path}/a with metadata.version 4.3-IV0.\n" in ran.out
    (voter,) = voters(tmp_path)
    (endpoint,) = voter.endpoints
    assert (voter.voter_id, endpoint.name, endpoint.host, endpoint.port) == (1, "CONTROLLER", "127.0.0.1", 9093)
    assert voter.k_raft_version_feature.max_supported_version == 1
    assert f"directory.id={voter.voter_directory_id}\n" in (tmp_path / "a/meta.properties").read_text()
    assert str(voter.voter_directory_id) not in (tmp_path / "b/meta.properties").read_text()
    assert not (tmp_path / "b/__cluster_metadata-0").exists()


def test_initial_controllers(format_, dynamic, tmp_path):
    other = "AAAAAAAAAAAAAAAAAAAAVA"
    ran = format_(dynamic, "-I", f"1@127.0.0.1:9093:{ID},2@[::1]:9094:{other}")
    assert f"Formatting dynamic metadata voter directory {tmp_path}/a with" in ran.out
    assert [(voter.voter_id, str(voter.voter_directory_id)) for voter in voters(tmp_path)] == [(1, ID), (2, other)]
    assert f"directory.id={ID}\n" in (tmp_path / "a/meta.properties").read_text()


def test_a_node_that_is_not_among_the_initial_controllers(format_, dynamic, tmp_path):
    ran = format_(dynamic, "-I", f"2@127.0.0.1:9093:{ID}")
    assert f"Formatting dynamic metadata directory {tmp_path}/a with" in ran.out
    assert ID not in (tmp_path / "a/meta.properties").read_text().partition("directory.id=")[2].partition("\n")[0]


def test_no_initial_controllers(format_, properties, dynamic, tmp_path):
    assert f"Formatting metadata directory {tmp_path}/a with" in format_(dynamic, "--no-initial-controllers").out
    assert not (tmp_path / "a/__cluster_metadata-0").exists()
    assert format_(properties, "--standalone", "--no-initial-controllers").code == 2


def test_only_a_controller_stands_alone(format_, tmp_path):
    path = tmp_path / "broker.properties"
    path.write_text(
        "process.roles=broker\nnode.id=1\nlisteners=PLAINTEXT://127.0.0.1:9092\ncontroller.listener.names=CONTROLLER\n"
        f"controller.quorum.bootstrap.servers=127.0.0.1:9093\nlog.dirs={tmp_path}/a\n"
    )
    assert "You can only use --standalone on a controller." in format_(str(path), "--standalone").err
    assert f"Formatting metadata directory {tmp_path}/a with" in format_(str(path)).out


def test_a_fixed_quorum_has_no_initial_controllers(call, properties):
    ran = call("kafka-storage", "format", "-t", ID, "-c", properties, "--no-initial-controllers")
    assert (ran.code, ran.out.count("Formatting ")) == (0, 2)


def test_version_mapping(call):
    newest = (
        "metadata.version=30 (4.3-IV0)\nkraft.version=1\ntransaction.version=2\ngroup.version=1\n"
        "eligible.leader.replicas.version=1\n"
    )
    assert call("storage", "version-mapping").out == newest
    older = call("kafka-storage", "version-mapping", "-r", "3.8")
    assert (
        older.out == "metadata.version=20 (3.8)\nkraft.version=0\ntransaction.version=0\ngroup.version=0\n"
        "eligible.leader.replicas.version=0\n"
    )
    assert "Unknown metadata.version '1'" in call("storage", "version-mapping", "-r", "1").err


def test_feature_dependencies(call):
    flags = ("-f", "eligible.leader.replicas.version=1", "-f", "metadata.version=30", "--feature", "kraft.version=1")
    assert call("kafka-storage", "feature-dependencies", *flags).out == (
        "eligible.leader.replicas.version=1 requires:\n    metadata.version=23 (4.0-IV1)\n"
        "metadata.version=30 (4.3-IV0) has no dependencies.\nkraft.version=1 has no dependencies.\n"
    )
    assert "Unsupported feature: foo" in call("storage", "feature-dependencies", "-f", "foo=1").err
