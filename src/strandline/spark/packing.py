"""What a cluster without our packages is sent: a packed environment for `--archives`, or the pure part as a .zip for `--py-files`.

A packed environment carries its compiled kernels in a cache directory of its own, so that executors on machines of the same kind
neither compile nor need a network; on another kind of processor each compiles once. A .zip carries none: there the machine's own
numba compiles once and keeps the result in the user's cache directory.

Always true: a file under the name asked for is whole; packing the same packages twice gives the same files in the same order;
every time stamp is in whole seconds, because that is what survives a tar and what decides whether a cache is valid.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple

from strandline.spark import interpreter
from strandline.spark.package_closure import Package, Unpackable, closure

ENVIRONMENT_MARKER = "strandline-environment.json"
"""The first file of a packed environment: how one is recognized, and what is in it."""
PURE_MARKER = "strandline-pure.json"
CACHE = "cache"
"""Below the environment; the kernels' own directory in it must be its owner's alone."""
_USE_CACHE = f'import os, sys; os.environ.setdefault("XDG_CACHE_HOME", os.path.join(sys.prefix, "{CACHE}"))\n'
_WARM = "from strandline.columnar.warming import compile_once; compile_once(lambda line: None)"
_GZIP_LEVEL = 1
"""The most of it are libraries, which a higher level makes a tenth smaller in three times the time."""
_FIRST_DOS_DATE = (1980, 1, 1, 0, 0, 0)

Progress = Callable[[str, int, int], None]
"""What is being done, how many bytes of it are, and how many there are in all."""


class PackedArchive(NamedTuple):
    path: Path
    size_bytes: int
    packages: list[Package]
    native_left_out: list[Package]
    """What executors must have by themselves."""


def is_environment(path: Path) -> bool:
    """Was this made by `pack`?"""
    try:
        with tarfile.open(path, "r|*") as archive:
            first = archive.next()
    except (OSError, tarfile.TarError):
        return False
    return first is not None and first.name == ENVIRONMENT_MARKER


def pack(out: Path, *, python: str | None, with_pyspark: bool, progress: Progress) -> PackedArchive:
    """An environment that needs nothing, or only the Python at the path `python` of each executor's machine."""
    packages = closure(with_pyspark=with_pyspark)
    with tempfile.TemporaryDirectory(prefix="strandline-pack-") as name:
        directory = Path(name, "environment")
        directory.mkdir()
        progress("Python", 0, 1)
        placed = interpreter.bring(directory) if python is None else interpreter.refer_to(python, directory)
        _copy(packages, placed.site_packages, progress)
        (placed.site_packages / "_strandline_environment.pth").write_text(_USE_CACHE, encoding="utf-8")
        _in_whole_seconds(directory)
        _compile(placed, directory / CACHE, progress)
        with _written_whole(out) as file:
            _write_tar(directory, file, _marker(packages, python), progress)
    return PackedArchive(out, out.stat().st_size, packages, [])


def pack_pure(out: Path, progress: Progress) -> PackedArchive:
    """Strandline and those of its packages that are Python alone."""
    packages = closure()
    pure = [package for package in packages if not package.is_native]
    native = [package for package in packages if package.is_native]
    files = sorted((file.target.as_posix(), file.source) for package in pure for file in package.files)
    total = sum(source.stat().st_size for _, source in files)
    done = 0
    with _written_whole(out) as opened, zipfile.ZipFile(opened, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(zipfile.ZipInfo(PURE_MARKER, _FIRST_DOS_DATE), _marker(pure, None))
        for target, source in files:
            data = source.read_bytes()
            info = zipfile.ZipInfo(target, _FIRST_DOS_DATE)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = 0o644 << 16
            archive.writestr(info, data)
            done += len(data)
            progress("writing", done, total)
    return PackedArchive(out, out.stat().st_size, pure, native)


def _marker(packages: list[Package], python: str | None) -> bytes:
    stated = {
        "python": interpreter.VERSION,
        "executors' python": python,
        "packages": {package.name: package.version for package in packages},
    }
    return json.dumps(stated, indent=2).encode() + b"\n"


def _copy(packages: list[Package], site_packages: Path, progress: Progress) -> None:
    files = [file for package in packages for file in package.files]
    total = sum(file.source.stat().st_size for file in files)
    done = 0
    for source, target in files:
        path = site_packages / target
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, path)
        # What Python has compiled already is taken along: it holds for a file of the same size and second.
        compiled = source.parent / "__pycache__" / f"{source.stem}.{sys.implementation.cache_tag}.pyc"
        if source.suffix == ".py" and compiled.is_file():
            (path.parent / "__pycache__").mkdir(exist_ok=True)
            shutil.copy2(compiled, path.parent / "__pycache__" / compiled.name)
        done += path.stat().st_size
        progress("copying", done, total)


def _in_whole_seconds(directory: Path) -> None:
    for parent, _, names in os.walk(directory):
        for name in names:
            path = os.path.join(parent, name)
            second = int(os.lstat(path).st_mtime)
            os.utime(path, (second, second), follow_symlinks=False)


def _compile(placed: interpreter.PlacedInterpreter, cache: Path, progress: Progress) -> None:
    """Bytecode and kernels, by the packed Python itself: that it runs is thereby known."""
    for step, (what, arguments) in enumerate(
        (("bytecode", ["-m", "compileall", "-q", "-j", "0", str(placed.site_packages)]), ("kernels", ["-c", _WARM]))
    ):
        progress(f"compiling {what}", step, 2)
        environ = {**placed.environ, "XDG_CACHE_HOME": str(cache)}
        done = subprocess.run([*placed.command, *arguments], env=environ, capture_output=True, text=True, check=False)
        # Some packages carry files for other versions of Python, which do not compile; only kernels must.
        if done.returncode and what == "kernels":
            last = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
            raise Unpackable(f"the packed environment does not run: {last}")


def _write_tar(directory: Path, file: IO[bytes], marker: bytes, progress: Progress) -> None:
    # Directories come into being with their files; those of the cache are named for the sake of their mode.
    paths = sorted([*_below(directory), *(directory / CACHE).glob("*/")])
    total = sum(os.lstat(path).st_size for path in paths)
    done = 0
    compressed = gzip.GzipFile("", "wb", _GZIP_LEVEL, file, mtime=0)
    with compressed, tarfile.open(fileobj=compressed, mode="w", format=tarfile.GNU_FORMAT) as archive:
        first = tarfile.TarInfo(ENVIRONMENT_MARKER)
        first.size = len(marker)
        archive.addfile(first, io.BytesIO(marker))
        for path in paths:
            archive.add(path, path.relative_to(directory), recursive=False, filter=_of_nobody)
            done += os.lstat(path).st_size
            progress("writing", done, total)


def _below(directory: Path) -> Iterator[Path]:
    for parent, _, names in os.walk(directory):
        for name in names:
            yield Path(parent, name)


def _of_nobody(info: tarfile.TarInfo) -> tarfile.TarInfo:
    info.uid = info.gid = 0
    info.uname = info.gname = ""
    info.mtime = int(info.mtime)
    return info


@contextmanager
def _written_whole(out: Path) -> Iterator[IO[bytes]]:
    """A file that gets its name only once it is complete."""
    part = out.with_name(f".{out.name}.part")
    try:
        with part.open("wb") as file:
            yield file
        part.replace(out)
    finally:
        part.unlink(missing_ok=True)
