"""docs/mutants.md: what the mutants are, made from their table.

Always true: what the page says of a mutant, the table says.
"""

from __future__ import annotations

from collections.abc import Iterable

from tests.mutants.mutant import ROOT, Mutant

PAGE = ROOT / "docs" / "mutants.md"

GROUPS = {
    "A": "Replication",
    "B": "ISR, elections, the controller",
    "C": "Idempotence, groups",
    "D": "The metadata quorum",
    "E": "The group coordinator",
    "F": "Compaction",
    "SEC": "Security",
    "TXN": "Transactions",
}

INTRODUCTION = """\
# Mutants: the judges can fail

A judge that never says no proves nothing. So the code is broken on purpose, one rule of the protocol at a time, and each such
mutant has to be noticed: by its unit test, and, where the rule shows itself in histories, by seeds of the simulator alone.

```
make mutants                              # every mutant meets the seed and the test that are written down for it
make mutants FRESH=1                      # search the seeds again, from the first on, up to 100 for each, and write them down
python -m tests.mutants --unseen --update # search for those that no seed has noticed so far
python -m tests.mutants --only unclean-by-default --fresh --first 100 --budget 50
python -m tests.mutants.playing unclean-by-default 0 100   # what its histories say, one line of JSON for each
```

A mutant is an entry in `tests/mutants/mutants.toml`: a piece of the source that keeps a rule, and what is put in its place. The
file on the disk stays as it is: an import hook replaces the text when the module is loaded, in a process of its own. The text
must occur exactly once; if it does not, because the code has changed, the mutant is an error until it is brought up to date.

A seed counts only if the same history finds nothing with the code as it is. `make test` plays a sample of the mutants: those of
files that changed lately, then others, as the commit's hash has it. `make mutants` plays all of them; where a seed no longer
notices, it looks for another, and `--update` writes it down. A search that was interrupted goes on where it was. A mutant that
neither a seed of the budget notices nor a test is a finding: a rule that nobody judges, or something that never happens in a
history. [What seeds do not notice](simulator.md#what-seeds-do-not-notice) says why.
"""


def page(mutants: Iterable[Mutant]) -> str:
    lines = [INTRODUCTION]
    by_group: dict[str, list[Mutant]] = {group: [] for group in GROUPS}
    for mutant in mutants:
        by_group[_group(mutant)].append(mutant)
    everybody = [mutant for group in by_group.values() for mutant in group]
    by_seed = sum(mutant.seed is not None for mutant in everybody)
    by_test = sum(mutant.test is not None for mutant in everybody)
    lines.append(f"{len(everybody)} mutants: {by_seed} are noticed by seeds alone, {by_test} by a test.\n")
    for group, members in by_group.items():
        lines += [
            f"## {group}. {GROUPS[group]}\n",
            "| Rule | Mutant | Without it | Seeds alone | Test |",
            "|---|---|---|---|---|",
        ]
        members.sort(key=_place)
        lines += [f"| {m.rule} | `{m.name}` | {m.lesson} | {_seed(m)} | {_test(m)} |" for m in members]
        lines.append("")
    return "\n".join(lines)


def _group(mutant: Mutant) -> str:
    """The letter of its rule, or the book that the rule stands in."""
    book, dash, _ = mutant.rule.partition("-")
    return book if dash else mutant.rule[0]


def _place(mutant: Mutant) -> tuple[str, int]:
    rule = mutant.rule.rpartition("-")[2]
    letters = rule.rstrip("0123456789")
    return letters, int(rule[len(letters) :])


def _seed(mutant: Mutant) -> str:
    if mutant.seed is not None:
        return f"{mutant.seed}: {mutant.breaks}"
    return "not searched" if mutant.survives is None else f"none of {mutant.survives}"


def _test(mutant: Mutant) -> str:
    if mutant.test is None:
        return "none"
    path, _, name = mutant.test.partition("::")
    return f"[`{name}`](../{path})"
