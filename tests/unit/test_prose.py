"""The hand-written pages: lines of prose have at most 120 characters, so that any editor shows them, and files that are
named exist."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LINE_MAX = 120
GENERATED = {"docs/apis.md", "docs/config.md", "docs/mutants.md", "docs/rules.md"}
"""And the pages of docs/stories."""


def pages() -> list[str]:
    found = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("docs/decisions/*.md")]
    return sorted({str(path.relative_to(ROOT)) for path in found} - GENERATED)


def long_lines(text: str) -> Iterator[int]:
    """The numbers of lines of prose that are too long. Code, tables, and a word that cannot be broken (a link) may be."""
    in_code = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            in_code = not in_code
        elif len(line) > LINE_MAX and not in_code and not line.startswith("|") and len(line.split()) > 1:
            yield number


def test_what_counts_as_a_long_line() -> None:
    long, link = "word " * 25, "x" * 130
    text = "\n".join(["short", long, "```", long, "```", f"| {long} |", f"  {link}", f"- {link} and more"])
    assert list(long_lines(text)) == [2, 8]


@pytest.mark.parametrize("page", pages())
def test_no_line_of_prose_is_too_long(page: str) -> None:
    numbers = list(long_lines((ROOT / page).read_text(encoding="utf-8")))
    assert not numbers, f"{page}: lines {', '.join(map(str, numbers))} are longer than {LINE_MAX} characters"


def test_files_that_the_architecture_names_exist() -> None:
    files = [f"/{path.relative_to(ROOT)}" for path in ROOT.rglob("*.py")]
    named = re.findall(r"`([\w/]+\.py)`", (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8"))
    assert len(named) > 100
    assert not [name for name in named if not any(path.endswith(f"/{name}") for path in files)]
