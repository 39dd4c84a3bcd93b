"""Which mutants `make test` plays: those of files that changed lately, then others, as the commit's hash has it.

Always true: the same commit plays the same mutants; over many commits each has its turn. `make mutants` plays all of them.
"""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Iterable
from datetime import datetime, timedelta

from tests.mutants.mutant import ROOT, SOURCE, Mutant

SAMPLE = 24
LATELY = timedelta(days=1)
"""Before the newest commit."""


def sample(mutants: Iterable[Mutant], commit: str, changed: frozenset[str], count: int = SAMPLE) -> list[Mutant]:
    """So many of them: those whose file is among `changed` first, and in each half in an order of this commit's own."""

    def place(mutant: Mutant) -> tuple[bool, bytes]:
        return mutant.file not in changed, hashlib.sha256(f"{commit} {mutant.name}".encode()).digest()

    return sorted(mutants, key=place)[:count]


def head() -> str:
    """The commit that is checked out; without a repository always the same."""
    return _git("rev-parse", "HEAD").strip()


def changed_lately() -> frozenset[str]:
    """Files below `src/strandline` that were changed in the newest commits, or are changed now."""
    names = _git("diff", "--name-only", "HEAD")
    if date := _git("log", "-1", "--format=%cI").strip():
        since = datetime.fromisoformat(date) - LATELY
        names += _git("log", f"--since={since.isoformat()}", "--name-only", "--format=")
    prefix = SOURCE.relative_to(ROOT).as_posix() + "/"
    return frozenset(name.removeprefix(prefix) for name in names.splitlines() if name.startswith(prefix))


def _git(*arguments: str) -> str:
    try:
        return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return ""
