"""The book: the rules that `docs/protocol.md` has, and the behaviours of `docs/behaviours.md` with what shows each.

Always true: a rule is an item of a list that begins with its name in bold, and stands there once.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_RULE = re.compile(r"^- \*\*((?:[A-Z]+-)?[A-Z]{0,2}\d+)\*\* ", re.MULTILINE)
_CHAPTER = re.compile(r"^## (.+)$", re.MULTILINE)
_LINK = re.compile(r"\[`?([^\]`]+)`?\]\(([^)#]+)(?:#[^)]*)?\)")


class BadBook(Exception):
    """A rule that stands there twice; says which."""


class Link(NamedTuple):
    text: str
    """A name; of a test also its function: `test_survivors.py::test_the_last_broker_keeps_serving`."""
    target: str
    """Relative to the page."""


class Chapter(NamedTuple):
    title: str
    rules: dict[str, str]
    """Name and text, in their order."""


def read(text: str) -> list[Chapter]:
    """The chapters that have rules."""
    chapters = []
    seen: set[str] = set()
    _, *rest = _CHAPTER.split(text)
    for title, body in zip(rest[::2], rest[1::2], strict=True):
        _, *found = _RULE.split(body)
        rules: dict[str, str] = {}
        for rule, words in zip(found[::2], found[1::2], strict=True):
            if rule in seen:
                raise BadBook(f"{rule} stands twice in the book")
            seen.add(rule)
            rules[rule] = " ".join(words.split("\n\n")[0].split())
        if rules:
            chapters.append(Chapter(title, rules))
    return chapters


def names(chapters: list[Chapter]) -> set[str]:
    return {rule for chapter in chapters for rule in chapter.rules}


def links_in(text: str) -> list[Link]:
    """Links to files, not those to the web."""
    return [Link(*found) for found in _LINK.findall(text) if "://" not in found[1]]
