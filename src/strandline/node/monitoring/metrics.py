"""The node's metrics, by Kafka's names in the spelling of Prometheus; those of groups, transactions, the cleaner and limits
are named in `*_metrics.py` beside this file.

Kafka's `kafka.server:type=ReplicaManager,name=LeaderCount` is `kafka_server_replicamanager_leadercount`, and a meter
`…PerSec` is a counter `…_total`, as the usual rules of the JMX exporter write them. What Kafka has no name for begins
with `strandline_`.

Always true: everything is read from the node's observation when a scrape asks, so that between two looks nothing is
spent on it; each node has a registry of its own. A topic's counts stand beside those of all topics, which have no topic label,
as in Kafka. Names are put together from a prefix and the name of a field, those of topics in `replica/topic_stats.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.registry import Collector

from strandline.api.table import BROKER_APIS, CONTROLLER_APIS
from strandline.errors import error_code
from strandline.metadata.image import MetadataImage
from strandline.node.monitoring.cleaner_metrics import of_cleaner
from strandline.node.monitoring.group_metrics import of_groups
from strandline.node.monitoring.histograms import cumulative
from strandline.node.monitoring.limit_metrics import of_limits
from strandline.node.monitoring.positions import follower_lag, lag_of
from strandline.node.monitoring.transaction_metrics import late_transactions, of_transactions, undecided_transactions
from strandline.node.observation.node import NodeObservation
from strandline.node.observation.replicas import ObservedReplica
from strandline.node.observation.requests import ObservedApi
from strandline.node.observation.topics import COUNTS
from strandline.ports import Clock
from strandline.records import walk

NAMES = {api.key: api.name for api in (*BROKER_APIS.values(), *CONTROLLER_APIS.values())}
PLACE = ("topic", "partition")


class NodeMetrics(Collector):
    content_type = CONTENT_TYPE_PLAIN_0_0_4

    def __init__(self, observed: NodeObservation, clock: Clock, http_refused: Callable[[], int]) -> None:
        """`http_refused` counts what the HTTP server itself refused."""
        self._observed = observed
        self._clock = clock
        self._http_refused = http_refused
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(self)
        self._totals = (MetadataImage(), ClusterTotals())

    def pages(self) -> Iterator[bytes]:
        """The text, one metric after the other: its writer may do something else in between."""
        for metric in self._registry.collect():
            yield generate_latest(_Only(metric))

    def collect(self) -> Iterator[Metric]:
        observed = self._observed
        yield from self._requests()
        yield from of_limits(observed.connections, self._http_refused())
        yield from self._raft()
        yield gauge("strandline_events_last", "The number of the node's newest event.", observed.events.last)
        events = CounterMetricFamily("strandline_events", "Events of this node by kind.", labels=("kind",))
        for kind, count in sorted(observed.events.counts.items()):
            events.add_metric((kind,), count)
        yield events
        if observed.is_controller:
            yield from self._controller()
        if observed.is_broker:
            replicas = list(observed.replicas)
            yield from self._replica_manager(replicas)
            yield from self._topics()
            yield gauge(
                "kafka_server_fetchsessioncache_numincrementalfetchsessions",
                "Fetch sessions of consumers.",
                observed.fetch_session_count,
            )
            yield gauge(
                "strandline_record_walk_compiled",
                "1 if the records of produced batches are checked in machine code, 0 if in Python.",
                walk.in_use is not walk.PLAIN,
            )
            yield from of_groups(observed)
            yield from of_transactions(observed.transactions)
            yield from undecided_transactions(
                observed.transactions, observed.transaction_max_timeout_ms, self._clock.wall_ms()
            )
            yield from of_cleaner(observed, self._clock.wall_ms())
            yield from of_logs(replicas)
            yield from of_leaders([replica for replica in replicas if replica.leads])
            yield from of_followers([replica for replica in replicas if not replica.leads])

    # The broker

    def _replica_manager(self, replicas: list[ObservedReplica]) -> Iterator[Metric]:
        observed = self._observed
        led = [replica for replica in replicas if replica.leads]
        yield gauge(
            "kafka_server_kafkaserver_brokerstate", "Kafka's number of the broker's state.", observed.broker_state
        )
        for name, help_, value in (
            ("leadercount", "Partitions that this broker leads.", len(led)),
            ("partitioncount", "Partitions with a replica here.", len(replicas)),
            ("offlinereplicacount", "Replicas whose log dir failed.", sum(r.is_offline for r in replicas)),
            ("underreplicatedpartitions", "Led here, with replicas out of sync.", sum(map(is_under_replicated, led))),
            (
                "underminisrpartitioncount",
                "Led here, with fewer in sync than min.insync.replicas.",
                sum(isr_size(r) < r.min_isr for r in led),
            ),
            (
                "atminisrpartitioncount",
                "Led here, with just min.insync.replicas in sync.",
                sum(isr_size(r) == r.min_isr for r in led),
            ),
            (
                "reassigningpartitions",
                "Led here and being reassigned.",
                sum(bool(r.metadata.adding_replicas or r.metadata.removing_replicas) for r in led),
            ),
            (
                "partitionswithlatetransactionscount",
                "Led here, with a transaction that is open for longer than any timeout allows.",
                late_transactions(led, observed.transaction_max_timeout_ms, self._clock.wall_ms()),
            ),
            (
                "produceridcount",
                "Producer ids that are remembered.",
                sum(len(r.log.producers.by_id) for r in replicas),
            ),
        ):
            yield gauge(f"kafka_server_replicamanager_{name}", help_, value)
        for name, help_, value in (
            ("isrshrinks", "Times that an ISR of a partition led here became smaller.", observed.events.isr_shrinks),
            ("isrexpands", "Times that it became larger.", observed.events.isr_expands),
            (
                "produceridsforgottenearly",
                "Producer ids for which a partition had no room any more.",
                sum(r.log.producers.forgotten_early for r in replicas),
            ),
            ("failedisrupdates", "ISR changes that the controller did not make.", observed.failed_isr_updates),
        ):
            yield counter(f"kafka_server_replicamanager_{name}", help_, value)

    def _topics(self) -> Iterator[Metric]:
        stats = self._observed.topics
        total = stats.total()
        for name in COUNTS:
            words = name.replace("_", " ")
            family = CounterMetricFamily(
                f"kafka_server_brokertopicmetrics_{name.replace('_', '')}",
                f"{words.capitalize()}, of all topics and of each.",
            )
            family.add_metric((), getattr(total, name))
            for topic, of_topic in stats.items():
                family.add_sample(f"{family.name}_total", {"topic": topic}, getattr(of_topic, name))
            yield family

    # Requests

    def _requests(self) -> Iterator[Metric]:
        stats = self._observed.requests
        prefix = "kafka_network_requestmetrics"
        requests = CounterMetricFamily(
            f"{prefix}_requests", "Requests that were answered.", labels=("request", "version")
        )
        times = HistogramMetricFamily(
            f"{prefix}_totaltimems", "Milliseconds from a request's arrival to its reply.", labels=("request",)
        )
        merged: dict[str, tuple[list[int], float]] = {}
        for (key, version), api in sorted(stats.apis.items()):
            name = NAMES.get(key, str(key))
            requests.add_metric((name, str(version)), api.count)
            merged[name] = _sum(merged.get(name), api)
        for name, (buckets, total_s) in merged.items():
            times.add_metric((name,), list(cumulative(buckets)), total_s * 1000)
        errors = CounterMetricFamily(f"{prefix}_errors", "Errors that were answered.", labels=("request", "error"))
        for (key, code), count in sorted(self._observed.errors.items()):
            errors.add_metric((NAMES.get(key, str(key)), error_code(code).name), count)
        yield from (requests, times, errors)
        yield counter("strandline_requests_refused", "Requests that could not be read or answered.", stats.refused)
        both = self._observed.large_requests
        for name, help_, value in (
            ("served", "Requests that were read in slices, since they are large.", sum(r.served_count for r in both)),
            (
                "refused",
                "Requests larger than one may be, or than there was room for.",
                sum(r.refused_count for r in both),
            ),
        ):
            yield counter(f"strandline_large_requests_{name}", help_, value)
        prefix = "strandline_large_requests"
        waiting_bytes = sum(requests.unanswered_bytes for requests in both)
        yield gauge(f"{prefix}_waiting_bytes", "Of large requests that are not answered yet.", waiting_bytes)
        objects = sum(requests.unanswered_objects for requests in both)
        yield gauge(f"{prefix}_waiting_objects", "That requests became which are not answered yet.", objects)

    # The quorum and the controller

    def _raft(self) -> Iterator[Metric]:
        quorum = self._observed.quorum
        if quorum is None:
            return
        for name, help_, value in (
            ("current_leader", "The active controller, -1 if it is not known.", quorum.leader_id),
            ("current_epoch", "The quorum's epoch.", quorum.epoch),
            ("high_watermark", "Metadata that is committed.", quorum.committed_end),
            ("log_end_offset", "Metadata that is written here.", quorum.log.log_end_offset),
            ("number_of_voters", "Controllers that vote.", len(quorum.voters)),
        ):
            yield gauge(f"kafka_server_raft_metrics_{name}", help_, value)
        yield gauge(
            "kafka_server_broker_metadata_metrics_last_applied_record_offset",
            "Metadata that this node has acted on.",
            self._observed.published.end_offset - 1,
        )

    def _controller(self) -> Iterator[Metric]:
        quorum = self._observed.quorum
        image = self._observed.published if quorum is None else quorum.image
        if self._totals[0].topics is not image.topics or self._totals[0].brokers is not image.brokers:
            self._totals = (image, totals(image))
        counted = self._totals[1]
        active = quorum is not None and quorum.is_active_controller
        for name, help_, value in (
            ("activecontrollercount", "1 on the active controller.", int(active)),
            ("globaltopiccount", "Topics of the cluster.", counted.topics),
            ("globalpartitioncount", "Partitions of the cluster.", counted.partitions),
            ("offlinepartitionscount", "Partitions without a leader.", counted.offline),
            ("preferredreplicaimbalancecount", "Partitions not led by their first replica.", counted.imbalanced),
            ("activebrokercount", "Brokers that are not fenced.", counted.active_brokers),
            ("fencedbrokercount", "Brokers that are fenced.", counted.fenced_brokers),
        ):
            yield gauge(f"kafka_controller_kafkacontroller_{name}", help_, value)


class _Only(NamedTuple):
    """A registry with one metric."""

    metric: Metric

    def collect(self) -> Iterator[Metric]:
        yield self.metric


class ClusterTotals(NamedTuple):
    topics: int = 0
    partitions: int = 0
    offline: int = 0
    imbalanced: int = 0
    active_brokers: int = 0
    fenced_brokers: int = 0


def totals(image: MetadataImage) -> ClusterTotals:
    partitions = [partition for topic in image.topics.values() for partition in topic.partitions]
    fenced = sum(broker.fenced for broker in image.brokers.values())
    return ClusterTotals(
        len(image.topics),
        len(partitions),
        sum(not partition.has_leader for partition in partitions),
        sum(partition.leader != partition.replicas[0] for partition in partitions),
        len(image.brokers) - fenced,
        fenced,
    )


# Partitions


def isr_size(replica: ObservedReplica) -> int:
    return len(replica.isr if replica.leads else replica.metadata.isr)


def is_under_replicated(replica: ObservedReplica) -> bool:
    metadata = replica.metadata
    return isr_size(replica) < len(metadata.replicas) - len(metadata.adding_replicas)


def of_logs(replicas: Iterable[ObservedReplica]) -> Iterator[Metric]:
    ends = GaugeMetricFamily("kafka_log_log_logendoffset", "The offset of the next record.", labels=PLACE)
    starts = GaugeMetricFamily("kafka_log_log_logstartoffset", "The first offset that is kept.", labels=PLACE)
    sizes = GaugeMetricFamily("kafka_log_log_size", "Bytes of the log.", labels=PLACE)
    segments = GaugeMetricFamily("kafka_log_log_numlogsegments", "Segments of the log.", labels=PLACE)
    watermarks = GaugeMetricFamily("strandline_high_watermark", "The high watermark as it is known here.", labels=PLACE)
    for replica in replicas:
        place, log = (replica.topic, str(replica.index)), replica.log
        ends.add_metric(place, log.log_end_offset)
        starts.add_metric(place, log.log_start_offset)
        sizes.add_metric(place, log.size)
        segments.add_metric(place, len(log.segments))
        watermarks.add_metric(place, replica.high_watermark)
    yield from (ends, starts, sizes, segments, watermarks)


def of_leaders(led: Iterable[ObservedReplica]) -> Iterator[Metric]:
    prefix = "kafka_cluster_partition"
    counts = GaugeMetricFamily(f"{prefix}_replicascount", "Replicas of a partition led here.", labels=PLACE)
    in_sync = GaugeMetricFamily(f"{prefix}_insyncreplicascount", "Those in sync.", labels=PLACE)
    under = GaugeMetricFamily(f"{prefix}_underreplicated", "1 if replicas are out of sync.", labels=PLACE)
    under_min = GaugeMetricFamily(f"{prefix}_underminisr", "1 if too few are in sync for acks=all.", labels=PLACE)
    unstable = GaugeMetricFamily(
        f"{prefix}_laststableoffsetlag", "Records behind the first undecided transaction.", labels=PLACE
    )
    lags = GaugeMetricFamily(
        "strandline_replica_lag", "Records that a follower lacks, as its leader sees it.", labels=(*PLACE, "replica")
    )
    for replica in led:
        place = (replica.topic, str(replica.index))
        counts.add_metric(place, len(replica.metadata.replicas))
        in_sync.add_metric(place, isr_size(replica))
        under.add_metric(place, is_under_replicated(replica))
        under_min.add_metric(place, isr_size(replica) < replica.min_isr)
        unstable.add_metric(place, replica.high_watermark - replica.last_stable_offset)
        for replica_id, follower in replica.followers.items():
            if (lag := lag_of(follower, replica.log.log_end_offset)) is not None:
                lags.add_metric((*place, str(replica_id)), lag)
    yield from (counts, in_sync, under, under_min, unstable, lags)


def of_followers(replicas: Iterable[ObservedReplica]) -> Iterator[Metric]:
    lags = GaugeMetricFamily(
        "kafka_server_fetcherlagmetrics_consumerlag",
        "Committed records that this follower lacks.",
        labels=("clientId", *PLACE),
    )
    for replica in replicas:
        if replica.metadata.has_leader and (lag := follower_lag(replica)) is not None:
            client_id = f"ReplicaFetcherThread-0-{replica.metadata.leader}"
            lags.add_metric((client_id, replica.topic, str(replica.index)), lag)
    yield lags


# Words of Prometheus


def gauge(name: str, help_: str, value: float) -> Metric:
    return GaugeMetricFamily(name, help_, value=value)


def counter(name: str, help_: str, value: float) -> Metric:
    return CounterMetricFamily(name, help_, value=value)


def _sum(one: tuple[list[int], float] | None, api: ObservedApi) -> tuple[list[int], float]:
    if one is None:
        return list(api.buckets), api.total_s
    return [a + b for a, b in zip(one[0], api.buckets, strict=True)], one[1] + api.total_s
