"""A nemesis: faults with one purpose, and their undoing; a history has several of them, one after the other.

The word is Jepsen's: the nemesis is what injects faults while clients work.

Always true: a nemesis runs in any setting that it fits; it waits for its moment, but not for ever; when its faults are
undone the cluster has to become whole again, and that is judged.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from strandline.histories.setting import HistorySetting

if TYPE_CHECKING:
    from strandline.histories.nemeses.context import NemesisContext

CLUSTER, GROUPS, COMPACTION, TRANSACTIONS = "cluster", "groups", "compaction", "transactions"
"""Families of nemeses: every history can have those of the first, the others need a group, a compacted topic or
transactions."""

Play = Callable[["NemesisContext"], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Nemesis:
    name: str
    play: Play
    fits: Callable[[HistorySetting], bool]
    meaning: str
    """The first paragraph of its documentation."""
    family: str = CLUSTER
    weight: int = 1
    """How often it comes, beside the others: faults that few nemeses have should be seen often enough too."""


NEMESES: dict[str, Nemesis] = {}
"""By name."""


def nemesis(
    name: str, fits: Callable[[HistorySetting], bool] = lambda setting: True, *, weight: int = 1, family: str = CLUSTER
) -> Callable[[Play], Play]:
    """Register a nemesis under a name."""

    def register(play: Play) -> Play:
        assert name not in NEMESES, f"two nemeses are called {name!r}"
        NEMESES[name] = Nemesis(name, play, fits, _first_paragraph(play), family, weight)
        return play

    return register


def _first_paragraph(play: Play) -> str:
    return " ".join((play.__doc__ or "").strip().partition("\n\n")[0].split())


def deck(family: str = CLUSTER) -> list[Nemesis]:
    """Every nemesis of a family as often as it weighs, well mixed, so that the first hundred seeds have of all what
    they weigh."""
    nemeses = [nemesis for nemesis in NEMESES.values() if nemesis.family == family for _ in range(nemesis.weight)]
    random.Random(family).shuffle(nemeses)
    return nemeses


# Settings that many nemeses fit


def quorum(setting: HistorySetting) -> bool:
    """A voter may go, and the others go on."""
    return setting.voters >= 3


def five_voters(setting: HistorySetting) -> bool:
    return setting.voters == 5


def replicated(setting: HistorySetting) -> bool:
    """A broker may go, and the others go on."""
    return setting.replicas >= 3


def apart(setting: HistorySetting) -> bool:
    return replicated(setting) and not setting.shape.is_combined


def durable(setting: HistorySetting) -> bool:
    """A broker may lose its disk, or what rots there, and nothing is lost: nowhere is one replica in sync enough."""
    return replicated(setting) and all(topic.min_isr >= 2 for topic in setting.topics)


def movable(setting: HistorySetting) -> bool:
    """There are more brokers than some topic has replicas."""
    return setting.brokers > min(topic.replicas for topic in setting.topics)


def compacting(setting: HistorySetting) -> bool:
    """There is a compacted topic, and a broker may go."""
    return setting.compaction is not None and replicated(setting)


def transacting(setting: HistorySetting) -> bool:
    """There are transactions, and a broker may go."""
    return setting.transactions is not None and replicated(setting)


def grouped(setting: HistorySetting) -> bool:
    """There is a group, and its coordinator may go."""
    return setting.group is not None and replicated(setting)
