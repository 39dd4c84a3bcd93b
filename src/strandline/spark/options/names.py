"""The names of all options, and who may be given which.

Always true: names are compared without regard to case, as Spark does, and reported as the documentation spells them. An
unknown name is refused: a misspelt failOnDataLoss must not read as the default.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Final

from strandline.spark.errors import OptionError
from strandline.spark.options import kafka_names
from strandline.spark.options.bound import option_names
from strandline.spark.options.selection import OPTIONS as SELECTION

READ: Final = (
    *SELECTION,
    *option_names("starting"),
    *option_names("ending"),
    "startingOffsetsByTimestampStrategy",
    "failOnDataLoss",
    "includeHeaders",
    "columns",
    "pushFilters",
    "minPartitions",
    "maxRecordsPerPartition",
    "maxOffsetsPerTrigger",
    "minOffsetsPerTrigger",
    "maxTriggerDelay",
    "maxBytesPerTrigger",
    "groupId",
    "groupIdPrefix",
    "kafkaConsumer.pollTimeoutMs",
    "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs",
    "partition.metadata.cache.ttl.ms",
)

WRITE: Final = ("topic",)

SPARK_OWN: Final = frozenset({"checkpointlocation", "path", "paths", "queryname", "outputmode"})
"""Spark passes its own options on to the source or sink."""

KAFKA: Final = "kafka."


def sorted_out(options: Mapping[str, str], *, writing: bool) -> tuple[dict[str, str], dict[str, str], list[str]]:
    """Our options under their canonical names; those of `kafka.` without it, in lower case; warnings."""
    mine, others = (WRITE, READ) if writing else (READ, WRITE)
    canonical = {name.lower(): name for name in mine}
    elsewhere = {name.lower(): name for name in others}
    ours: dict[str, str] = {}
    kafka: dict[str, str] = {}
    warnings: list[str] = []
    for given, text in options.items():
        name = given.lower()
        if name in canonical:
            ours[canonical[name]] = text
        elif name.startswith(KAFKA):
            kafka[name.removeprefix(KAFKA)] = text
        elif name in elsewhere:
            warnings.append(
                f"option '{elsewhere[name]}' has no effect here: it is one of the {'source' if writing else 'sink'}"
            )
        elif name not in SPARK_OWN and not name.startswith("__"):
            raise OptionError(f"option '{given}' is unknown{_near(name, canonical)}")
    return ours, kafka, warnings


def _near(name: str, canonical: Mapping[str, str]) -> str:
    if name in kafka_names.KNOWN:
        return f"; did you mean '{KAFKA}{name}'?"
    near = difflib.get_close_matches(name, canonical, n=1)
    if near:
        return f"; did you mean '{canonical[near[0]]}'?"
    return f"; the options are {', '.join(sorted(canonical.values(), key=str.lower))} and {KAFKA}*"
