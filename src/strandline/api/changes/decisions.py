"""Several decisions in one request: topics to create, resources to alter, partitions to move.

A decision with many parts is made in slices (`api/requests/slices.py`): other requests are served meanwhile, other decisions are
made, and Raft goes on. If another decision was made, this one is made once more, on what is there then.

Always true: each decision sees what those before it in the request wrote; one that is refused writes nothing and stops none
of the others; all that were accepted are committed together. Settings among them that have no effect are logged. A request writes
at most RECORDS_PER_REQUEST_MAX records: one that would write more is refused as a whole, as in Kafka (SEC-L2).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain, islice
from typing import TypeVar

from strandline.api.context import NodeContext
from strandline.controller.configs import without_effect
from strandline.errors import ErrorCode, KafkaError
from strandline.metadata.image import MetadataImage
from strandline.metadata.records import MetadataRecord
from strandline.metadata.replay import GrowingImage
from strandline.sliced_work import Work

Item = TypeVar("Item")
DecisionOutcome = list[MetadataRecord] | KafkaError
"""The records that one decision made, or why it made none."""
WARNINGS_MAX = 20
"""So many lines of the log one request may cause."""

RECORDS_PER_REQUEST_MAX = 10_000
"""As many as Kafka's controller writes in one atomic batch."""


async def decide_each(
    node: NodeContext,
    items: Sequence[Item],
    decide: Callable[[MetadataImage, Item], list[MetadataRecord]],
    *,
    validate_only: bool = False,
) -> list[DecisionOutcome]:
    """The outcome of each item, in their order, once all is committed. If the controller can't be reached, that for all."""

    def decision(image: MetadataImage) -> Work[tuple[list[MetadataRecord], list[DecisionOutcome]]]:
        records, outcomes = yield from decide_on(image, items, decide)
        return ([] if validate_only else records), outcomes

    if not items:
        return []
    try:
        check_count(len(items))
        outcomes = await node.controller.decide(decision)
    except KafkaError as error:
        return [error] * len(items)
    if not validate_only:
        accepted = chain.from_iterable(outcome for outcome in outcomes if not isinstance(outcome, KafkaError))
        for warning in islice(without_effect(accepted), WARNINGS_MAX):
            node.warn(warning)
    return outcomes


def decide_on(
    image: MetadataImage, items: Sequence[Item], decide: Callable[[MetadataImage, Item], list[MetadataRecord]]
) -> Work[tuple[list[MetadataRecord], list[DecisionOutcome]]]:
    """All records, and the outcome of each item. No part of it may keep an image that it was given."""
    records: list[MetadataRecord] = []
    outcomes: list[DecisionOutcome] = []
    growing = GrowingImage(image)
    for item in items:
        try:
            decided = decide(growing.image, item)
        except KafkaError as error:
            outcomes.append(error)
        else:
            growing.add(decided)
            records += decided
            check_count(len(records))
            outcomes.append(decided)
        yield 0
    return records, outcomes


def check_count(count: int) -> None:
    """POLICY_VIOLATION if so many records, or things that take a record each, are too many for one request."""
    if count > RECORDS_PER_REQUEST_MAX:
        raise KafkaError(
            ErrorCode.POLICY_VIOLATION,
            f"Unable to perform excessively large batch operation: at most {RECORDS_PER_REQUEST_MAX} records are written "
            "for one request.",
        )
