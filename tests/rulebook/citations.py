"""Citations: which rules a text names, and what counts as text in a source file.

A rule is cited by a letter and a number, `A3`, after the name of its book if it is not one of the replication protocol: `SEC-L2`.
`B7-B9` and `B7 to B9` cite all three. A test cites by its name too: `test_a3_...`, `test_txn_t6_...`; so does a transcript:
`a3_...txt`.
What only looks like a citation stands between backticks.

Always true: a bare rule is looked for only where people write prose: comments, docstrings, messages of assertions, pages. Elsewhere
`C1` may be a controller's name. A rule with its book can be nothing else, and is found in every string.
"""

from __future__ import annotations

import ast
import gc
import io
import re
import tokenize
from collections.abc import Iterable, Iterator
from typing import NamedTuple

BOOKS = ("SEC", "TXN", "PIPE", "CON", "PAR")
CHAPTERS = "ABCDEFIS"
"""Of the replication protocol, whose rules are cited without a book; S are the behaviours."""

_CITATION = re.compile(
    rf"(?<![\w./-])(?P<chapter>(?:{'|'.join(BOOKS)})-[A-Z]{{1,2}}|[{CHAPTERS}])(?P<first>\d{{1,2}})"
    r"(?:(?:-| to )(?P=chapter)(?P<last>\d{1,2}))?(?!\w)"
)
_CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)
_NAMED = rf"((?:(?:{'|'.join(BOOKS).lower()})_[a-z]{{1,2}})|[{CHAPTERS.lower()}])(\d{{1,2}})_"
_TEST = re.compile(rf"\bdef test_{_NAMED}")
_TRANSCRIPT = re.compile(rf"{_NAMED}\w+\.txt")
_KIP = re.compile(r"(?<![\w-])KIP-\d+(?!\w)")
_PAGE = re.compile(r"(?<![\w./-])(?:docs/decisions/\d{4}\b|(?:docs/)?(?:\w+/)*[\w-]+\.md\b)")
_NUMBERED = re.compile(r"\b(?:design|matrix|section|faults?) \d+\b")
"""No text here has numbered sections: what is cited so stands elsewhere."""
_SUSPECT = re.compile(rf"\b[{CHAPTERS}]\d|[A-Z]-[A-Z]{{1,2}}\d|\.md\b|docs/|\b(?:design|matrix|section|faults?) \d")
"""Any line that can hold one of these: cheap, since every line of every source file is held against it."""


class Citation(NamedTuple):
    cited: str
    line: int


class Found(NamedTuple):
    """What one file cites."""

    rules: list[Citation]
    pages: list[Citation]
    """Pages by path, decisions by number: `docs/decisions/0005`."""
    elsewhere: list[Citation]
    """What can be no text of this repository."""


def rules_in(text: str) -> Iterator[str]:
    """The rules that prose cites, ranges spelled out."""
    for found in _CITATION.finditer(_without_code(text)):
        first = int(found["first"])
        for number in range(first, int(found["last"] or first) + 1):
            yield f"{found['chapter']}{number}"


def kips_in(text: str) -> set[str]:
    """Kafka's improvement proposals: texts of Apache Kafka, of which only a few are rules of ours too."""
    return set(_KIP.findall(text))


def in_python(source: str) -> Found:
    found = Found([], [], [])
    # A quick look first: most files cite nothing, and need not be parsed.
    suspects = [line for line in source.split("\n") if _SUSPECT.search(line)]
    for first_line, text, is_prose in _texts(source, suspects):
        for line, words in enumerate(text.split("\n"), first_line):
            if is_prose:
                _look(words, line, found)
            else:
                found.rules.extend(Citation(rule, line) for rule in rules_in(words) if "-" in rule)
    for test in _TEST.finditer(source):
        found.rules.append(Citation(_named(*test.groups()), source.count("\n", 0, test.start()) + 1))
    return found


def in_prose(text: str) -> Found:
    """In a page or a table."""
    found = Found([], [], [])
    for line, words in enumerate(_CODE.sub(_kept_if_inline, text).split("\n"), 1):
        _look(words, line, found)
    return found


def in_transcript(name: str, text: str) -> Found:
    """In the lines that begin with `#`, and in its name: `s06_followers_pull.txt`."""
    found = Found([], [], [])
    if named := _TRANSCRIPT.fullmatch(name):
        found.rules.append(Citation(_named(*named.groups()), 1))
    for line, words in enumerate(text.split("\n"), 1):
        if words.startswith("#"):
            _look(words, line, found)
    return found


def _look(words: str, line: int, found: Found) -> None:
    found.rules.extend(Citation(rule, line) for rule in rules_in(words))
    found.pages.extend(Citation(page, line) for page in _PAGE.findall(words))
    found.elsewhere.extend(Citation(text, line) for text in _NUMBERED.findall(_without_code(words)))


def _named(chapter: str, number: str) -> str:
    return f"{chapter.upper().replace('_', '-')}{int(number)}"


def _without_code(text: str) -> str:
    return _CODE.sub(" ", text)


def _kept_if_inline(code: re.Match[str]) -> str:
    """Names of pages stand between backticks too; a block of code becomes as many empty lines."""
    return "\n" * code[0].count("\n") if code[0].startswith("```") else code[0]


def parsed(source: str) -> ast.Module:
    """Garbage is collected afterwards: meanwhile it makes CPython 3.11 miscount the depth of its recursion (gh-106905)."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        return ast.parse(source)
    finally:
        if was_enabled:
            gc.enable()


def _texts(source: str, suspects: list[str]) -> Iterator[tuple[int, str, bool]]:
    """Line, text, and whether it is prose; a string that is not may be anything. Only of files that have lines to be looked at."""
    if not suspects:
        return
    if any("#" in line for line in suspects):
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type == tokenize.COMMENT:
                yield token.start[0], token.string, True
    prose: set[ast.expr] = set()
    strings: list[ast.Constant] = []
    for node in ast.walk(parsed(source)):
        if isinstance(node, ast.Expr):  # a docstring, also that of an attribute
            prose.add(node.value)
        elif isinstance(node, ast.Assert) and node.msg is not None:
            prose.update(_parts(node.msg))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            strings.append(node)
    for string in strings:
        yield string.lineno, str(string.value), string in prose


def _parts(message: ast.expr) -> Iterable[ast.expr]:
    return message.values if isinstance(message, ast.JoinedStr) else [message]
