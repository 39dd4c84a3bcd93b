"""One mutant: a piece of source that keeps a rule, what stands in its place, and who notices.

Always true: the text that is replaced occurs exactly once in its file. A mutant for which that no longer holds is an error that
names it, so that a change of the code takes its mutants along.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
SOURCE = ROOT / "src" / "strandline"
TABLE = HERE / "mutants.toml"


class BadMutant(Exception):
    """It can't be made; says which and why."""


class Mutant(NamedTuple):
    name: str
    rule: str
    file: str
    """Below `src/strandline`."""
    old: str
    new: str
    lesson: str
    seed: int | None = None
    """Of a history that notices."""
    breaks: str | None = None
    """What that history says does not hold."""
    survives: int | None = None
    """So many seeds, from the first on, do not notice."""
    test: str | None = None
    """A unit test that notices."""

    @property
    def module(self) -> str:
        return "strandline." + self.file.removesuffix(".py").replace("/", ".")

    def applied_to(self, source: str) -> str:
        count = source.count(self.old)
        if count != 1:
            raise BadMutant(f"mutant {self.name}: what it replaces occurs {count} times in {self.file}, not once")
        return source.replace(self.old, self.new)


def read(text: str) -> dict[str, Mutant]:
    mutants = {}
    for name, fields in tomllib.loads(text).items():
        try:
            mutants[name] = Mutant(name, **fields)
        except TypeError as error:
            raise BadMutant(f"mutant {name}: {error}") from None
    return mutants


def all_mutants() -> dict[str, Mutant]:
    return read(TABLE.read_text())


def named(name: str) -> Mutant:
    mutants = all_mutants()
    if name not in mutants:
        raise BadMutant(f"there is no mutant {name}")
    return mutants[name]


def with_seed(text: str, name: str, seed: int, prop: str) -> str:
    """The table with this mutant's seed and the property that it breaks; the rest of it stays as it is written."""
    return _with(text, name, [f"seed = {seed}\n", f'breaks = "{prop}"\n'])


def with_survival(text: str, name: str, seeds: int) -> str:
    """The table where so many seeds do not notice this mutant."""
    return _with(text, name, [f"survives = {seeds}\n"])


def _with(text: str, name: str, found: list[str]) -> str:
    head = f"[{name}]\n"
    begin = text.index(head) + len(head)
    end = text.find("\n[", begin)
    end = len(text) if end < 0 else end + 1
    lines = text[begin:end].splitlines(keepends=True)
    kept = [line for line in lines if not line.startswith(("seed = ", "breaks = ", "survives = "))]
    lesson = next(i for i, line in enumerate(kept) if line.startswith("lesson = "))
    kept[lesson + 1 : lesson + 1] = found
    return text[:begin] + "".join(kept) + text[end:]
