"""docs/rules.md: of each rule the code that keeps it, and the tests, judges and mutants that check it.

Always true: what the page says is read from the citations; nothing of it is written by hand.
"""

from __future__ import annotations

from collections.abc import Iterable

from tests.rulebook.references import Kind, Repository

PAGE = "docs/rules.md"

INTRODUCTION = """\
# Where the rules are kept

Each rule of [protocol.md](protocol.md), the code that keeps it, and the tests, judges and mutants that check it. The page is
made of citations in the sources (`python -m tests.rulebook --write`); `make check` says when it is out of date, when something
cites a rule that does not exist, and when nothing keeps or checks a rule. The last column has the stories in which a rule is
shown and the parts of the simulator that provoke it. [behaviours.md](behaviours.md) has the same for what users see.

Code is below `src/strandline/`, judges are below `src/strandline/histories/judges/`, tests below `tests/`;
[mutants.md](mutants.md) says what each mutant breaks.
"""

BELOW = {
    Kind.CODE: "src/strandline/",
    Kind.TEST: "tests/",
    Kind.JUDGE: "src/strandline/histories/judges/",
    Kind.SHOWN: "src/strandline/",
}


def page(repository: Repository) -> str:
    lines = [INTRODUCTION]
    references = repository.references
    for chapter in repository.rules:
        rules = [rule for rule in chapter.rules if rule in references]
        kinds = [kind for kind in Kind if any(references[rule][kind] for rule in rules)]
        if not kinds:
            continue
        lines += [
            f"## {chapter.title}\n",
            f"| Rule | {' | '.join(kind.value for kind in kinds)} |",
            f"|---{'|---' * len(kinds)}|",
        ]
        lines += [f"| {rule} | {' | '.join(_cell(kind, references[rule][kind]) for kind in kinds)} |" for rule in rules]
        lines.append("")
    return "\n".join(lines)


def _cell(kind: Kind, what: Iterable[str]) -> str:
    if kind is Kind.MUTANT:
        return ", ".join(f"`{name}`" for name in sorted(what))
    return ", ".join(f"[{path.removeprefix(BELOW[kind])}](../{path})" for path in sorted(what))
