from __future__ import annotations

import click
import pytest

from strandline.cli.client_properties import consumer_config, producer_config
from strandline.records.compression import CompressionType


def test_kafkas_names_and_values():
    config = producer_config({"acks": "all", "linger.ms": "10", "compression.type": "zstd", "batch.size": "5"})
    assert (config.acks, config.linger_ms, config.compression_type, config.batch_size) == (
        -1,
        10,
        CompressionType.ZSTD,
        5,
    )
    assert producer_config({"acks": "1", "enable.idempotence": "false"}).idempotent is False
    assert consumer_config({"isolation.level": "read_committed"}).is_read_committed


@pytest.mark.parametrize(
    ("properties", "reason"),
    [
        ({"interceptor.classes": "x"}, "no producer property that is honoured here"),
        ({"acks": "2"}, "acks=2 is not a value"),
        ({"linger.ms": "soon"}, "linger.ms=soon is not a value"),
        ({"acks": "1", "enable.idempotence": "true"}, "needs acks"),
    ],
)
def test_what_is_not_honoured_is_refused(properties, reason):
    with pytest.raises(click.UsageError, match=reason):
        producer_config(properties)
