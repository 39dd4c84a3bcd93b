"""Every rule has a mutant that is caught; a sample of them is played here, all of them by `make mutants`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mutants import listing, mutant, sampling, searching
from tests.mutants.mutant import BadMutant, Mutant
from tests.mutants.playing import Played
from tests.mutants.progress import Done
from tests.mutants.searching import Budget, Verdict

RULES = [
    f"{group}{n}" for group, last in {"A": 18, "B": 15, "D": 15, "E": 4, "F": 5}.items() for n in range(1, last + 1)
]
RULES += ["C1", "C2", "C12", "C13"]
RULES += [f"TXN-T{n}" for n in (2, 11, 21, 28, 30, 32, 34, 44)] + ["TXN-TF2", "TXN-V1", "TXN-V3", "TXN-V4"]
RULES += [f"TXN-P{n}" for n in (7, 9, 21, 22, 23, 30)]
MUTANTS = mutant.all_mutants()
BY_SEED_MIN = 75
SEEDS_MAX = 20
SAMPLE = sampling.sample(MUTANTS.values(), sampling.head(), sampling.changed_lately())


@pytest.mark.parametrize("name", [each.name for each in SAMPLE])
def test_a_mutant_is_caught(name: str) -> None:
    each = MUTANTS[name]
    if each.test is not None:
        assert searching.is_noticed_by_test(each), f"{each.test} does not notice {name}"
        return
    # A change of the code makes another history of the seed that is written down: one of those after it will do as well.
    first = each.seed or 0
    noticed = (played.breaks is not None for played in searching.played_by(name, first, first + SEEDS_MAX))
    assert any(noticed), f"{SEEDS_MAX} seeds from {first} on do not notice {name}: `make mutants` looks for another"


@pytest.mark.parametrize("rule", RULES)
def test_every_rule_has_a_mutant_that_is_caught(rule: str) -> None:
    assert any(each.rule == rule and (each.seed, each.test) != (None, None) for each in MUTANTS.values())


def test_enough_of_them_are_caught_by_histories() -> None:
    assert sum(each.seed is not None for each in MUTANTS.values()) >= BY_SEED_MIN


@pytest.mark.parametrize("name", MUTANTS)
def test_what_a_mutant_replaces_is_there_once(name: str) -> None:
    each = MUTANTS[name]
    source = (mutant.SOURCE / each.file).read_text()
    compile(each.applied_to(source), each.file, "exec")


@pytest.mark.parametrize("name", [name for name, each in MUTANTS.items() if each.test])
def test_the_test_that_is_to_notice_is_there(name: str) -> None:
    path, _, function = (MUTANTS[name].test or "").partition("::")
    assert f"def {function.partition('[')[0]}(" in (mutant.ROOT / path).read_text()


def test_the_page_says_what_the_table_says() -> None:
    assert listing.PAGE.read_text() == listing.page(MUTANTS.values()), "python -m tests.mutants --update writes it"


# The tool itself


def test_a_sample_begins_with_what_changed_and_has_the_same_mutants_for_the_same_commit() -> None:
    mutants = [EXAMPLE._replace(name=str(number), file=f"{number % 5}.py") for number in range(50)]
    chosen = sampling.sample(mutants, "commit", frozenset({"3.py"}), 20)
    assert {each.file for each in chosen[:10]} == {"3.py"}
    assert chosen == sampling.sample(reversed(mutants), "commit", frozenset({"3.py"}), 20)
    assert chosen != sampling.sample(mutants, "another", frozenset({"3.py"}), 20)
    assert len({*chosen}) == 20


EXAMPLE = Mutant("example", "A1", "ids.py", "old", "new", "A lesson.")


@pytest.mark.parametrize("source", ["nothing", "old and old"])
def test_a_mutant_that_fits_no_more_is_an_error_that_names_it(source: str) -> None:
    with pytest.raises(BadMutant, match=r"mutant example: .* in ids\.py"):
        EXAMPLE.applied_to(source)


def test_a_search_goes_on_where_it_was_interrupted(tmp_path: Path) -> None:
    budget, file = Budget(0, 100, True, True), tmp_path / "progress.jsonl"
    noticed = Verdict(EXAMPLE, Played(7, "LogMatching", "what", 1.5), True, 8, True)
    survived = Verdict(EXAMPLE._replace(name="other"), None, True, 100, True)
    for verdict in (noticed, survived):
        Done(budget, file=file, code="code").note(verdict)
    done = Done(budget, file=file, code="code")
    assert done.verdict(EXAMPLE) == noticed
    assert done.verdict(survived.mutant) == survived
    assert done.verdict(EXAMPLE._replace(new="newer")) is None, "it is another mutant"
    assert Done(budget, file=file, code="other code").verdict(EXAMPLE) is None
    assert Done(budget._replace(seeds=50), file=file, code="code").verdict(EXAMPLE) is None
    assert Done(budget, file=file, code="code", restart=True).verdict(EXAMPLE) is None
    assert not file.exists()


def test_what_no_seed_notices_is_written_down_too() -> None:
    text = '[one]\nlesson = "L"\nseed = 3\nbreaks = "Old"\ntest = "t"\n'
    text = mutant.with_survival(text, "one", 100)
    assert text == '[one]\nlesson = "L"\nsurvives = 100\ntest = "t"\n'
    assert mutant.with_seed(text, "one", 7, "New") == '[one]\nlesson = "L"\nseed = 7\nbreaks = "New"\ntest = "t"\n'


def test_a_seed_is_written_where_it_belongs() -> None:
    text = '[one]\nold = "x"\nlesson = "L"\ntest = "t"\n\n# More\n\n[two]\nlesson = "M"\nseed = 3\nbreaks = "Old"\n'
    text = mutant.with_seed(text, "one", 7, "New")
    text = mutant.with_seed(text, "two", 8, "Newer")
    assert text == (
        '[one]\nold = "x"\nlesson = "L"\nseed = 7\nbreaks = "New"\ntest = "t"\n\n# More\n\n'
        '[two]\nlesson = "M"\nseed = 8\nbreaks = "Newer"\n'
    )
