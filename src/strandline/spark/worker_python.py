"""The Python that Spark starts for its workers on this machine: this interpreter, with PySpark as it was installed.

Spark puts the zip files of PySpark that it carries first on the path of every Python it starts. Python keeps no bytecode for a zip,
so each start compiles all of PySpark anew, which takes most of a second, and the first query of a session has four or five starts,
one after the other. Where the interpreter has the same PySpark installed, a small script takes the zip files off the path again.

Always true: what the script runs is the interpreter it was made for; where it can't be written, Spark gets the interpreter itself.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import tempfile
from pathlib import Path

from strandline.columnar.kernels.store import find_directory

_SCRIPT = """\
#!/bin/sh
# Spark's own PySpark, in zip files and a jar, comes off the path: the interpreter has the same, compiled.
kept=
set -f
IFS=:
for entry in $PYTHONPATH; do
    case "$entry" in
        */python/lib/pyspark.zip | */python/lib/py4j-*-src.zip | */jars/spark-core_*.jar) ;;
        *) kept="$kept:$entry" ;;
    esac
done
PYTHONPATH="${kept#:}"
export PYTHONPATH
exec INTERPRETER "$@"
"""


def worker_python(interpreter: str) -> str:
    """What to start instead of `interpreter`."""
    directory = find_directory()
    if directory is None:
        return interpreter
    text = _SCRIPT.replace("INTERPRETER", shlex.quote(interpreter))
    script = directory / f"python-{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    try:
        if not _is_there(script, text):
            _put(script, text)
    except OSError:
        return interpreter
    return str(script)


def _is_there(script: Path, text: str) -> bool:
    return script.exists() and script.read_text() == text and os.access(script, os.X_OK)


def _put(script: Path, text: str) -> None:
    """Whole or not at all: other sessions may start it at this moment."""
    descriptor, name = tempfile.mkstemp(dir=script.parent, prefix="python-")
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
        os.fchmod(file.fileno(), 0o700)
    os.replace(name, script)
