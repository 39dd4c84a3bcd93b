"""Tellings that several tests look at, told once for each process."""

from __future__ import annotations

from functools import cache

from strandline.stories.frames import Telling
from strandline.stories.options import Option
from strandline.stories.registry import Story, stories, tell

STORIES = stories()
VARIANTS = [(story, variant) for story in STORIES for variant in story.variants]


@cache
def told(name: str, variant: frozenset[Option] = frozenset()) -> Telling:
    return tell(name, variant)


def label(value: object) -> str:
    if isinstance(value, Story):
        return value.name
    assert isinstance(value, frozenset)
    return "+".join(option.slug for option in value) or "as it is"
