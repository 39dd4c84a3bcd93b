"""`python -m tests.rulebook [--write]`: whether rules and citations fit together; with --write after writing docs/rules.md."""

from __future__ import annotations

import sys

from tests.mutants.mutant import ROOT, all_mutants
from tests.rulebook.page import PAGE, page
from tests.rulebook.references import Repository


def main(arguments: list[str]) -> int:
    repository = Repository(ROOT, all_mutants())
    if arguments == ["--write"]:
        (ROOT / PAGE).write_text(page(repository))
    problems = list(repository.problems())
    if (ROOT / PAGE).read_text() != page(repository):
        problems.append(f"{PAGE} is out of date: python -m tests.rulebook --write")
    print("\n".join(problems) or "every citation has its rule, every rule its citations")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
