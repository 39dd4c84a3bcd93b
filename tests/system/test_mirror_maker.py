"""MirrorMaker 2 copies topics from Apache Kafka to us, and each keeps its whole configuration."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from bench.kafka_cluster import kafka_cluster

from strandline.client import blocking
from strandline.client.flow.described import ConfigResource, NewTopic, ResourceType
from strandline.config.alter import Alteration, Op
from tests.judges import mirror_maker
from tests.judges.java import judge
from tests.system.server import Server, eventually, format_data, running

pytestmark = pytest.mark.java

PATIENCE_S = 120.0
DYNAMIC_TOPIC_CONFIG = 1
COPIED = {
    "plain": {},
    "tuned": {"retention.ms": "123456", "cleanup.policy": "compact,delete", "max.message.bytes": "54321"},
    "tiered": {
        "retention.ms": "654321",
        "local.retention.ms": "1000",
        "local.retention.bytes": "2000",
        "remote.log.copy.disable": "true",
    },
    "allocated": {"preallocate": "true", "segment.bytes": "2097152"},
}


@pytest.fixture(scope="module")
def source() -> Iterator[str]:
    judge()
    mirror_maker.judge()
    with kafka_cluster(1, heap="400m") as cluster:
        yield cluster.bootstrap


@pytest.fixture
def target(tmp_path: Path) -> Iterator[Server]:
    format_data(tmp_path / "data")
    with running(tmp_path, tmp_path / "data") as server:
        yield server


def own_configs(admin: blocking.Admin, topic: str) -> dict[str, str | None] | None:
    """What was set for the topic itself; None while it is not there."""
    resource = ConfigResource(ResourceType.TOPIC, topic)
    entries = admin.describe_configs([resource])[resource]
    if isinstance(entries, Exception):
        return None
    return {entry.name: entry.value for entry in entries if entry.source == DYNAMIC_TOPIC_CONFIG}


def test_a_mirrored_topic_keeps_its_configuration(source: str, target: Server, tmp_path: Path) -> None:
    with blocking.Client(source) as at_source, blocking.Client(target.bootstrap) as at_target:
        kafka, ours = blocking.Admin(at_source), blocking.Admin(at_target)
        made = kafka.create_topics([NewTopic(name, 2, 1, configs=configs) for name, configs in COPIED.items()])
        assert not [answer for answer in made.values() if isinstance(answer, Exception)]
        with mirror_maker.mirroring(tmp_path, source, target.bootstrap, "|".join(COPIED)) as log:

            def are(expected: dict[str, dict[str, str]]) -> bool:
                found = {name: own_configs(ours, f"source.{name}") for name in expected}
                return found == expected

            def story() -> str:
                found = {name: own_configs(ours, f"source.{name}") for name in COPIED}
                return f"the copies have {found}\n{log.read_text(errors='replace')[-3000:]}\n{target.log_tail()}"

            try:
                eventually(lambda: are(COPIED) or None, "every topic is there with its configuration", PATIENCE_S)
                resource = ConfigResource(ResourceType.TOPIC, "tiered")
                changes = [Alteration("retention.ms", Op.SET, "777"), Alteration("preallocate", Op.SET, "true")]
                changes.append(Alteration("local.retention.ms", Op.DELETE, None))
                assert kafka.alter_configs({resource: changes}) == {resource: None}
                changed = {**COPIED["tiered"], "retention.ms": "777", "preallocate": "true"}
                del changed["local.retention.ms"]
                expected = {**COPIED, "tiered": changed}
                eventually(lambda: are(expected) or None, "a change of the source arrives", PATIENCE_S)
            except AssertionError as error:
                raise AssertionError(f"{error}\n{story()}") from None
    assert "source.tiered: preallocate=true has no effect" in target.log.read_text()
