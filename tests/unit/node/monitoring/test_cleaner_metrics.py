"""The cleaner's numbers, by Kafka's names."""

# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

from prometheus_client.core import Metric

from strandline.ids import ZERO_UUID
from strandline.node.log_dirs import LogDir
from strandline.node.monitoring.cleaner_metrics import of_cleaner

from .conftest import Looked


def values(metrics: list[Metric]) -> dict[tuple[str, ...], float]:
    return {(sample.name, *sample.labels.values()): sample.value for metric in metrics for sample in metric.samples}


def test_what_the_cleaner_did_and_could_not_do(play):
    async def story(stage):
        partition = await stage.create("t")
        cleaner, log_dirs = stage.node.broker_server.cleaner, stage.node.replicas.log_dirs
        log_dirs.append(LogDir("/other", ZERO_UUID, clean=True, online=False))
        observed = Looked(stage).observed
        stats = cleaner.stats
        now_ms = stage.host.clock.wall_ms()
        found = values(list(of_cleaner(observed, now_ms)))
        assert found["kafka_log_logcleanermanager_time_since_last_run_ms",] == 0
        stats.looked_at_ms, stats.max_dirty_ratio, stats.max_overdue_s = now_ms - 700, 0.637, 90.5
        stats.cleanings, stats.bytes_read, stats.bytes_written = 3, 1000, 10
        stats.last_recopy_ratio, stats.last_clean_s = 0.25, 2.7
        cleaner.uncleanable[partition] = log_dirs[0]
        found = values(list(of_cleaner(observed, now_ms)))
        manager, log_cleaner = "kafka_log_logcleanermanager", "kafka_log_logcleaner"
        assert found == {
            (f"{manager}_max_dirty_percent",): 63,
            (f"{manager}_time_since_last_run_ms",): 700,
            (f"{manager}_uncleanable_partitions_count", "/data"): 1,
            (f"{manager}_uncleanable_partitions_count", "/other"): 0,
            (f"{manager}_uncleanable_bytes", "/data"): partition.log.size,
            (f"{manager}_uncleanable_bytes", "/other"): 0,
            (f"{log_cleaner}_cleaner_recopy_percent",): 25,
            (f"{log_cleaner}_max_clean_time_secs",): 2,
            (f"{log_cleaner}_max_compaction_delay_secs",): 90,
            ("strandline_cleaner_cleanings_total",): 3,
            ("strandline_cleaner_bytes_read_total",): 1000,
            ("strandline_cleaner_bytes_written_total",): 10,
        }

    play(story)
