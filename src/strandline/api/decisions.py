"""Several decisions in one request: topics to create, resources to alter.

Always true: each decision sees what those before it in the request wrote; one that is refused writes nothing and stops none
of the others; all that were accepted are committed together. Settings among them that have no effect are logged.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain, islice
from typing import TypeVar

from strandline.api.context import Broker
from strandline.controller.configs import without_effect
from strandline.errors import KafkaError
from strandline.metadata.image import MetadataImage
from strandline.metadata.records import MetadataRecord
from strandline.metadata.replay import replay

Item = TypeVar("Item")
Outcome = list[MetadataRecord] | KafkaError
"""The records that one decision made, or why it made none."""
WARNINGS_MAX = 20
"""So many lines of the log one request may cause."""


async def decide_each(
    broker: Broker,
    items: Sequence[Item],
    decide: Callable[[MetadataImage, Item], list[MetadataRecord]],
    *,
    validate_only: bool = False,
) -> list[Outcome]:
    """The outcome of each item, in their order, once all is committed. If the controller can't be reached, that for all."""

    def decision(image: MetadataImage) -> tuple[list[MetadataRecord], list[Outcome]]:
        records, outcomes = decide_on(image, items, decide)
        return ([] if validate_only else records), outcomes

    if not items:
        return []
    try:
        outcomes = await broker.decide(decision)
    except KafkaError as error:
        return [error] * len(items)
    if not validate_only:
        accepted = chain.from_iterable(outcome for outcome in outcomes if not isinstance(outcome, KafkaError))
        for warning in islice(without_effect(accepted), WARNINGS_MAX):
            broker.warn(warning)
    return outcomes


def decide_on(
    image: MetadataImage, items: Sequence[Item], decide: Callable[[MetadataImage, Item], list[MetadataRecord]]
) -> tuple[list[MetadataRecord], list[Outcome]]:
    """All records, and the outcome of each item."""
    records: list[MetadataRecord] = []
    outcomes: list[Outcome] = []
    unseen: list[MetadataRecord] = []
    for item in items:
        if unseen:
            image = replay(image, unseen, image.end_offset + len(unseen), image.epoch)
        try:
            unseen = decide(image, item)
        except KafkaError as error:
            outcomes.append(error)
            unseen = []
            continue
        records += unseen
        outcomes.append(unseen)
    return records, outcomes
