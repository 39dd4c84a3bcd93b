"""References: every citation in the repository, and whether it leads somewhere.

Always true: what is found does not depend on the order in which files are listed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from enum import Enum
from functools import cache, cached_property
from pathlib import Path
from typing import NamedTuple

from tests.mutants.mutant import Mutant
from tests.rulebook import book, citations
from tests.rulebook.citations import Found

PROTOCOL, BEHAVIOURS = "docs/protocol.md", "docs/behaviours.md"
GENERATED = ("docs/rules.md", "docs/mutants.md", "docs/stories/")
"""Made of what is read elsewhere; those of the stories call their controllers `C1`, `C2`, `C3`."""
OF_THE_TOOL = ("tests/rulebook/", "tests/unit/test_rulebook.py")
"""Speaks of citations, and has examples of bad ones."""
MUTANTS = "tests/mutants/"


class Kind(Enum):
    CODE = "Code"
    TEST = "Tests"
    JUDGE = "Judges"
    MUTANT = "Mutants"
    SHOWN = "Shown by"


References = dict[Kind, set[str]]
"""Of one rule: paths from the root of the repository; of mutants, names."""


class CitingFile(NamedTuple):
    path: str
    found: Found


def kind_of(path: str) -> Kind | None:
    """What a citation in this file says of the rule; None if it says nothing: an index, a page, the mutants' own table."""
    if path.startswith("src/strandline/histories/judges/"):
        return None if path.endswith("__init__.py") else Kind.JUDGE
    if path.startswith(("src/strandline/histories/", "src/strandline/stories/")):
        return Kind.SHOWN
    if path.startswith("src/"):
        return Kind.CODE
    if path.startswith(("tests/", "bench/")) and not path.startswith(MUTANTS):
        return Kind.TEST
    return None


class Repository:
    def __init__(self, root: Path, mutants: Mapping[str, Mutant]) -> None:
        self.root = root
        self.mutants = mutants
        self.rules = book.read((root / PROTOCOL).read_text())
        self.behaviours = book.read((root / BEHAVIOURS).read_text())

    @cached_property
    def citing_files(self) -> list[CitingFile]:
        pages = [*self.root.glob("*.md"), *(self.root / "docs").rglob("*.md")]
        others = [path for folder in ("src", "tests", "bench") for path in (self.root / folder).rglob("*.*")]
        return [CitingFile(*each) for each in self._look_into(sorted([*pages, *others]))]

    def _look_into(self, paths: list[Path]) -> Iterator[tuple[str, Found]]:
        for path in paths:
            name = path.relative_to(self.root).as_posix()
            if name.startswith((*GENERATED, *OF_THE_TOOL)):
                continue
            match path.suffix:
                case ".py":
                    yield name, citations.in_python(path.read_text())
                case ".md":
                    yield name, citations.in_prose(path.read_text())
                case ".toml" if not name.startswith(MUTANTS):
                    yield name, citations.in_prose(path.read_text())
                case ".txt" if path.parent.name == "stories":
                    yield name, citations.in_transcript(path.name, path.read_text())

    @cached_property
    def references(self) -> dict[str, References]:
        found: dict[str, References] = {}

        def add(rule: str, kind: Kind, what: str) -> None:
            found.setdefault(rule, {kind: set() for kind in Kind})[kind].add(what)

        for path, cites in self.citing_files:
            kind = kind_of(path)
            if kind is not None:
                for citation in cites.rules:
                    add(citation.cited, kind, path)
        for mutant in self.mutants.values():
            add(mutant.rule, Kind.MUTANT, mutant.name)
            add(mutant.rule, Kind.CODE, f"src/strandline/{mutant.file}")
            if mutant.test is not None:
                add(mutant.rule, Kind.TEST, mutant.test.partition("::")[0])
        return found

    def problems(self) -> Iterator[str]:
        """What does not fit together, one line each."""
        yield from self._citations_without_a_rule()
        yield from self._rules_without_a_citation()
        for chapter in self.behaviours:
            for behaviour, text in chapter.rules.items():
                yield from self._not_shown(behaviour, text)

    def _citations_without_a_rule(self) -> Iterator[str]:
        known = book.names(self.rules) | book.names(self.behaviours)
        for path, cites in self.citing_files:
            for rule, line in cites.rules:
                if rule not in known:
                    yield f"{path}:{line}: cites {rule}, which is no rule of {PROTOCOL} or {BEHAVIOURS}"
            for page, line in cites.pages:
                if not self._is_page(page, path):
                    yield f"{path}:{line}: cites {page}, which is not there"
            for text, line in cites.elsewhere:
                yield f'{path}:{line}: cites "{text}", which is no text of this repository'
        for mutant in self.mutants.values():
            if mutant.rule not in known:
                yield f"mutant {mutant.name}: breaks {mutant.rule}, which is no rule of {PROTOCOL}"

    def _rules_without_a_citation(self) -> Iterator[str]:
        for rule in sorted(book.names(self.rules)):
            if rule.startswith("KIP-"):
                if not self._is_in_code(rule):
                    yield f"{PROTOCOL}: no code cites {rule}"
                continue
            found = self.references.get(rule, {kind: set() for kind in Kind})
            # Invariants follow from the other rules: for them a judge will do.
            if not found[Kind.CODE] and not (rule.startswith(("I", "TXN-TI")) and found[Kind.JUDGE]):
                yield f"{PROTOCOL}: no code cites {rule}"
            if not found[Kind.TEST] | found[Kind.JUDGE]:
                yield f"{PROTOCOL}: neither a test nor a judge cites {rule}"

    def _is_in_code(self, kip: str) -> bool:
        return any(kip in citations.kips_in(path.read_text()) for path in sorted((self.root / "src").rglob("*.py")))

    def _is_page(self, page: str, path: str) -> bool:
        if page.startswith("docs/decisions/") and not page.endswith(".md"):
            return any(self.root.glob(f"{page}-*.md"))
        folders = (self.root, self.root / "docs", (self.root / path).parent)
        return any((folder / page).is_file() for folder in folders)

    def _not_shown(self, behaviour: str, text: str) -> Iterator[str]:
        """A behaviour that nothing shows, links that lead nowhere, tests and stories that the page forgot."""
        links = book.links_in(text)
        if not links:
            yield f"{BEHAVIOURS}: nothing shows {behaviour}"
        shown = set()
        for link in links:
            target = (self.root / "docs" / link.target).resolve()
            function = link.text.partition("::")[2]
            if not target.is_file() or (function and function not in _functions_in(target)):
                yield f"{BEHAVIOURS}: {behaviour} is shown by {link.text}, which is not there"
            else:
                shown.add(target.relative_to(self.root).as_posix())
        found = self.references.get(behaviour, {kind: set() for kind in Kind})
        stories = {_page_of(path) for path in found[Kind.SHOWN]}
        for path in sorted((found[Kind.TEST] | stories) - shown):
            yield f"{BEHAVIOURS}: {path} cites {behaviour}, and is not linked there"


def _page_of(tale: str) -> str:
    return f"docs/stories/{Path(tale).stem.replace('_', '-')}.md"


@cache
def _functions_in(path: Path) -> frozenset[str]:
    tree = citations.parsed(path.read_text())
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
