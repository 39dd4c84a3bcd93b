"""The rules, and everything that cites them, fit together; and the tool that says so can say no."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mutants.mutant import ROOT, Mutant, all_mutants
from tests.rulebook import book, citations
from tests.rulebook.page import PAGE, page
from tests.rulebook.references import BEHAVIOURS, PROTOCOL, Repository

PROSE_MAX = 120


@pytest.fixture(scope="module")
def repository() -> Repository:
    return Repository(ROOT, all_mutants())


def test_every_citation_has_its_rule_and_every_rule_is_kept_and_checked(repository: Repository) -> None:
    assert list(repository.problems()) == []


def test_the_page_of_cross_references_is_up_to_date(repository: Repository) -> None:
    assert (ROOT / PAGE).read_text() == page(repository), "python -m tests.rulebook --write"


def test_every_transcript_of_replication_cites_a_rule(repository: Repository) -> None:
    transcripts = [each for each in repository.citing_files if each.path.startswith("tests/unit/replica/stories/")]
    assert transcripts
    assert [each.path for each in transcripts if not each.found.rules] == []


@pytest.mark.parametrize("name", [PROTOCOL, BEHAVIOURS])
def test_lines_are_short_but_for_links(name: str) -> None:
    long = [line for line in (ROOT / name).read_text().splitlines() if len(line) > PROSE_MAX]
    assert [line for line in long if not line.strip().startswith("[")] == []


# What a citation is


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        ("kept by the leader (A3).", ["A3"]),
        ("(rules A6, A7): B15", ["A6", "A7", "B15"]),
        ("a range (D5-D7, D9-D12)", ["D5", "D6", "D7", "D9", "D10", "D11", "D12"]),
        ("elected by B7 to B9", ["B7", "B8", "B9"]),
        ("SEC-L2, SEC-L10 and TXN-T6-TXN-T7", ["SEC-L2", "SEC-L10", "TXN-T6", "TXN-T7"]),
        ("PIPE-L2, CON-N1, PAR-U1", ["PIPE-L2", "CON-N1", "PAR-U1"]),
        ("TXN-TF2, TXN-TI1-TXN-TI3 and TXN-TIM1", ["TXN-TF2", "TXN-TI1", "TXN-TI2", "TXN-TI3"]),
        ("the controllers `C1` and `C2`", []),
        ("M3 and T1 are of no chapter, L2 lacks its book, KIP-848 and FOO-A1 are of none", []),
        ("0xA1, A100, MA1, x.A1, A1b, v-A1, a1, D1_old, /A1", []),
    ],
)
def test_rules_in_prose(text: str, rules: list[str]) -> None:
    assert list(citations.rules_in(text)) == rules


def test_bare_rules_are_cited_in_prose_alone() -> None:
    source = '''"""Keeps (A1)."""
NODES = ["C1", "C2"]  # as A2 has it
D1, D2 = 1, 2
ATTACK = "SEC-L6"
"""The attribute of I4."""
assert NODES, f"B6: {NODES}"


def test_a13_ends():
    return "A14"
'''
    found = citations.in_python(source)
    assert sorted(found.rules) == [("A1", 1), ("A13", 9), ("A2", 2), ("B6", 6), ("I4", 5), ("SEC-L6", 4)]


def test_a_page_has_code_that_cites_nothing() -> None:
    found = citations.in_prose(
        "A1\n```\nA2 section 3 x.md\n```\nas `A4` and docs/decisions/0005 say, by design 5 (`README.md`)\n"
    )
    assert found.rules == [("A1", 1)]
    assert found.pages == [("docs/decisions/0005", 5), ("README.md", 5)]
    assert found.elsewhere == [("design 5", 5)]


def test_a_transcript_cites_in_its_name_and_its_comments() -> None:
    found = citations.in_transcript("s06_followers_pull.txt", "# S6, A9: they pull\nelect C1\n")
    assert found.rules == [("S6", 1), ("S6", 1), ("A9", 1)]


def test_a_rule_stands_in_the_book_once() -> None:
    with pytest.raises(book.BadBook, match="A1 stands twice"):
        book.read("## A\n\n- **A1** This.\n- **A1** That.\n")


# What does not fit together


SOUND = {
    PROTOCOL: "# Rules\n\n## A. Replication\n\n- **A1** This holds,\n  because (A2).\n- **A2** That holds.\n",
    BEHAVIOURS: "# Behaviours\n\n## Topics\n\n- **S1** It shows. [test_it.py::test_a1_it](../tests/test_it.py)\n",
    "docs/decisions/0005-why.md": "# 5. Why\n",
    "src/strandline/leader.py": '"""Keeps A1 (docs/decisions/0005)."""\n',
    "tests/test_it.py": '"""Tests S1."""\n\n\ndef test_a1_it():\n    pass\n',
}
MUTANT = Mutant("other", "A2", "leader.py", "old", "new", "A lesson.", test="tests/test_it.py::test_a1_it")


def problems_of(root: Path, changed: dict[str, str], mutant: Mutant = MUTANT) -> list[str]:
    for name, text in (SOUND | changed).items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return list(Repository(root, {mutant.name: mutant}).problems())


def test_a_sound_repository_has_no_problems(tmp_path: Path) -> None:
    assert problems_of(tmp_path, {}) == []


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("src/strandline/leader.py", '"""Keeps A1."""\n# and A3\n', "src/strandline/leader.py:2: cites A3"),
        ("README.md", "# Read (SEC-L2)\n", "README.md:1: cites SEC-L2"),
        ("src/strandline/other.py", '"""By design 5."""\n', 'other.py:1: cites "design 5"'),
        ("src/strandline/other.py", '"""As docs/decisions/0006 says."""\n', "other.py:1: cites docs/decisions/0006"),
        ("README.md", "See mission.md.\n", "README.md:1: cites mission.md"),
        ("src/strandline/leader.py", '"""Keeps nothing."""\n', "no code cites A1"),
        ("tests/test_it.py", '"""S1."""\n\n\ndef test_it():\n    pass\n', "neither a test nor a judge cites A1"),
        (PROTOCOL, SOUND[PROTOCOL] + "- **A4** Nobody knows.\n", "no code cites A4"),
        (PROTOCOL, SOUND[PROTOCOL] + "- **KIP-1** Nobody knows.\n", "no code cites KIP-1"),
        (BEHAVIOURS, SOUND[BEHAVIOURS] + "- **S2** It does.\n", "nothing shows S2"),
        (
            BEHAVIOURS,
            SOUND[BEHAVIOURS].replace("_it]", "_that]"),
            "shown by test_it.py::test_a1_that, which is not there",
        ),
        ("tests/test_other.py", '"""S1."""\n', "tests/test_other.py cites S1, and is not linked there"),
    ],
)
def test_what_does_not_fit_is_named(tmp_path: Path, name: str, text: str, problem: str) -> None:
    assert any(problem in each for each in problems_of(tmp_path, {name: text})), problem


def test_a_mutant_of_no_rule_is_named(tmp_path: Path) -> None:
    assert "mutant other: breaks A5, which is no rule of docs/protocol.md" in problems_of(
        tmp_path, {}, MUTANT._replace(rule="A5")
    )
