"""Metrics of the group coordinator, by Kafka's names.

Always true: groups are counted when a scrape asks, on the node that coordinates them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from strandline.groups.classic.group import ClassicGroupState as ClassicState
from strandline.groups.consumer.group import ConsumerGroupState as ConsumerState
from strandline.node.observation.node import NodeObservation
from strandline.node.observation.shards import ObservedGroupStats

MANAGER = "kafka_coordinator_group_groupmetadatamanager"
COORDINATOR = "kafka_server_group_coordinator_metrics"


def of_groups(observed: NodeObservation) -> Iterator[Metric]:
    states = Counter(state for shard in observed.shards for state in shard.group_states())
    active = sum(shard.is_loaded for shard in observed.shards)
    yield _gauge(f"{MANAGER}_numgroups", "Groups that this broker coordinates.", sum(states.values()))
    yield _gauge(f"{MANAGER}_numoffsets", "Their committed offsets.", sum(s.offset_count for s in observed.shards))
    for state in ClassicState:
        name = f"{MANAGER}_numgroups{state.value.lower()}"
        yield _gauge(name, f"Classic groups that are {state.value}.", states["classic", state.value])
    by_protocol = GaugeMetricFamily(f"{COORDINATOR}_group_count", "Groups by protocol.", labels=("protocol",))
    for protocol in ("classic", "consumer"):
        by_protocol.add_metric((protocol,), sum(count for key, count in states.items() if key[0] == protocol))
    by_state = GaugeMetricFamily(f"{COORDINATOR}_consumer_group_count", "KIP-848 groups by state.", labels=("state",))
    for consumer_state in ConsumerState:
        by_state.add_metric((consumer_state.value.lower(),), states["consumer", consumer_state.value])
    partitions = GaugeMetricFamily(
        f"{COORDINATOR}_num_partitions", "Partitions of __consumer_offsets that are led here.", labels=("state",)
    )
    partitions.add_metric(("active",), active)
    partitions.add_metric(("loading",), sum(not shard.is_loaded for shard in observed.shards))
    yield from (by_protocol, by_state, partitions)
    yield from _counts(observed.group_stats)


def _counts(stats: ObservedGroupStats) -> Iterator[Metric]:
    yield _gauge(f"{COORDINATOR}_partition_load_time_max", "Milliseconds of the longest load.", stats.load_s_max * 1000)
    for name, help_, value in (
        ("partition_load", "Partitions that were read back.", stats.loads),
        ("partition_load_failed", "Times that this failed.", stats.failed_loads),
        ("partition_load_time", "Milliseconds that it took.", stats.load_s * 1000),
        ("offset_commit", "Offsets that were committed.", stats.offset_commits),
        ("offset_deletion", "Offsets that were removed, for whatever reason.", stats.offset_deletions),
        ("offset_expiration", "Offsets that no member came back for.", stats.offset_expirations),
        ("rebalance", "Generations and group epochs that were written down.", stats.rebalances),
        ("batch", "Batches that were appended to __consumer_offsets.", stats.batches),
        ("write_timeout", "Batches that were not committed in time.", stats.timeouts),
    ):
        yield CounterMetricFamily(f"{COORDINATOR}_{name}", help_, value=value)


def _gauge(name: str, help_: str, value: float) -> Metric:
    return GaugeMetricFamily(name, help_, value=value)
