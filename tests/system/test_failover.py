"""A leader that dies, leaves or stands still while clients write and read: they notice nothing but a pause.

How long that pause is, is measured in bench/; here only what was promised of the records counts.
"""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.judges.java import Run, judge
from tests.system.copies import assert_equal_on_disk, ends, events
from tests.system.load import all_in_sync, leaders, load, make_topic
from tests.system.local import Cluster, strandline, up
from tests.system.server import eventually

NODES = (1, 2, 3)
PRODUCER = "org.apache.kafka.tools.VerifiableProducer"
CONSOLE_PRODUCER = "org.apache.kafka.tools.ConsoleProducer"
CONSOLE_CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
CHECKPOINTS_SOON = ("--config", "replica.high.watermark.checkpoint.interval.ms=500")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with up(tmp_path_factory.mktemp("failover") / "cluster", 3, 0, *CHECKPOINTS_SOON) as started:
        yield started


def led_by(cluster: Cluster, leader: int, name: str) -> str:
    """A topic of one partition that survives the loss of a broker, led by this one."""
    others = [node_id for node_id in NODES if node_id != leader]
    return make_topic(cluster, name, [[leader, *others]], min_insync_replicas="2")


def ordinary(cluster: Cluster) -> int:
    """A broker that is not the active controller."""
    return next(node_id for node_id in NODES if node_id != cluster.active())


@pytest.mark.parametrize("also_controller", [False, True], ids=["a broker", "the active controller too"])
def test_the_leader_is_killed(cluster: Cluster, also_controller: bool) -> None:
    leader = cluster.active() if also_controller else ordinary(cluster)
    topic = led_by(cluster, leader, f"killed-{leader}-{also_controller}")
    with load(cluster, topic) as running:
        cluster.kill(leader)
        running.more()
        cluster.restart(leader)
        all_in_sync(cluster, topic)
        running.more()
        running.check()
    assert leaders(cluster.bootstrap, topic) != [leader]
    assert_equal_on_disk(cluster, topic, 1, ends(running.acknowledged))


def test_the_leader_is_told_to_stop(cluster: Cluster) -> None:
    """Rule B14."""
    leader = ordinary(cluster)
    topic = led_by(cluster, leader, "told-to-stop")
    with load(cluster, topic) as running:
        cluster.stop(leader)
        running.more()
        cluster.restart(leader)
        all_in_sync(cluster, topic)
        running.check()
    assert_equal_on_disk(cluster, topic, 1, ends(running.acknowledged))
    assert not [event for event in events(cluster, topic) if event["kind"] == "leader lost"]


@pytest.mark.parametrize("also_controller", [False, True], ids=["a broker", "the active controller too"])
def test_the_leader_stands_still_and_wakes_up_deposed(cluster: Cluster, also_controller: bool) -> None:
    leader = cluster.active() if also_controller else ordinary(cluster)
    topic = led_by(cluster, leader, f"stood-still-{leader}-{also_controller}")
    with load(cluster, topic) as running:
        with cluster.paused(leader):
            others = cluster.without(leader)
            eventually(lambda: leaders(others, topic) not in ([leader], [-1]), "another broker leads", 60)
        running.more()
        all_in_sync(cluster, topic)
        running.check()
    assert_equal_on_disk(cluster, topic, 1, ends(running.acknowledged))


def test_the_first_replica_leads_again_when_it_is_asked_for(cluster: Cluster) -> None:
    leader = ordinary(cluster)
    topic = led_by(cluster, leader, "elected")
    cluster.kill(leader)
    eventually(lambda: leaders(cluster.bootstrap, topic) not in ([leader], [-1]), "another broker leads", 30)
    cluster.restart(leader)
    all_in_sync(cluster, topic)
    assert leaders(cluster.bootstrap, topic) != [leader]
    strandline("elect", f"{topic}-0", *cluster.server)
    eventually(lambda: leaders(cluster.bootstrap, topic) == [leader], "the preferred leader leads", 30)


@pytest.mark.java
def test_the_java_clients_lose_nothing_with_the_leader(cluster: Cluster, tmp_path: Path) -> None:
    kafka = judge()
    leader = ordinary(cluster)
    topic = led_by(cluster, leader, "java")
    config = tmp_path / "producer.properties"
    config.write_text("enable.idempotence=true\nretries=2147483647\nlinger.ms=1\nretry.backoff.ms=20\n")
    arguments = ("--topic", topic, "--max-messages", "4000", "--throughput", "1000", "--acks", "-1")
    command = kafka.command(PRODUCER, *cluster.server, *arguments, "--command-config", str(config))
    killer = threading.Thread(target=cluster.kill, args=(leader,))
    sent: list[tuple[int, str]] = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as producer:
        assert producer.stdout is not None
        for event in map(json.loads, producer.stdout):
            assert event["name"] != "producer_send_error", event
            if event["name"] == "producer_send_success":
                sent.append((event["offset"], event["value"]))
                if len(sent) == 500:
                    killer.start()
    assert producer.returncode == 0
    killer.join()
    assert leaders(cluster.without(leader), topic) != [leader]
    assert [value for _, value in sorted(sent)] == [str(number) for number in range(4000)]
    assert [offset for offset, _ in sorted(sent)] == list(range(4000))

    console = ("--topic", topic, "--command-property")
    lines = "".join(f"by hand {number}\n" for number in range(10))
    reading = ("--topic", topic, "--partition", "0", "--offset", "earliest", "--max-messages", "4010")
    shown = ("--formatter-property", "print.offset=true", "--formatter-property", "print.partition=true")
    survivors = ("--bootstrap-server", cluster.without(leader))
    wrote, read = kafka.run_all(
        [
            Run(CONSOLE_PRODUCER, (*survivors, *console, "acks=all"), lines),
            Run(CONSOLE_CONSUMER, (*survivors, *reading, *shown)),
        ]
    )
    wrote.check()
    values = [*map(str, range(4000)), *lines.splitlines()]
    assert read.check().out.splitlines() == [f"Partition:0\tOffset:{n}\t{value}" for n, value in enumerate(values)]
    cluster.restart(leader)
    all_in_sync(cluster, topic)
    assert_equal_on_disk(cluster, topic, 1, {0: 4010})
