"""What a search has found so far, kept in a file, so that one that is interrupted goes on where it was.

Always true: it counts only for the same code, the same mutant and the same budget; a search that came to its end leaves nothing.
"""

from __future__ import annotations

import hashlib
import json
from functools import cache
from pathlib import Path

from tests.mutants.mutant import HERE, SOURCE, Mutant
from tests.mutants.playing import Played
from tests.mutants.searching import Budget, Verdict

FILE = HERE / ".progress.jsonl"


@cache
def _digest_of_code() -> str:
    digest = hashlib.sha256()
    for path in sorted(SOURCE.rglob("*.py")):
        digest.update(path.relative_to(SOURCE).as_posix().encode() + path.read_bytes())
    return digest.hexdigest()


class Done:
    def __init__(self, budget: Budget, *, restart: bool = False, file: Path = FILE, code: str | None = None) -> None:
        self._file = file
        self._key = [_digest_of_code() if code is None else code, *budget]
        self._found: dict[str, list[object]] = {}
        if restart:
            self.forget()
        elif file.exists():
            for line in file.read_text().splitlines():
                key, *found = json.loads(line)
                if key == self._key:
                    self._found[found[0]] = found

    def verdict(self, mutant: Mutant) -> Verdict | None:
        found = self._found.get(mutant.name)
        if found is None or found[1] != [mutant.old, mutant.new]:
            return None
        _, _, played, by_test, tried, is_searched = found
        assert isinstance(tried, int)
        return Verdict(
            mutant,
            Played(*played) if isinstance(played, list) else None,
            bool(by_test),
            tried,
            bool(is_searched),
        )

    def note(self, verdict: Verdict) -> None:
        mutant, *rest = verdict
        with self._file.open("a") as file:
            file.write(json.dumps([self._key, mutant.name, [mutant.old, mutant.new], *rest]) + "\n")

    def forget(self) -> None:
        self._found = {}
        self._file.unlink(missing_ok=True)
