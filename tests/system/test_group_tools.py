"""Groups in the hands of Kafka's own tools, unchanged, and our `kafka-consumer-groups` beside them: the same flags, the same lines.

Kafka's tool prints groups, members and partitions in the order of a hash table, so it is lines that are compared, sorted.
"""

# mypy: disable-error-code="misc"

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from confluent_kafka import Producer

from strandline.cli.kafka_tools.kafka_consumer_groups import kafka_consumer_groups
from strandline.client.blocking import Admin, Client
from strandline.client.core.group.offsets import OffsetAndMetadata
from strandline.errors import KafkaError
from tests.judges.java import Kafka, Result, Run, judge
from tests.system.group_members import GROUPS_SOON, LATEST, Group, group
from tests.system.load import make_topic
from tests.system.local import Cluster, up

GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
ALL_GROUPS = "org.apache.kafka.tools.GroupsCommand"
CONSOLE = "org.apache.kafka.tools.consumer.ConsoleConsumer"
DUMP = "org.apache.kafka.tools.DumpLogSegments"
PARTITIONS = 3
OLD, NEW = 7, 5
"""Records of three hours ago and of now in each partition."""
COMMITTED = {0: 2, 1: 8}
"""By the groups that rest; nothing of the last partition."""
THEIRS, OURS = "resting-a", "resting-b"
"""Groups in the same state, one for Kafka's tool and one for ours: what changes a group can be done once."""
EXCEPTION = re.compile(r"org\.apache\.kafka\.common\.errors\.\w+: ")
"""Kafka's tool prints the class of an error before what it says."""

pytestmark = pytest.mark.java


@pytest.fixture(scope="module")
def kafka() -> Kafka:
    return judge()


@pytest.fixture(scope="module")
def cluster(kafka: Kafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    one_partition = ("--config", "offsets.topic.num.partitions=1")
    with up(tmp_path_factory.mktemp("group-tools") / "cluster", 3, 0, *GROUPS_SOON, *one_partition) as started:
        make_topic(started, "read", [[1, 2], [2, 3], [3, 1]])
        make_topic(started, "other", [[2, 3]])
        fill(started)
        yield started


def fill(cluster: Cluster) -> None:
    now_ms = time.time_ns() // 1_000_000
    producer = Producer({"bootstrap.servers": cluster.bootstrap})
    for partition in range(PARTITIONS):
        for number in range(OLD + NEW):
            timestamp = now_ms - (3 * 3_600_000 if number < OLD else 0)
            producer.produce("read", b"%d" % number, partition=partition, timestamp=timestamp)
    for number in range(OLD + NEW):
        producer.produce("other", b"%d" % number, partition=0)
    assert producer.flush(30) == 0


@pytest.fixture(scope="module")
def admin(cluster: Cluster) -> Iterator[Admin]:
    with Client(cluster.bootstrap) as client:
        yield Admin(client)


@pytest.fixture(scope="module")
def living(cluster: Cluster) -> Iterator[list[Group]]:
    """A group of each protocol, with two members, one of them static."""
    with group(cluster, "read", PARTITIONS, "classic") as classic, group(cluster, "read", PARTITIONS, "newer") as newer:
        for found, kind in ((classic, "confluent range"), (newer, "confluent consumer")):
            found.start(kind)
            found.start(kind, instance="known")
            found.written = OLD + NEW
        for found in (classic, newer):
            found.divided(1, 2)
            found.reads_all()
            found.committed_to_the_end()
        yield [classic, newer]


def rest(admin: Admin, *names: str) -> None:
    """Groups without members."""
    for name in names:
        offsets = {
            ("read", partition): OffsetAndMetadata(offset, -1, "by hand") for partition, offset in COMMITTED.items()
        }
        assert set(admin.alter_group_offsets(name, offsets | {("other", 0): OffsetAndMetadata(1)}).values()) == {None}


def ours(cluster: Cluster, arguments: Sequence[str]) -> Result:
    done = CliRunner().invoke(kafka_consumer_groups, [*cluster.server, *arguments], standalone_mode=False)
    assert done.exception is None, (arguments, done.exception)
    return Result(done.return_value, done.stdout, done.stderr)


def both(kafka: Kafka, cluster: Cluster, calls: Sequence[Sequence[str]]) -> list[tuple[Result, Result]]:
    """Each call by Kafka's tool and by ours; THEIRS in it is OURS for ours."""
    theirs = kafka.run_all([Run(GROUPS, (*cluster.server, *call)) for call in calls])
    mine = [ours(cluster, [word.replace(THEIRS, OURS) for word in call]) for call in calls]
    return list(zip(theirs, mine, strict=True))


def assert_the_same_lines(kafka: Kafka, cluster: Cluster, calls: Sequence[Sequence[str]]) -> list[str]:
    """What Kafka's tool printed each time."""
    printed = []
    for call, (theirs, mine) in zip(calls, both(kafka, cluster, calls), strict=True):
        named = EXCEPTION.sub("", theirs.out.replace(THEIRS, OURS) if THEIRS in call else theirs.out)
        assert sorted(mine.out.splitlines()) == sorted(named.splitlines()), (call, theirs, mine)
        # Kafka's tool ends with 0 whatever happened; with ours a script can tell.
        assert mine.code == int("Error: Executing" in mine.out), (call, mine)
        printed.append(theirs.out)
    return printed


def test_list_and_describe(kafka: Kafka, cluster: Cluster, admin: Admin, living: list[Group]) -> None:
    rest(admin, THEIRS, OURS)
    listing = [
        "",
        "--state",
        "--type",
        "--state Stable",
        "--state stable,empty",
        "--type consumer",
        "--state --type Classic",
    ]
    lists = [["--list", *words.split()] for words in listing]
    views = [f"{view} {verbose}" for view in ("", "--members", "--state") for verbose in ("", "--verbose")]
    scopes = ["--group classic", f"--group newer --group {OURS}", "--all-groups"]
    describes = [["--describe", *scope.split(), *view.split()] for scope in scopes for view in views]
    describes.append(["--describe", "--group", "newer", "--offsets"])
    unknown = [["--describe", "--group", "nobody", *view.split()] for view in ("", "--members", "--state")]
    printed = assert_the_same_lines(kafka, cluster, [*lists, *describes, *unknown])
    assert set(printed[0].split()) == {"classic", "newer", THEIRS, OURS}
    assert re.search(r"newer +Consumer +Stable|newer +Stable", printed[1])
    verbose = printed[len(lists) + 3]
    assert " known " in verbose, "the static member's name"
    everything = "\n".join(printed)
    assert "read:0" in everything or "read(0" in everything or "0:(read" in everything, "assignments are shown"


def test_all_kinds_of_groups_are_listed(kafka: Kafka, cluster: Cluster, admin: Admin, living: list[Group]) -> None:
    rest(admin, OURS)
    every, consumers = kafka.run_all(
        [Run(ALL_GROUPS, (*cluster.server, "--list", *more)) for more in ((), ("--group-type", "consumer"))]
    )
    rows = {line.split()[0]: line.split()[1:] for line in every.check().out.splitlines()[1:] if line.strip()}
    assert rows["classic"] == ["Classic", "consumer"]
    assert rows["newer"] == ["Consumer", "consumer"]
    assert rows[OURS] == ["Classic"]
    assert [line.split()[0] for line in consumers.check().out.splitlines()[1:] if line.strip()] == ["newer"]


def test_offsets_are_reset(kafka: Kafka, cluster: Cluster, admin: Admin, tmp_path: Path) -> None:
    rest(admin, THEIRS, OURS)
    old = "2020-01-01T00:00:00.000"
    scenarios = [
        "--to-earliest",
        "--to-latest",
        "--to-current",
        "--to-offset 4",
        "--shift-by 3",
        "--shift-by -1",
        f"--to-datetime {old}",
        f"--to-datetime {old}Z",
        f"--to-datetime {old}+02:00",
        "--by-duration PT1H",
        "--by-duration P10D",
    ]
    file = tmp_path / "plan.csv"
    file.write_text("read,0,3\nread,2,5\n")
    files = [f"--from-file {file} {way}" for way in ("--dry-run", "--execute", "--execute --export")]
    calls = [f"--topic read {scenario} {way}" for scenario in scenarios for way in ("--dry-run", "--execute")]
    calls += [f"--all-topics {scenario} {way}" for scenario in scenarios[:4] for way in ("--export", "--execute")]
    calls += [f"--topic read:0,2 --topic other {scenario} --execute" for scenario in scenarios[:5]]
    calls = [["--reset-offsets", "--group", THEIRS, *call.split()] for call in (*calls, *files)]
    printed = assert_the_same_lines(kafka, cluster, calls)
    assert f"{THEIRS:30} {'read':30} {2:<10} {OLD:<15}".split() in [line.split() for line in printed[18].splitlines()]
    found = admin.list_group_offsets({THEIRS: None, OURS: None})
    assert found[THEIRS] == found[OURS]
    together = [["--reset-offsets", "--all-groups", "--all-topics", "--to-current", "--export", "--dry-run"]]
    assert_the_same_lines(kafka, cluster, together)


def test_a_reset_beyond_the_ends(kafka: Kafka, cluster: Cluster, admin: Admin) -> None:
    """It is cut, and that is no part of a plan that is exported."""
    rest(admin, THEIRS, OURS)
    reset = ("--reset-offsets", "--group", THEIRS, "--topic", "read:0,1")
    calls = [[*reset, *ends, "--export"] for ends in (("--to-offset", "400"), ("--shift-by", "-1000"))]
    assert_the_same_lines(kafka, cluster, calls)


def test_a_group_that_is_alive_is_left_alone(kafka: Kafka, cluster: Cluster, living: list[Group]) -> None:
    calls = [
        ["--reset-offsets", "--group", "classic", "--all-topics", "--to-earliest", "--execute"],
        ["--reset-offsets", "--group", "newer", "--topic", "read", "--to-earliest", "--execute"],
    ]
    for printed in assert_the_same_lines(kafka, cluster, calls):
        assert "is inactive, but the current state is Stable" in printed
    refused = [
        (["--delete", "--group", "classic"], "could not be deleted"),
        (["--delete", "--group", "newer"], "could not be deleted"),
        (["--delete-offsets", "--group", "classic", "--topic", "read"], "some partition-level error"),
        (["--delete-offsets", "--group", "newer", "--topic", "read:1"], "some partition-level error"),
    ]
    for (call, reason), (theirs, mine) in zip(
        refused, both(kafka, cluster, [call for call, _ in refused]), strict=True
    ):
        assert mine.code == theirs.code, call
        assert reason in theirs.out + theirs.err, theirs
        assert reason in mine.out + mine.err, mine
    for found in living:
        found.committed_to_the_end()


def test_offsets_and_groups_are_deleted(kafka: Kafka, cluster: Cluster, admin: Admin) -> None:
    rest(admin, THEIRS, OURS)
    calls = [
        ["--delete-offsets", "--group", THEIRS, "--topic", "read:1"],
        ["--delete-offsets", "--group", THEIRS, "--topic", "other"],
        ["--describe", "--group", THEIRS],
        ["--delete", "--group", THEIRS],
        ["--describe", "--group", THEIRS],
    ]
    printed = assert_the_same_lines(kafka, cluster, calls)
    assert "read" in printed[2]
    assert "other" not in printed[2]
    assert "not found" in printed[4]
    gone = [calls[3], calls[0]]
    for call, results in zip(gone, both(kafka, cluster, gone), strict=True):
        for result in results:
            assert re.search("not exist|not found|not be found|GROUP_ID_NOT_FOUND", result.out), (call, result)


def test_kafka_reads_what_the_coordinator_wrote(
    kafka: Kafka, cluster: Cluster, admin: Admin, living: list[Group], tmp_path: Path
) -> None:
    """From the files and over the wire."""
    rest(admin, "written")
    directory = next(iter(sorted(cluster.directory.glob("node-*/data/__consumer_offsets-0"))))
    segments = ",".join(map(str, sorted(directory.glob("*.log"))))
    end = admin.list_offsets({("__consumer_offsets", 0): LATEST})["__consumer_offsets", 0]
    assert not isinstance(end, KafkaError)
    place = ("--topic", "__consumer_offsets", "--partition", "0", "--offset", "earliest")
    wire = (*place, "--max-messages", str(end.offset), "--timeout-ms", "30000")
    dumped, offsets, metadata = kafka.run_all(
        [
            Run(DUMP, ("--offsets-decoder", "--files", segments)),
            *(
                Run(CONSOLE, (*cluster.server, *wire, "--formatter", f"org.apache.kafka.tools.consumer.{formatter}"))
                for formatter in ("OffsetsMessageFormatter", "GroupMetadataMessageFormatter")
            ),
        ]
    )
    assert {"classic", "newer", "written"} <= set(re.findall(r'"group(?:Id)?":"([^"]+)"', dumped.check().out))
    assert '"classicMemberMetadata":null' in dumped.out
    assert '"classicMemberMetadata":{' not in dumped.out, "members of the consumer protocol are taken for what they are"
    rows = [(row["key"]["data"], row["value"]) for row in documents(offsets.out)]
    by_hand = [(key, value["data"]) for key, value in rows if (key["group"], key["topic"]) == ("written", "read")]
    assert {key["partition"]: value["offset"] for key, value in by_hand} == COMMITTED
    assert {value["metadata"] for _, value in by_hand} == {"by hand"}
    known = [
        row for row in documents(metadata.out) if row["key"]["data"]["group"] == "classic" and row["value"] is not None
    ]
    assert known[-1]["value"]["data"]["protocol"] == "range"
    assert len(known[-1]["value"]["data"]["members"]) == 2


def documents(text: str) -> list[dict[str, Any]]:
    """One after another, as the formatters write them."""
    decoder, position, found = json.JSONDecoder(), 0, []
    while position < len(text):
        document, position = decoder.raw_decode(text, position)
        found.append(document)
    return found
