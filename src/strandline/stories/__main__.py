"""`python -m strandline.stories --write DIR`: play all stories in all variants, and write their pages and pictures."""

from __future__ import annotations

import argparse
import os

from strandline.stories.registry import play, stories
from strandline.stories.render import pages
from strandline.stories.render.words import LANGUAGES


def files() -> dict[str, str]:
    """All of `docs/stories`, by file name."""
    known = stories()
    made = {pages.index_name(language): pages.index(known, language) for language in LANGUAGES}
    for story in known:
        variants = [play(story.name, variant) for variant in story.variants]
        for played in variants:
            made |= pages.pictures(played)
        for language in LANGUAGES:
            made[pages.page_name(story, language)] = pages.page(story, variants, language)
    return made


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m strandline.stories", description=__doc__)
    parser.add_argument(
        "--write", metavar="DIR", required=True, help="where the pages go; pages of stories that are gone are removed"
    )
    directory = parser.parse_args().write
    os.makedirs(directory, exist_ok=True)
    made = files()
    for name in os.listdir(directory):
        if name not in made and name.endswith((".md", ".svg")):
            os.remove(os.path.join(directory, name))
    for name, text in made.items():
        with open(os.path.join(directory, name), "w", encoding="utf-8") as file:
            file.write(text)


if __name__ == "__main__":
    main()
