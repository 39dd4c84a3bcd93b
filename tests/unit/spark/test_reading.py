"""One split on an executor: what comes out, and what happens if the log has changed since it was planned."""

# mypy: allow-incomplete-defs, allow-untyped-calls, allow-untyped-defs

from __future__ import annotations

import logging

import pytest
from pyspark.sql.datasource import InputPartition

from strandline.client.errors import LogTruncated, OffsetOutOfRange, TimedOut
from strandline.ids import ZERO_UUID, Uuid
from strandline.records.errors import CorruptRecord
from strandline.spark.errors import DataLoss
from strandline.spark.options import read_options
from strandline.spark.reading import SplitReading
from strandline.spark.splits import Split
from tests.unit.spark.node_beside import Cluster

from .engine import batch_values


def reading(cluster, topic, **options):
    return SplitReading.of(read_options(cluster.options(subscribe=topic, **options), streaming=False))


def split(topic, start, end, topic_id=ZERO_UUID):
    return InputPartition(Split(topic, topic_id, 0, start, end, 0))


def test_the_offsets_of_the_split_and_no_others(cluster: Cluster) -> None:
    topic = cluster.make("split")
    cluster.write(topic, [b"%d" % n for n in range(6)])
    assert batch_values(reading(cluster, topic).read(split(topic, 2, 5))) == ["2", "3", "4"]
    assert batch_values(reading(cluster, topic).read(split(topic, 6, 6))) == []


def test_columns_that_are_not_wanted_are_not_there(cluster: Cluster) -> None:
    topic = cluster.make("few-columns")
    cluster.write(topic, [b"v"])
    [batch] = reading(cluster, topic, columns="offset,value").read(split(topic, 0, 1))
    assert batch.to_pylist() == [{"offset": 0, "value": b"v"}]


def test_records_that_went_after_planning_are_an_error_or_left_out(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    topic = cluster.make("went")
    cluster.write(topic, [b"%d" % n for n in range(6)])
    cluster.admin.delete_records({(topic, 0): 4})
    with pytest.raises(
        DataLoss, match=r"offsets 1 to 3 of went-0 are gone: the log goes from 4 to 6; .*failOnDataLoss"
    ):
        list(reading(cluster, topic).read(split(topic, 1, 6)))
    allowed = reading(cluster, topic, failOnDataLoss="false")
    with caplog.at_level(logging.WARNING, "strandline.spark"):
        assert batch_values(allowed.read(split(topic, 1, 6))) == ["4", "5"]
        assert batch_values(allowed.read(split(topic, 1, 3))) == []
    assert "offsets 1 to 3 of went-0 are gone" in caplog.text
    assert "offsets 1 to 2" in caplog.text


def test_what_was_read_before_is_not_told_as_lost(cluster: Cluster, caplog: pytest.LogCaptureFixture) -> None:
    topic = cluster.make("halfway-lost")
    for n in range(8):
        cluster.write(topic, [b"%d" % n])  # a batch each, and so a fetch each
    rows = reading(cluster, topic, failOnDataLoss="false", kafka_max_partition_fetch_bytes=1).read(split(topic, 0, 8))
    first = batch_values(iter([next(rows)]))
    cluster.admin.delete_records({(topic, 0): 6})
    with caplog.at_level(logging.WARNING, "strandline.spark"):
        values = first + batch_values(rows)
    # One more was on its way already, or was not.
    assert values in (["0", "6", "7"], ["0", "1", "6", "7"])
    assert f"offsets {len(values) - 2} to 5 of halfway-lost-0 are gone" in caplog.text


def test_an_offset_after_the_log_is_lost_too(cluster: Cluster) -> None:
    topic = cluster.make("short")
    cluster.write(topic, [b"0"])
    with pytest.raises(DataLoss, match=r"offsets 3 to 7 of short-0 are gone: the log goes from 0 to 1"):
        list(reading(cluster, topic).read(split(topic, 3, 8)))
    allowed = reading(cluster, topic, failOnDataLoss="false")
    assert batch_values(allowed.read(split(topic, 3, 8))) == []


def test_another_topic_of_the_same_name_is_not_read(cluster: Cluster) -> None:
    topic = cluster.make("another")
    cluster.write(topic, [b"0"])
    planned = split(topic, 0, 1, Uuid(b"0123456789abcdef"))
    with pytest.raises(
        DataLoss, match="offsets 0 to 0 of another-0 are gone: topic 'another' was deleted and made again"
    ):
        list(reading(cluster, topic).read(planned))
    assert list(reading(cluster, topic, failOnDataLoss="false").read(planned)) == []


def test_a_log_that_was_truncated_below_what_was_read_is_read_on_if_losses_are_allowed(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    planned, truncated = Split("any", ZERO_UUID, 0, 0, 9, 0), LogTruncated("any", 0, 5, 3)
    with pytest.raises(
        DataLoss, match=r"records before offset 5, read already, of any-0 are gone: .* truncated at offset 3"
    ):
        reading(cluster, "any")._behind_the_gap(planned, 5, truncated)
    with caplog.at_level(logging.WARNING, "strandline.spark"):
        assert reading(cluster, "any", failOnDataLoss="false")._behind_the_gap(planned, 5, truncated) == 5
    assert "records before offset 5" in caplog.text


def test_trouble_that_is_no_loss_is_raised_whatever_may_be_lost(cluster: Cluster) -> None:
    allowed = reading(cluster, "any", failOnDataLoss="false")
    for trouble in (TimedOut("nothing came"), OffsetOutOfRange("any", 0, 5), CorruptRecord("any-0 at offset 5")):
        with pytest.raises(type(trouble)):
            allowed._behind_the_gap(Split("any", ZERO_UUID, 0, 0, 9, 0), 5, trouble)


def test_a_task_that_is_left_halfway_harms_nobody(cluster: Cluster) -> None:
    topic = cluster.make("halfway")
    cluster.write(topic, [b"%d" % n for n in range(3)])
    rows = reading(cluster, topic).read(split(topic, 0, 3))
    assert next(rows).num_rows > 0
    rows.close()
    assert batch_values(reading(cluster, topic).read(split(topic, 0, 3))) == ["0", "1", "2"]
