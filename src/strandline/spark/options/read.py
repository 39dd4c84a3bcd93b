"""The options of a source, typed and free of contradictions.

Always true: what is here is picklable and the same on the driver and the executors; what could be refused without asking a
broker has been refused.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Final, cast

from strandline.client.config import ConsumerConfig
from strandline.spark.errors import OptionError
from strandline.spark.options import values
from strandline.spark.options.bound import (
    AtGroup,
    Bound,
    WithoutMatch,
    check_order,
    end_bound,
    option_names,
    start_bound,
)
from strandline.spark.options.kafka import ClusterOptions, kafka_settings
from strandline.spark.options.names import sorted_out
from strandline.spark.options.selection import Selection, selection

COLUMNS: Final = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType")
HEADERS: Final = "headers"

MAX_TRIGGER_DELAY_MS: Final = 15 * 60_000
FETCH_TIMEOUT_MS: Final = 120_000
"""As Spark's own spark.network.timeout, which its Kafka connector waits for."""
OFFSET_ATTEMPTS_MAX: Final = 3
OFFSET_RETRY_MS: Final = 1000


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    streaming: bool
    selection: Selection
    start: Bound
    start_without_match: WithoutMatch
    end: Bound | None
    """None: a stream, which has no end."""
    fail_on_data_loss: bool
    columns: tuple[str, ...]
    push_filters: bool
    """Batch only: whether the reader takes filters, which Spark must be set up for."""
    partitions_min: int | None
    """minPartitions: at least so many splits, as far as there are records for them."""
    records_per_partition_max: int | None
    offsets_per_trigger_max: int | None
    offsets_per_trigger_min: int | None
    bytes_per_trigger_max: int | None
    trigger_delay_max_ms: int
    group_id: str | None
    """Where progress is committed; None: nowhere."""
    fetch_timeout_ms: int
    """How long an executor waits without a byte from a partition (kafkaConsumer.pollTimeoutMs)."""
    offset_attempts_max: int
    """How often the driver asks again when an answer cannot be right (fetchOffset.numRetries)."""
    offset_retry_ms: int
    metadata_ttl_ms: int | None
    """How long topics and partitions are cached; None: they are looked up each time."""
    cluster: ClusterOptions
    consumer: ConsumerConfig
    warnings: tuple[str, ...] = ()


def read_options(options: Mapping[str, str], *, streaming: bool) -> ReadOptions:
    ours, kafka, warnings = sorted_out(options, writing=False)
    settings = kafka_settings(kafka, writing=False)

    def number(name: str, at_most: int = values.LONG_MAX) -> int | None:
        return values.whole(name, ours[name], 1, at_most) if name in ours else None

    group_id = _group(ours)
    chosen = selection(ours)
    start = start_bound(ours, streaming=streaming)
    offsets_min, offsets_max = number("minOffsetsPerTrigger"), number("maxOffsetsPerTrigger")
    if offsets_min is not None and offsets_max is not None and offsets_min > offsets_max:
        raise OptionError(
            f"option 'minOffsetsPerTrigger' ({offsets_min}) is more than 'maxOffsetsPerTrigger' ({offsets_max})"
        )
    retry = "fetchOffset.retryIntervalMs"
    return ReadOptions(
        streaming=streaming,
        selection=chosen,
        start=start,
        start_without_match=cast(
            WithoutMatch,
            values.one_of(
                "startingOffsetsByTimestampStrategy",
                ours.get("startingOffsetsByTimestampStrategy", "error"),
                "error",
                "latest",
            ),
        ),
        end=_end(ours, start, streaming),
        fail_on_data_loss=values.yes("failOnDataLoss", ours.get("failOnDataLoss", "true")),
        columns=_columns(ours),
        push_filters=values.yes("pushFilters", ours.get("pushFilters", "false")),
        partitions_min=number("minPartitions", values.INT_MAX),
        records_per_partition_max=number("maxRecordsPerPartition"),
        offsets_per_trigger_max=offsets_max,
        offsets_per_trigger_min=offsets_min,
        bytes_per_trigger_max=(
            values.size_bytes("maxBytesPerTrigger", ours["maxBytesPerTrigger"])
            if "maxBytesPerTrigger" in ours
            else None
        ),
        trigger_delay_max_ms=(
            values.time_ms("maxTriggerDelay", ours["maxTriggerDelay"])
            if "maxTriggerDelay" in ours
            else MAX_TRIGGER_DELAY_MS
        ),
        group_id=group_id,
        fetch_timeout_ms=number("kafkaConsumer.pollTimeoutMs") or FETCH_TIMEOUT_MS,
        offset_attempts_max=number("fetchOffset.numRetries") or OFFSET_ATTEMPTS_MAX,
        offset_retry_ms=values.whole(retry, ours.get(retry, str(OFFSET_RETRY_MS)), 0),
        metadata_ttl_ms=_metadata_ttl(ours),
        cluster=settings.cluster,
        consumer=settings.consumer,
        warnings=(*warnings, *settings.warnings, *_without_effect(ours, start, streaming)),
    )


def read_columns(options: Mapping[str, str]) -> tuple[str, ...]:
    """The columns of the source, which Spark asks for before it says whether the query streams."""
    return _columns(sorted_out(options, writing=False)[0])


def _columns(ours: Mapping[str, str]) -> tuple[str, ...]:
    with_headers = values.yes("includeHeaders", ours.get("includeHeaders", "false"))
    if "columns" not in ours:
        return (*COLUMNS, HEADERS) if with_headers else COLUMNS
    known = {name.lower(): name for name in (*COLUMNS, HEADERS)}
    columns: list[str] = []
    for given in filter(None, (part.strip() for part in ours["columns"].split(","))):
        name = known.get(given.lower())
        if name is None:
            raise OptionError(f"option 'columns' has some of {', '.join(known.values())}, not '{given}'")
        if name in columns:
            raise OptionError(f"option 'columns' has '{name}' twice")
        columns.append(name)
    if not columns:
        raise OptionError(f"option 'columns' names no column; write some of {', '.join(known.values())}")
    if with_headers and HEADERS not in columns:
        raise OptionError(
            "option 'includeHeaders' is true and 'columns' has no 'headers'; add it, or drop includeHeaders"
        )
    return tuple(columns)


def _end(ours: Mapping[str, str], start: Bound, streaming: bool) -> Bound | None:
    if streaming:
        for name in option_names("ending"):
            if name in ours:
                raise OptionError(f"option '{name}' is one of batch queries; a stream has no end")
        return None
    end = end_bound(ours)
    check_order(start, end)
    return end


def _group(ours: Mapping[str, str]) -> str | None:
    group_id = ours.get("groupId")
    if group_id is not None and not group_id.strip():
        raise OptionError("option 'groupId' is empty; name the group, or leave the option out")
    return group_id


def _metadata_ttl(ours: Mapping[str, str]) -> int | None:
    name = "partition.metadata.cache.ttl.ms"
    ttl_ms = values.whole(name, ours.get(name, "-1"), -1)
    if ttl_ms == 0:
        raise OptionError(f"option '{name}' is -1 (look each time) or a time of at least 1 ms, not 0")
    return None if ttl_ms < 0 else ttl_ms


def _without_effect(ours: Mapping[str, str], start: Bound, streaming: bool) -> list[str]:
    warnings = []
    if not streaming:
        for name in ("maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay", "maxBytesPerTrigger"):
            if name in ours:
                warnings.append(f"option '{name}' has no effect in a batch query")
        if "groupId" in ours and not isinstance(start, AtGroup):
            warnings.append("option 'groupId' has no effect in a batch query: it commits no offsets")
    if "groupIdPrefix" in ours:
        warnings.append("option 'groupIdPrefix' has no effect: reading joins no consumer group")
    if streaming and "maxTriggerDelay" in ours and "minOffsetsPerTrigger" not in ours:
        warnings.append("option 'maxTriggerDelay' has no effect without 'minOffsetsPerTrigger'")
    for side in ("starting", "ending"):
        first, *overruled = [name for name in option_names(side) if name in ours] or [""]
        warnings += [f"option '{name}' has no effect: '{first}' decides" for name in overruled]
    return warnings
