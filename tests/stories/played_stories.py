"""Stories that several tests look at, played once for each process."""

from __future__ import annotations

from functools import cache

from strandline.stories.frames import PlayedStory
from strandline.stories.options import Option
from strandline.stories.registry import Story, play, stories

STORIES = stories()
VARIANTS = [(story, variant) for story in STORIES for variant in story.variants]


@cache
def played_story(name: str, variant: frozenset[Option] = frozenset()) -> PlayedStory:
    return play(name, variant)


def label(value: object) -> str:
    if isinstance(value, Story):
        return value.name
    assert isinstance(value, frozenset)
    return "+".join(option.slug for option in value) or "as it is"
