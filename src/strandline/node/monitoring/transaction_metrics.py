"""Metrics of transactions: of their coordinator, of markers, of what leaders ask coordinators. By Kafka's names where it has one.

Always true: transactional ids are counted when a scrape asks, on the node that coordinates them; only some have a metric of their
own, those of two-phase commit that hold readers up for long.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from strandline.node.monitoring.histograms import cumulative
from strandline.node.observation.replicas import ObservedReplica
from strandline.node.observation.transactions import STATES, ObservedCoordinatorStats, ObservedTransactions

COORDINATOR = "kafka_server_transaction_coordinator_metrics"
MARKERS = "kafka_coordinator_transaction_transactionmarkerchannelmanager"
VERIFICATION = "kafka_server_addpartitionstotxnmanager"
LATE_MS = 5 * 60 * 1000
"""How long a transaction may be silent beyond the longest timeout that one can have (TXN-T39)."""


UNDECIDED_MAX = 10
NAME_CHARACTERS_MAX = 200
"""A transactional id may have thousands."""


def of_transactions(observed: ObservedTransactions) -> Iterator[Metric]:
    counts = Counter(observed.states())
    by_state = GaugeMetricFamily(
        "strandline_transactional_ids", "Transactional ids that this broker coordinates.", labels=("state",)
    )
    for state in STATES:
        by_state.add_metric((state,), counts[state])
    partitions = GaugeMetricFamily(
        "strandline_transaction_partitions", "Partitions of __transaction_state that are led here.", labels=("state",)
    )
    partitions.add_metric(("active",), sum(1 for _ in observed.shards))
    partitions.add_metric(("loading",), observed.loading)
    yield from (by_state, partitions)
    yield from _loads(observed.stats)
    for name, help_, value in (
        (
            f"{MARKERS}_unknowndestinationqueuesize",
            "Markers whose partition has no leader.",
            observed.leaderless_markers,
        ),
        (
            f"{MARKERS}_logappendretryqueuesize",
            "Transactions that have all markers, and whose end is still to be written down.",
            observed.unwritten_completions,
        ),
        ("strandline_transaction_markers_unsent", "Partitions that wait for a marker.", observed.unsent_markers),
        (
            "strandline_transaction_markers_refused",
            "Transactional ids whose transaction can't be ended: a leader refuses its marker.",
            observed.refused_markers,
        ),
    ):
        yield GaugeMetricFamily(name, help_, value=value)
    yield from _verifications(observed)


def _loads(stats: ObservedCoordinatorStats) -> Iterator[Metric]:
    name = f"{COORDINATOR}_partition_load_time_max"
    yield GaugeMetricFamily(name, "Milliseconds of the longest load.", value=stats.load_s_max * 1000)
    for name, help_, value in (
        ("partition_load", "Partitions that were read back.", stats.loads),
        ("partition_load_failed", "Times that this failed.", stats.failed_loads),
        ("partition_load_time", "Milliseconds that it took.", stats.load_s * 1000),
    ):
        yield CounterMetricFamily(f"{COORDINATOR}_{name}", help_, value=value)


def _verifications(observed: ObservedTransactions) -> Iterator[Metric]:
    asked = observed.verifications
    yield HistogramMetricFamily(
        f"{VERIFICATION}_verificationtimems",
        "Milliseconds until a coordinator answered whether a transaction has a partition led here.",
        buckets=list(cumulative(asked.buckets)),
        sum_value=asked.total_s * 1000,
    )
    yield CounterMetricFamily(
        f"{VERIFICATION}_verificationfailurerate",
        "Partitions that a coordinator did not confirm.",
        value=observed.failed_verifications,
    )


def undecided_transactions(observed: ObservedTransactions, timeout_max_ms: int, now_ms: int) -> Iterator[Metric]:
    """Of two-phase commit, open for longer than any other could be: how many, and the oldest by name (TXN-Q4)."""
    found = observed.undecided(now_ms - timeout_max_ms)
    yield GaugeMetricFamily(
        "strandline_two_phase_transactions_undecided",
        "Transactions of two-phase commit that are open for longer than transaction.max.timeout.ms.",
        value=len(found),
    )
    ages = GaugeMetricFamily(
        "strandline_two_phase_transaction_age_seconds",
        f"How long the {UNDECIDED_MAX} oldest of them are open.",
        labels=("transactional_id",),
    )
    oldest = sorted(found, key=lambda each: (found[each], each))[:UNDECIDED_MAX]
    # Of two that begin alike the older one is shown, the first of the two: a metric has no label twice.
    began_ms = {each[:NAME_CHARACTERS_MAX]: found[each] for each in reversed(oldest)}
    for name, began in began_ms.items():
        ages.add_metric((name,), (now_ms - began) / 1000)
    yield ages


def late_transactions(led: Iterable[ObservedReplica], timeout_max_ms: int, now_ms: int) -> int:
    """Partitions with a transaction that no timeout explains: the producer of the oldest one is silent for too long."""
    silent_since_ms = now_ms - timeout_max_ms - LATE_MS
    return sum(0 < replica.log.producers.oldest_open_timestamp < silent_since_ms for replica in led)
