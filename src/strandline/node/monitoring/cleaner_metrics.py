"""What the cleaner does, by Kafka's names: `kafka.log:type=LogCleanerManager` and `kafka.log:type=LogCleaner`.

Always true: the log dirs of this broker are all there, with 0 where every log can be cleaned.
"""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from strandline.node.observation.node import NodeObservation

MANAGER, CLEANER = "kafka_log_logcleanermanager", "kafka_log_logcleaner"


def of_cleaner(observed: NodeObservation, now_ms: int) -> Iterator[Metric]:
    stats = observed.cleaner_stats
    if stats is None:
        return
    since_ms = now_ms - stats.looked_at_ms if stats.looked_at_ms else 0
    for name, help_, value in (
        (f"{MANAGER}_max_dirty_percent", "Of the filthiest log, what is dirty.", int(100 * stats.max_dirty_ratio)),
        (f"{MANAGER}_time_since_last_run_ms", "Since the cleaner last looked at the logs.", since_ms),
        (f"{CLEANER}_cleaner_recopy_percent", "What the last cleaning kept.", int(100 * stats.last_recopy_ratio)),
        (f"{CLEANER}_max_clean_time_secs", "How long the last cleaning took.", int(stats.last_clean_s)),
        (f"{CLEANER}_max_compaction_delay_secs", "A log is past its max.compaction.lag.ms.", int(stats.max_overdue_s)),
    ):
        yield GaugeMetricFamily(name, help_, value=value)
    labels = ("logDirectory",)
    counts = GaugeMetricFamily(f"{MANAGER}_uncleanable_partitions_count", "Logs that can't be cleaned.", labels=labels)
    sizes = GaugeMetricFamily(f"{MANAGER}_uncleanable_bytes", "Their bytes.", labels=labels)
    for path in [log_dir.path for log_dir in observed.log_dirs]:
        log_sizes = [replica.log.size for replica, log_dir in observed.uncleanable if log_dir.path == path]
        counts.add_metric((path,), len(log_sizes))
        sizes.add_metric((path,), sum(log_sizes))
    yield from (counts, sizes)
    for name, help_, value in (
        ("cleanings", "Times that a log was cleaned.", stats.cleanings),
        ("bytes_read", "Bytes that the cleaner read.", stats.bytes_read),
        ("bytes_written", "Bytes that it wrote.", stats.bytes_written),
    ):
        yield CounterMetricFamily(f"strandline_cleaner_{name}", help_, value=value)
