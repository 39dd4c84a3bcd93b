"""A unit test run with a mutant in the code: `python -m tests.mutants.testing NAME`.

Always true: it ends with `NOTICED` only if the test ran and failed; a test that passes, that is not there, or that can't even be
imported has noticed nothing.
"""

from __future__ import annotations

import sys

import pytest

from tests.mutants import loader, mutant

NOTICED = 10
OPTIONS = ("-q", "-x", "--no-header", "--tb=line", "-p", "no:cacheprovider", "-p", "no:xdist")


def main() -> None:
    broken = mutant.named(sys.argv[1])
    if broken.test is None:
        raise mutant.BadMutant(f"mutant {broken.name} has no test")
    loader.install(broken)
    has_failed = pytest.main([*OPTIONS, broken.test]) is pytest.ExitCode.TESTS_FAILED
    sys.exit(NOTICED if has_failed else 0)


if __name__ == "__main__":
    main()
