"""`python -m tests`: all that `make test` runs after the checks, within the budget that CONTRIBUTING.md names.

The histories of the pool take what the tests leave of the machine: they wait for nothing, and most system tests do. What they print
is shown when they are through.

Always true: it ends with 0 only if both passed; the processes of the pool are gone when it ends.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
SEEDS = ROOT / "tests" / "sim" / "pool.txt"
"""Seeds that between them cover everything that histories can meet; `strandline sim --choose` makes it."""
REQUIRE = 3
"""So often at least a history has to meet each fault and transition."""
NICENESS = 10
PROCESSES = 3

POOL = [sys.executable, "-m", "strandline", "sim", "--seeds-from", str(SEEDS), "--require", str(REQUIRE)]
TESTS = [sys.executable, "-m", "pytest", "-n", str(PROCESSES)]


def main() -> int:
    # A shell starts what it puts in the background with SIGINT ignored; children inherit that, and tests of Ctrl-C would hang.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    began = time.monotonic()
    with tempfile.TemporaryFile("w+") as said:
        pool = subprocess.Popen(
            POOL, cwd=ROOT, stdout=said, stderr=subprocess.STDOUT, preexec_fn=lambda: os.nice(NICENESS) and None
        )
        try:
            tests = subprocess.run([*TESTS, *sys.argv[1:]], cwd=ROOT, check=False).returncode
            tested_s = time.monotonic() - began
            if pool.poll() is None:
                print("the tests are through; the histories of the pool are not yet", flush=True)
            histories = pool.wait()
        finally:
            pool.kill()
            pool.wait()
        said.seek(0)
        print(said.read())
    print(f"tests {tested_s:.0f} s, with the histories {time.monotonic() - began:.0f} s")
    return tests or histories


if __name__ == "__main__":
    sys.exit(main())
