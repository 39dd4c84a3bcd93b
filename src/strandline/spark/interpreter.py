"""The Python of a packed environment: this one, brought along, or one that the executors have.

Always true: the environment works wherever it is unpacked; `bin/python`, `bin/python3` and `bin/python3.X` are the same.
"""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"
NAMES = ("python", "python3", f"python{VERSION}")
LEFT_OUT = frozenset(
    ("test", "tests", "idlelib", "tkinter", "turtledemo", "lib2to3", "ensurepip", "site-packages", "dist-packages")
)
_NEXT_TO_LIBRARY = """#!/bin/sh
# This Python is linked to a library that lies beside it.
here=$(cd "$(dirname "$0")" && pwd)
LD_LIBRARY_PATH="$here/../lib${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}" exec "$here/{binary}" "$@"
"""


class PlacedInterpreter(NamedTuple):
    """A Python in its place."""

    site_packages: Path
    command: list[str]
    """Runs it here, with those packages."""
    environ: dict[str, str]


def bring(directory: Path) -> PlacedInterpreter:
    """Copy this interpreter and its standard library below `directory`."""
    base = Path(sys.base_prefix)
    library = Path(sysconfig.get_path("stdlib"))
    for source in _standard_library(library):
        target = directory / source.relative_to(base)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, target)
    binaries = directory / "bin"
    binaries.mkdir(exist_ok=True)
    executable = Path(getattr(sys, "_base_executable", sys.executable)).resolve()
    if sysconfig.get_config_var("Py_ENABLE_SHARED"):
        shared = Path(sysconfig.get_config_var("LIBDIR"), sysconfig.get_config_var("INSTSONAME"))
        (directory / "lib").mkdir(exist_ok=True)
        shutil.copy2(shared, directory / "lib" / shared.name)
        binary = f"python{VERSION}-linked"
        shutil.copy2(executable, binaries / binary)
        (binaries / NAMES[0]).write_text(_NEXT_TO_LIBRARY.format(binary=binary), encoding="utf-8")
        (binaries / NAMES[0]).chmod(0o755)
    else:
        shutil.copy2(executable, binaries / NAMES[0])
    _link_names(binaries)
    # Distributions differ in where they look for packages: ask the one that was copied.
    command, environ = [str(binaries / NAMES[0])], {"PATH": os.defpath}
    question = "import site, sys; print(next(d for d in site.getsitepackages() if d.startswith(sys.prefix)))"
    site_packages = Path(_ask([*command, "-I", "-c", question], environ))
    site_packages.mkdir(parents=True, exist_ok=True)
    return PlacedInterpreter(site_packages, command, environ)


def refer_to(executable: str, directory: Path) -> PlacedInterpreter:
    """A virtual environment over the Python that executors have at this path."""
    binaries = directory / "bin"
    binaries.mkdir(parents=True)
    (binaries / NAMES[0]).symlink_to(executable)
    _link_names(binaries)
    config = f"home = {os.path.dirname(executable)}\ninclude-system-site-packages = false\nversion = {VERSION}\n"
    (directory / "pyvenv.cfg").write_text(config, encoding="utf-8")
    site_packages = directory / "lib" / f"python{VERSION}" / "site-packages"
    site_packages.mkdir(parents=True)
    # That Python need not be on this machine: ours runs the packages in its place.
    command = [getattr(sys, "_base_executable", sys.executable), "-s"]
    return PlacedInterpreter(site_packages, command, {"PATH": os.defpath, "PYTHONPATH": str(site_packages)})


def _standard_library(library: Path) -> Iterator[Path]:
    for parent, directories, files in os.walk(library):
        kept = [name for name in directories if name not in LEFT_OUT and not name.startswith("config-")]
        directories[:] = sorted(kept)
        for name in sorted(files):
            path = Path(parent, name)
            is_of_another = path.suffix == ".pyc" and not name.endswith(f".{sys.implementation.cache_tag}.pyc")
            if path.is_file() and not is_of_another:
                yield path


def _link_names(binaries: Path) -> None:
    used = os.path.basename(sys.executable)
    for name in {*NAMES[1:], used} - {NAMES[0]}:
        (binaries / name).symlink_to(NAMES[0])


def _ask(command: list[str], environ: dict[str, str]) -> str:
    import subprocess

    from strandline.spark.package_closure import Unpackable

    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Unpackable(
            f"this Python does not run outside of its place ({done.stderr.strip().splitlines()[-1:]}); "
            f"name one that the executors have: --python /usr/bin/python{VERSION}"
        )
    return done.stdout.strip()
