"""Asking for some configs and some partitions only: what the broker is asked, and what is handed on."""

# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

from typing import Any

from strandline.client.flow.descriptions import ConfigResource, LogDirReplica, ResourceType
from strandline.wire import messages

from .test_cluster_admin import through_a_broker

DESCRIBE_CONFIGS, DESCRIBE_LOG_DIRS = 32, 35


def test_configs_of_some_names_or_all():
    def described(_: Any) -> Any:
        R = messages.response(DESCRIBE_CONFIGS)
        entry = R.DescribeConfigsResourceResult(name="message.timestamp.type", value="LogAppendTime")
        return R(results=[R.DescribeConfigsResult(resource_type=2, resource_name="t", configs=[entry])])

    topic = ConfigResource(ResourceType.TOPIC, "t")
    with through_a_broker({DESCRIBE_CONFIGS: described}) as (admin, node):
        found = admin.describe_configs([topic], names=["message.timestamp.type"])[topic]
        admin.describe_configs([topic])
    assert isinstance(found, list)
    assert [(entry.name, entry.value) for entry in found] == [("message.timestamp.type", "LogAppendTime")]
    keys = [request.resources[0].configuration_keys for request in node.of(DESCRIBE_CONFIGS)]
    assert keys == [["message.timestamp.type"], None]


def test_log_dirs_of_some_partitions_or_all():
    def described(_: Any) -> Any:
        R = messages.response(DESCRIBE_LOG_DIRS)
        partition = R.DescribeLogDirsPartition(partition_index=1, partition_size=500, offset_lag=0)
        topic = R.DescribeLogDirsTopic(name="t", partitions=[partition])
        return R(results=[R.DescribeLogDirsResult(log_dir="/data", topics=[topic])])

    with through_a_broker({DESCRIBE_LOG_DIRS: described}) as (admin, node):
        ((log_dir,),) = admin.describe_log_dirs([1], [("t", 0), ("u", 3), ("t", 1)]).values()
        admin.describe_log_dirs([1])
    assert log_dir.replicas == {("t", 1): LogDirReplica(500, 0, False)}
    some, everything = node.of(DESCRIBE_LOG_DIRS)
    assert [(topic.topic, list(topic.partitions)) for topic in some.topics] == [("t", [0, 1]), ("u", [3])]
    assert everything.topics is None
