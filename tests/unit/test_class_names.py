"""Names of classes: each stands for one thing in the package."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

SOURCES = Path(__file__).parents[2] / "src"


def repeated(modules: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """The modules of each top-level class that several define, from their names and texts."""
    found: dict[str, list[str]] = defaultdict(list)
    for module, text in modules:
        for name in set(re.findall(r"^class (\w+)", text, re.MULTILINE)):
            found[name].append(module)
    return {name: sorted(where) for name, where in found.items() if len(where) > 1}


def test_what_counts_as_repeated() -> None:
    one = "class A:\n    class Inner: ...\nclass B: ...\n"
    other = "class B:\n    class Inner: ...\nclass C: ...\n"
    assert repeated([("one.py", one), ("other.py", other)]) == {"B": ["one.py", "other.py"]}


def test_no_two_modules_define_a_class_of_the_same_name() -> None:
    files = [*SOURCES.rglob("*.py")]
    assert len(files) > 500
    assert not repeated((str(path.relative_to(SOURCES)), path.read_text(encoding="utf-8")) for path in files)
