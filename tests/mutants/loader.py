"""A mutant in place of its module: an import hook that replaces the text of one file as it is read.

Always true: nothing on the disk changes, neither the source nor its bytecode; every other module is what it is. It has to be
installed before anything of `strandline` is imported.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import decode_source, spec_from_file_location
from types import CodeType, ModuleType

from tests.mutants.mutant import SOURCE, Mutant


class _Loader(SourceFileLoader):
    def __init__(self, mutant: Mutant) -> None:
        super().__init__(mutant.module, str(SOURCE / mutant.file))
        self._mutant = mutant

    def get_code(self, fullname: str) -> CodeType:
        """Never from a cache, never into one."""
        source = decode_source(self.get_data(self.path))
        return compile(self._mutant.applied_to(source), self.path, "exec", dont_inherit=True)


class _Finder(MetaPathFinder):
    def __init__(self, mutant: Mutant) -> None:
        self._mutant = mutant

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self._mutant.module:
            return None
        return spec_from_file_location(fullname, self._mutant.file, loader=_Loader(self._mutant))


def install(mutant: Mutant) -> None:
    early = [name for name in sys.modules if name.partition(".")[0] == "strandline"]
    assert not early, f"{early[0]} was imported before the mutant"
    mutant.applied_to((SOURCE / mutant.file).read_text())
    sys.meta_path.insert(0, _Finder(mutant))
