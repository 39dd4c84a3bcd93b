"""The stories by name, in the order in which the notes teach them, and how one is played.

A story is a coroutine function of a stage in a file of its own under `scenarios/`, registered with `@story`.

Always true: what is played is a function of the story and its options: the seed is the story's name.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass

from strandline.sim.world import World
from strandline.stories import scenarios
from strandline.stories.disabled_mechanisms import swapped
from strandline.stories.frames import BilingualText, PlayedStory
from strandline.stories.options import Option
from strandline.stories.stage import Stage

ORDER = (
    "commit",
    "uncommitted-read",
    "epoch-loss",
    "epoch-divergence",
    "diverging-fetch",
    "acks-all-duplicate",
    "retry-reorder",
    "acks-one-loss",
    "old-leader-returns",
    "lag-by-messages",
    "slow-follower",
    "new-leader-watermark",
    "min-insync",
    "unclean-election",
    "n-minus-one",
    "preferred-leader",
    "controller-failover",
    "quorum-vote",
    "metadata-snapshot",
    "pull-or-ack",
    "retention",
    "compaction",
    "transaction-commit",
    "read-committed",
    "zombie-fencing",
    "late-produce",
    "exactly-once-copy",
)
VIRTUAL_S_MAX = 600.0

Script = Callable[[Stage], Awaitable[None]]


class UnknownStory(LookupError):
    pass


class UnknownOption(ValueError):
    """A story was asked for in a way that it does not know; says which it does."""


@dataclass(frozen=True, slots=True)
class Story:
    name: str
    title: BilingualText
    """One line for the list."""
    options: tuple[Option, ...]
    note: BilingualText | None
    script: Script

    @property
    def variants(self) -> list[frozenset[Option]]:
        """As it is, and in each way that the notes show."""
        return [frozenset(), *(frozenset({option}) for option in self.options)]


_STORIES: dict[str, Story] = {}


def story(
    name: str, *, en: str, ko: str, options: Iterable[Option] = (), note: BilingualText | None = None
) -> Callable[[Script], Script]:
    """Register a story. `en` and `ko` are its line in the list; `note` says where the protocol differs from the notes."""
    assert name in ORDER, name

    def register(script: Script) -> Script:
        _STORIES[name] = Story(name, BilingualText(en, ko), tuple(options), note, script)
        return script

    return register


def stories() -> list[Story]:
    for module in pkgutil.iter_modules(scenarios.__path__):
        importlib.import_module(f"{scenarios.__name__}.{module.name}")
    return [_STORIES[name] for name in ORDER if name in _STORIES]


def find(name: str) -> Story:
    for known in stories():
        if known.name == name:
            return known
    raise UnknownStory(f"there is no story '{name}'")


def play(name: str, options: Iterable[Option] = ()) -> PlayedStory:
    """Play a story to its end. PointMissed if its point does not hold."""
    known = find(name)
    chosen = frozenset(options)
    for option in sorted(chosen - set(known.options), key=lambda option: option.value):
        knows = "; it knows " + ", ".join(o.flag for o in known.options) if known.options else ", nor any other option"
        raise UnknownOption(f"the story '{name}' does not know {option.flag}{knows}")
    with swapped(chosen), World(f"story {name}") as world:
        stage = Stage(world, chosen)
        world.run(_play(known, stage), until=VIRTUAL_S_MAX)
        flags = tuple(option.flag for option in known.options if option in chosen)
        return stage.finish(name, known.title, flags, known.note)


async def _play(known: Story, stage: Stage) -> None:
    await known.script(stage)
    await stage.close()
