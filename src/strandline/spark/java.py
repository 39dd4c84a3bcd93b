"""The Java that Spark runs on: where it is, and whether it is new enough.

Always true: `JavaMissing` says in one line what is missing and how to get it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

VERSION_MIN = 17
HOW_TO_GET_IT = (
    "install one (Debian, Ubuntu: apt-get install openjdk-17-jre-headless; macOS: brew install openjdk@17) "
    "or set JAVA_HOME to one"
)
_ANSWER_TIMEOUT_S = 30
_IN_RELEASE_FILE = re.compile(r'^JAVA_VERSION="([^"]+)"', re.MULTILINE)
_IN_ANSWER = re.compile(r'version "([^"]+)"')


class JavaMissing(Exception):
    """There is no Java here that Spark could run on."""


class JavaInstallation(NamedTuple):
    path: Path
    version: int
    """17, 21, …"""


def find(environ: Mapping[str, str] = os.environ) -> JavaInstallation:
    """The one that Spark's own scripts would take, if it is new enough."""
    path = _path(environ)
    version = _version(path)
    if version < VERSION_MIN:
        raise JavaMissing(f"Spark needs Java {VERSION_MIN} or newer, and {path} is Java {version}; {HOW_TO_GET_IT}")
    return JavaInstallation(path, version)


def parse_version(text: str) -> int:
    """The number by which a release is called: 8 for 1.8.0_392, 17 for 17.0.15, 25 for 25-ea."""
    numbers = [int(number) for number in re.findall(r"\d+", text)]
    if not numbers:
        raise ValueError(f"not a Java version: {text!r}")
    return numbers[1] if numbers[0] == 1 and len(numbers) > 1 else numbers[0]


def _path(environ: Mapping[str, str]) -> Path:
    home = environ.get("JAVA_HOME")
    if home:
        path = Path(home, "bin", "java")
        if not os.access(path, os.X_OK):
            raise JavaMissing(
                f"Spark needs Java {VERSION_MIN} or newer, and JAVA_HOME is {home}, where no bin/java is; {HOW_TO_GET_IT}"
            )
        return path
    found = shutil.which("java", path=environ.get("PATH", os.defpath))
    if found is None:
        raise JavaMissing(f"Spark needs Java {VERSION_MIN} or newer, and there is no java here; {HOW_TO_GET_IT}")
    return Path(found)


def _version(path: Path) -> int:
    # The file next to it answers at once; starting Java takes a tenth of a second.
    release = path.resolve().parent.parent / "release"
    try:
        written = _IN_RELEASE_FILE.search(release.read_text(encoding="utf-8"))
    except OSError:
        written = None
    if written is None:
        try:
            done = subprocess.run(
                [path, "-version"], capture_output=True, text=True, timeout=_ANSWER_TIMEOUT_S, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise JavaMissing(f"{path} does not run ({error}); {HOW_TO_GET_IT}") from None
        written = _IN_ANSWER.search(done.stderr + done.stdout)
    if written is None:
        raise JavaMissing(f"{path} does not say which Java it is; {HOW_TO_GET_IT}")
    return parse_version(written.group(1))
