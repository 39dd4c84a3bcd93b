"""An act: one piece of harm, what it is about, and its undoing; a history is several of them, one after the other.

Always true: an act runs in any setting that it fits; it waits for what it is about, but not for ever, and not in vain: that all
comes right again is judged after it, when its harm is undone.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from strandline.histories.setting import Setting

if TYPE_CHECKING:
    from strandline.histories.acts.scene import Scene

CLUSTER, GROUPS, COMPACTION = "cluster", "groups", "compaction"
"""What acts are about: every history can have those of the first family, the others need a group or a compacted topic."""

Play = Callable[["Scene"], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Act:
    name: str
    play: Play
    fits: Callable[[Setting], bool]
    meaning: str
    """Its first line of documentation."""
    family: str = CLUSTER
    weight: int = 1
    """How often it comes, beside the others: faults that few acts have should be seen often enough too."""


ACTS: dict[str, Act] = {}
"""By name."""


def act(
    name: str, fits: Callable[[Setting], bool] = lambda setting: True, *, weight: int = 1, family: str = CLUSTER
) -> Callable[[Play], Play]:
    """Register an act under a name."""

    def register(play: Play) -> Play:
        assert name not in ACTS, f"two acts are called {name!r}"
        ACTS[name] = Act(name, play, fits, (play.__doc__ or "").strip().splitlines()[0], family, weight)
        return play

    return register


def deck(family: str = CLUSTER) -> list[Act]:
    """Every act of a family as often as it weighs, well mixed, so that the first hundred seeds have of all what they weigh."""
    acts = [act for act in ACTS.values() if act.family == family for _ in range(act.weight)]
    random.Random(family).shuffle(acts)
    return acts


# Settings that many acts fit


def quorum(setting: Setting) -> bool:
    """A voter may go, and the others go on."""
    return setting.voters >= 3


def five_voters(setting: Setting) -> bool:
    return setting.voters == 5


def replicated(setting: Setting) -> bool:
    """A broker may go, and the others go on."""
    return setting.replicas >= 3


def apart(setting: Setting) -> bool:
    return replicated(setting) and not setting.shape.is_combined


def durable(setting: Setting) -> bool:
    """A broker may lose its disk, or what rots there, and nothing is lost: nowhere is one replica in sync enough."""
    return replicated(setting) and all(topic.min_isr >= 2 for topic in setting.topics)


def movable(setting: Setting) -> bool:
    """There are more brokers than some topic has replicas."""
    return setting.brokers > min(topic.replicas for topic in setting.topics)


def compacting(setting: Setting) -> bool:
    """There is a compacted topic, and a broker may go."""
    return setting.compaction is not None and replicated(setting)


def grouped(setting: Setting) -> bool:
    """There is a group, and its coordinator may go."""
    return setting.group is not None and replicated(setting)
