"""The options of a sink, typed and free of contradictions.

Always true: what is here is picklable and the same on the driver and the executors.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from strandline.client.config import ProducerConfig
from strandline.spark.errors import OptionError
from strandline.spark.options.kafka import ClusterOptions, kafka_settings
from strandline.spark.options.names import sorted_out


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    streaming: bool
    topic: str | None
    """Where all rows go; None: to the topic in each row's column `topic`."""
    cluster: ClusterOptions
    producer: ProducerConfig
    warnings: tuple[str, ...] = ()


def write_options(options: Mapping[str, str], *, streaming: bool) -> WriteOptions:
    ours, kafka, warnings = sorted_out(options, writing=True)
    settings = kafka_settings(kafka, writing=True)
    topic = ours["topic"].strip() if "topic" in ours else None
    if topic == "":
        raise OptionError("option 'topic' is empty; name the topic, or leave the option out and give a column 'topic'")
    return WriteOptions(
        streaming=streaming,
        topic=topic,
        cluster=settings.cluster,
        producer=settings.producer,
        warnings=(*warnings, *settings.warnings),
    )
