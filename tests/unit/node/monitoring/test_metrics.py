"""The numbers, by Kafka's names."""

# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

from dataclasses import replace
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from strandline.api.requests.request_stats import RequestStats
from strandline.node.monitoring.metrics import NodeMetrics, totals
from strandline.node.observation.node import NodeObservation
from tests.unit.metadata.images import an_image

from .conftest import Looked


def samples(metrics: NodeMetrics) -> dict[tuple[str, ...], float]:
    """Values by name and labels."""
    found: dict[tuple[str, ...], float] = {}
    for family in text_string_to_metric_families(b"".join(metrics.pages()).decode()):
        for sample in family.samples:
            key = (sample.name, *(f"{name}={value}" for name, value in sorted(sample.labels.items())))
            assert key not in found, key
            found[key] = sample.value
    return found


def measured(play: Any, story: Any) -> None:
    async def with_metrics(stage):
        looked = Looked(stage)
        await story(stage, looked, looked.metrics())

    play(with_metrics)


def test_a_brokers_partitions(play):
    async def story(stage, looked, metrics):
        partition = await stage.create("a")
        await stage.create("b")
        found = samples(metrics)
        prefix = "kafka_server_replicamanager"
        assert found[f"{prefix}_leadercount",] == found[f"{prefix}_partitioncount",] == 2
        assert found[f"{prefix}_underreplicatedpartitions",] == 0
        assert found[f"{prefix}_underminisrpartitioncount",] == 0
        assert found[f"{prefix}_atminisrpartitioncount",] == 2
        assert found[f"{prefix}_offlinereplicacount",] == 0
        partition.fail()
        assert samples(metrics)[f"{prefix}_offlinereplicacount",] == 1
        assert found["kafka_server_kafkaserver_brokerstate",] == 3

    measured(play, story)


def test_a_partitions_log_and_replicas(play):
    async def story(stage, looked, metrics):
        partition = await stage.create("a")
        partition.high_watermark = 0
        found = samples(metrics)
        place = ("partition=0", "topic=a")
        assert found["kafka_log_log_numlogsegments", *place] == 1
        assert found["kafka_log_log_size", *place] == partition.log.size
        assert found["strandline_high_watermark", *place] == 0
        assert found["kafka_cluster_partition_insyncreplicascount", *place] == 1
        assert found["kafka_cluster_partition_underreplicated", *place] == 0

    measured(play, story)


def test_topics_and_all_of_them(play):
    async def story(stage, looked, metrics):
        looked.topics["a"].bytes_in += 100
        looked.topics["b"].bytes_in += 11
        looked.topics["b"].messages_in += 1
        looked.topics.of_no_topic.failed_produce_requests += 1
        looked.topics.forget("b")
        found = samples(metrics)
        prefix = "kafka_server_brokertopicmetrics"
        assert found[f"{prefix}_bytesin_total",] == 111
        assert found[f"{prefix}_bytesin_total", "topic=a"] == 100
        assert (f"{prefix}_bytesin_total", "topic=b") not in found
        assert found[f"{prefix}_messagesin_total",] == 1
        assert found[f"{prefix}_failedproducerequests_total",] == 1

    measured(play, story)


def test_requests_their_times_and_errors(play):
    async def story(stage, looked, metrics):
        looked.requests.of(0, 9).answered(0.0002)
        looked.requests.of(0, 9).answered(0.003)
        looked.requests.of(0, 12).answered(99.0)
        looked.requests.failed(0, 6)
        found = samples(metrics)
        prefix = "kafka_network_requestmetrics"
        assert found[f"{prefix}_requests_total", "request=Produce", "version=9"] == 2
        assert found[f"{prefix}_requests_total", "request=Produce", "version=12"] == 1
        assert found[f"{prefix}_totaltimems_bucket", "le=0.1", "request=Produce"] == 0
        assert found[f"{prefix}_totaltimems_bucket", "le=0.25", "request=Produce"] == 1
        assert found[f"{prefix}_totaltimems_bucket", "le=5", "request=Produce"] == 2
        assert found[f"{prefix}_totaltimems_bucket", "le=+Inf", "request=Produce"] == 3
        assert found[f"{prefix}_totaltimems_count", "request=Produce"] == 3
        assert round(found[f"{prefix}_totaltimems_sum", "request=Produce"], 3) == 99_003.2
        assert found[f"{prefix}_errors_total", "error=NOT_LEADER_OR_FOLLOWER", "request=Produce"] == 1

    measured(play, story)


def test_the_controller_and_the_quorum(play):
    async def story(stage, looked, metrics):
        await stage.create("a")
        found = samples(metrics)
        prefix = "kafka_controller_kafkacontroller"
        assert found[f"{prefix}_activecontrollercount",] == 1
        assert found[f"{prefix}_globalpartitioncount",] == found[f"{prefix}_activebrokercount",] == 1
        assert found[f"{prefix}_offlinepartitionscount",] == found[f"{prefix}_fencedbrokercount",] == 0
        assert found["kafka_server_raft_metrics_current_leader",] == 1
        assert (
            found["kafka_server_raft_metrics_log_end_offset",] >= found["kafka_server_raft_metrics_high_watermark",] > 0
        )
        await stage.create("b")
        assert samples(metrics)[f"{prefix}_globaltopiccount",] == 2

    measured(play, story)


def test_isr_changes_and_events_are_counted(play):
    async def story(stage, looked, metrics):
        looked.events.isr_shrinks += 2
        looked.node.broker_server.replication._isr_updates.failed = 3
        looked.events.note("truncated", "because")
        found = samples(metrics)
        assert found["kafka_server_replicamanager_isrshrinks_total",] == 2
        assert found["kafka_server_replicamanager_failedisrupdates_total",] == 3
        assert found["strandline_events_total", "kind=truncated"] == 1

    measured(play, story)


def test_totals_of_any_image():
    for seed in range(20):
        image = an_image(seed)
        counted = totals(image)
        assert counted.partitions == sum(len(topic.partitions) for topic in image.topics.values())
        assert counted.active_brokers + counted.fenced_brokers == len(image.brokers)
        assert 0 <= counted.offline <= counted.imbalanced <= counted.partitions


def test_two_nodes_in_one_process_keep_to_themselves(play):
    async def story(stage, looked, metrics):
        parts = looked.node.parts
        other_parts = replace(parts, context=replace(parts.context, request_stats=RequestStats()))
        other = NodeMetrics(NodeObservation(lambda: other_parts), looked.clock, lambda: 0)
        looked.requests.refused += 5
        assert samples(metrics)["strandline_requests_refused_total",] == 5
        assert samples(other)["strandline_requests_refused_total",] == 0

    measured(play, story)
