"""The checks of `doctor` on this machine, and Finding, the result of a check.

Always true: a finding is ok, warn or fail; one that is not ok says what to do about it.
"""

from __future__ import annotations

import os
import re
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from strandline.records.record import encode_record
from strandline.records.walk import Walker

OK, WARN, FAIL = "ok", "warn", "fail"
PYTHON_MIN = (3, 11)
JAVA_MIN = 17
OPEN_FILES_MIN = 10_000
JAVA_TIMEOUT_S = 10


class Finding(NamedTuple):
    """The result of one check."""

    level: str
    """OK, WARN or FAIL."""
    check: str
    found: str
    advice: str = ""


def machine() -> Iterator[Finding]:
    yield python(sys.version_info[:3])
    yield uvloop()
    yield java(os.environ.get("JAVA_HOME"))
    yield record_walk()
    yield open_files(resource.getrlimit(resource.RLIMIT_NOFILE)[1])


def python(version: tuple[int, ...]) -> Finding:
    text = ".".join(map(str, version))
    if version[:2] >= PYTHON_MIN:
        return Finding(OK, "Python", text)
    return Finding(FAIL, "Python", text, f"install Python {'.'.join(map(str, PYTHON_MIN))} or newer")


def uvloop() -> Finding:
    from importlib import metadata

    try:
        return Finding(OK, "uvloop", metadata.version("uvloop"))
    except metadata.PackageNotFoundError:
        return Finding(WARN, "uvloop", "not installed", "pip install uvloop: nodes are slower without it")


def java(home: str | None) -> Finding:
    """Java is needed by Spark only."""
    path = shutil.which("java", path=os.path.join(home, "bin")) if home else shutil.which("java")
    advice = f"install a JDK of {JAVA_MIN} or newer; only Spark needs it"
    if path is None:
        return Finding(WARN, "Java", f"not in {home}/bin" if home else "not on the path", advice)
    try:
        done = subprocess.run([path, "-version"], capture_output=True, text=True, timeout=JAVA_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return Finding(WARN, "Java", f"{path} does not run ({error})", advice)
    return java_version(done.stderr + done.stdout, advice)


def java_version(text: str, advice: str) -> Finding:
    match = re.search(r'version "(?:1\.)?(\d+)[^"]*"', text)
    if match is None:
        return Finding(WARN, "Java", "version unknown", advice)
    shown = match[0].removeprefix("version ").strip('"')
    return Finding(OK, "Java", shown) if int(match[1]) >= JAVA_MIN else Finding(WARN, "Java", shown, advice)


def private_directories(paths: Iterable[str]) -> Iterator[Finding]:
    """Directories that older versions created with the modes of the umask, which they still have (SEC-H1)."""
    from strandline.runtime.modes import readable_by_others

    for path in paths:
        if readable_by_others(path):
            advice = f"chmod -R go-rwx {path}: credentials and records are in it"
            yield Finding(WARN, "directories", f"every user of this machine can read {path}", advice)


def record_walk() -> Finding:
    """Each produced record is walked: in machine code if numba could compile it, in Python otherwise."""
    from strandline.columnar import compiled_walk
    from strandline.records import walk

    compiled = compiled_walk.load()
    cost = f"{_walk_us(compiled or walk.PLAIN):.2f} us for each record that is produced"
    if compiled is not None:
        return Finding(OK, "record walk", f"machine code, {cost}")
    if compiled_walk.can_be_made():
        return Finding(OK, "record walk", f"Python, {cost}; a node compiles it when it starts")
    return Finding(
        WARN, "record walk", f"Python, {cost}", "pip install 'strandline[fast]': machine code takes a fiftieth"
    )


def _walk_us(walker: Walker) -> float:
    """The time that this machine needs for one record of a hundred bytes, measured over a thousand."""
    data = b"".join(encode_record(i, i, b"key", bytes(100)) for i in range(1000))
    best_s = float("inf")
    for _ in range(5):
        start_s = time.perf_counter()
        walker.walk(data, 0, 1000, 0)
        best_s = min(best_s, time.perf_counter() - start_s)
    return best_s * 1000


def open_files(limit: int) -> Finding:
    if limit == resource.RLIM_INFINITY:
        return Finding(OK, "open files", "no limit")
    if limit >= OPEN_FILES_MIN:
        return Finding(OK, "open files", f"limit {limit}")
    advice = (
        f"raise the hard limit to {OPEN_FILES_MIN} or more (ulimit -Hn, LimitNOFILE): a partition needs about three"
    )
    return Finding(WARN, "open files", f"limit {limit}", advice)
