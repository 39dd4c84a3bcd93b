"""Every story in every way that it can be told: it makes its point, the same way each time, and its pages show it."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys

import pytest

from strandline.stories.frames import as_json
from strandline.stories.options import Option
from strandline.stories.registry import ORDER, Story, play, stories
from strandline.stories.render import pages
from strandline.stories.render.terminal import COLUMNS, lines, plain
from strandline.stories.render.words import LANGUAGES, width
from tests.stories.played_stories import STORIES, VARIANTS, label, played_story

DOCS = pathlib.Path(__file__).parents[2] / "docs" / "stories"
OUT_OF_DATE = "run `python -m strandline.stories --write docs/stories`"


def test_all_stories_of_the_mission_are_here() -> None:
    assert [story.name for story in stories()] == list(ORDER)


@pytest.mark.parametrize(("story", "variant"), VARIANTS, ids=label)
def test_a_story_makes_its_point_the_same_way_each_time(story: Story, variant: frozenset[Option]) -> None:
    played = played_story(story.name, variant)  # raises unless it makes its point
    assert play(story.name, variant) == played
    json.dumps(as_json(played))


@pytest.mark.parametrize(("story", "variant"), VARIANTS, ids=label)
def test_a_story_can_be_read_in_a_terminal(story: Story, variant: frozenset[Option]) -> None:
    played = played_story(story.name, variant)
    for language in LANGUAGES:
        text = [plain(line) for line in lines(played, language)]
        assert max(map(width, text)) <= COLUMNS
        assert any(played.point.in_language(language).split()[0] in line for line in text)


@pytest.mark.parametrize(("story", "variant"), VARIANTS, ids=label)
def test_something_goes_wrong_exactly_without_the_mechanism(story: Story, variant: frozenset[Option]) -> None:
    """Lost, doubled, reordered or diverged; where lag is counted in messages it is only a false alarm."""
    goes_wrong = bool(variant) and variant != {Option.LAG_BY_MESSAGES}
    assert bool(played_story(story.name, variant).wrong) == goes_wrong


@pytest.mark.parametrize("story", STORIES, ids=label)
def test_its_pages_are_up_to_date(story: Story) -> None:
    played_variants = [played_story(story.name, variant) for variant in story.variants]
    made = {name: text for played in played_variants for name, text in pages.pictures(played).items()}
    made |= {pages.page_name(story, language): pages.page(story, played_variants, language) for language in LANGUAGES}
    for name, text in made.items():
        assert (DOCS / name).read_text(encoding="utf-8") == text, OUT_OF_DATE


def test_the_index_is_up_to_date_and_nothing_else_is_there() -> None:
    expected = set()
    for language in LANGUAGES:
        name = pages.index_name(language)
        assert (DOCS / name).read_text(encoding="utf-8") == pages.index(STORIES, language), OUT_OF_DATE
        expected |= {name} | {pages.page_name(story, language) for story in STORIES}
    assert {path.name for path in DOCS.glob("*.md")} == expected
    count = len(LANGUAGES) * len(VARIANTS)
    assert len(list(DOCS.glob("*.svg"))) == count, OUT_OF_DATE


def test_frames_do_not_depend_on_the_hash_seed() -> None:
    code = "import json; from strandline.stories.registry import play; from strandline.stories.frames import as_json\n"
    code += "print(json.dumps(as_json(play('commit'))))"
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert [json.loads(output) for output in outputs] == [as_json(played_story("commit"))]
