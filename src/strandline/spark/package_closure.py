"""The packages that executors need: Strandline, what it depends on, what those depend on, as installed here.

Always true: every package is whole, apart from tests, headers and type stubs, which nothing imports; Strandline itself is found
also where it is an editable install. PySpark and py4j are left out unless asked for: every Spark brings its own.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import NamedTuple
from urllib.parse import urlsplit
from urllib.request import url2pathname

ROOT, EXTRA = "strandline", "spark"
OWN_MODULES = ("strandline", "pyspark_strandline")
BROUGHT_BY_SPARK = ("pyspark", "py4j")
NATIVE_SUFFIXES = (".so", ".dylib", ".pyd")
LEFT_OUT_DIRECTORIES = frozenset(("tests", "test", "include", "__pycache__"))
LEFT_OUT_SUFFIXES = frozenset((".pyi", ".pyx", ".pxd", ".pxi", ".h", ".hpp", ".c", ".cpp", ".cc", ".a"))
_REQUIREMENT = re.compile(r"^\s*([A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[([^\]]*)\])?")
_EXTRA = re.compile(r"""extra\s*==\s*["']([^"']+)["']""")


class Unpackable(Exception):
    """A package cannot be packed from this installation; the message says why and what to do."""


class PackedFile(NamedTuple):
    source: Path
    target: PurePosixPath
    """Below site-packages."""


class Package(NamedTuple):
    name: str
    version: str
    files: list[PackedFile]

    @property
    def is_native(self) -> bool:
        return any(".so" in file.target.suffixes or file.target.suffix in NATIVE_SUFFIXES for file in self.files)


class Requirement(NamedTuple):
    name: str
    extras: frozenset[str]
    wanted_by_extra: str | None
    has_marker: bool
    """It may be meant for another platform or Python."""


def closure(*, with_pyspark: bool = False) -> list[Package]:
    """Everything, by name."""
    left_out = () if with_pyspark else BROUGHT_BY_SPARK
    found: dict[str, set[str]] = {}
    packages: dict[str, Package] = {}
    waiting = [(ROOT, frozenset((EXTRA,)), False, ROOT)]
    while waiting:
        name, extras, may_be_missing, wanted_by = waiting.pop()
        if name in left_out or (name in found and extras <= found[name]):
            continue
        try:
            distribution = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            if may_be_missing:
                continue
            raise Unpackable(f"{wanted_by} needs {name}, which is not installed here; {HOW_TO_INSTALL}") from None
        found.setdefault(name, set()).update(extras)
        if name not in packages:
            packages[name] = Package(name, distribution.version, list(_files(name, distribution)))
        for written in _requirements(distribution):
            requirement = parse_requirement(written)
            if requirement.wanted_by_extra is None or requirement.wanted_by_extra in found[name]:
                waiting.append((requirement.name, requirement.extras, requirement.has_marker, name))
    return [packages[name] for name in sorted(packages)]


HOW_TO_INSTALL = "pip install 'strandline[spark]'"


def parse_requirement(text: str) -> Requirement:
    """As a package's metadata states it. Only `extra` is read of a marker: what another platform needs is not installed here."""
    stated, _, marker = text.partition(";")
    match = _REQUIREMENT.match(stated)
    assert match is not None, text
    extras = frozenset(normalized(extra) for extra in (match.group(2) or "").split(",") if extra.strip())
    extra = _EXTRA.search(marker)
    only_extra = _EXTRA.sub("", marker).strip(" ()")
    return Requirement(
        normalized(match.group(1)), extras, normalized(extra.group(1)) if extra else None, bool(only_extra)
    )


def normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name.strip()).lower()


def _files(name: str, distribution: metadata.Distribution) -> Iterator[PackedFile]:
    is_editable = _edited_project(distribution) is not None
    if is_editable and name != ROOT:
        raise Unpackable(f"{name} is an editable install, whose files are not known; install it as a package")
    if is_editable:
        yield from _own_files()
    if distribution.files is None:
        raise Unpackable(f"the installation of {name} has no list of its files; install it with pip or uv")
    for path in distribution.files:
        target = PurePosixPath(path)
        in_metadata = target.parts[0].endswith(".dist-info")
        # What lies outside of site-packages are scripts, which name the Python of this machine.
        if target.parts[0] == ".." or (is_editable and not in_metadata) or not is_kept(target):
            continue
        source = Path(str(distribution.locate_file(path)))
        if source.is_file():
            yield PackedFile(source, target)


def _own_files() -> Iterator[PackedFile]:
    for module in OWN_MODULES:
        spec = find_spec(module)
        if spec is None or spec.origin is None:
            raise Unpackable(f"the module {module} is not where this installation says; {HOW_TO_INSTALL}")
        directory = Path(spec.origin).parent
        for source in sorted(directory.rglob("*")):
            target = PurePosixPath(source.relative_to(directory.parent).as_posix())
            if source.is_file() and is_kept(target):
                yield PackedFile(source, target)


def is_kept(target: PurePosixPath) -> bool:
    return target.suffix not in LEFT_OUT_SUFFIXES and LEFT_OUT_DIRECTORIES.isdisjoint(target.parts[:-1])


def _requirements(distribution: metadata.Distribution) -> list[str]:
    """An editable install's own statement is as old as the install; its project's is as new as its code."""
    project = _edited_project(distribution)
    if project is None or not (project / "pyproject.toml").is_file():
        return distribution.requires or []
    stated = tomllib.loads((project / "pyproject.toml").read_text(encoding="utf-8")).get("project", {})
    extras: dict[str, list[str]] = stated.get("optional-dependencies", {})
    return [
        *stated.get("dependencies", []),
        *(_with_extra(text, extra) for extra, requirements in extras.items() for text in requirements),
    ]


def _with_extra(requirement: str, extra: str) -> str:
    stated, has_marker, marker = requirement.partition(";")
    return f'{stated}; ({marker}) and extra == "{extra}"' if has_marker else f'{stated}; extra == "{extra}"'


def _edited_project(distribution: metadata.Distribution) -> Path | None:
    """The directory of an editable install."""
    written = json.loads(distribution.read_text("direct_url.json") or "{}")
    if not written.get("dir_info", {}).get("editable", False):
        return None
    return Path(url2pathname(urlsplit(written["url"]).path))
