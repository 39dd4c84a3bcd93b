# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

import json
from importlib import metadata
from pathlib import Path, PurePosixPath

import pytest

from strandline.spark import package_closure
from strandline.spark.package_closure import Package, PackedFile, Requirement, is_kept, parse_requirement


@pytest.fixture(scope="module")
def packages() -> dict[str, Package]:
    return {package.name: package for package in package_closure.closure()}


@pytest.mark.parametrize(
    ("text", "requirement"),
    [
        ("click>=8.1", Requirement("click", frozenset(), None, False)),
        ("uvloop>=0.21; sys_platform != 'win32'", Requirement("uvloop", frozenset(), None, True)),
        ("Google_Re2 (>=1.1)", Requirement("google-re2", frozenset(), None, False)),
        ("pyspark>=4.2; extra == 'spark'", Requirement("pyspark", frozenset(), "spark", False)),
        ('a[b,C.d] ; python_version < "4" and extra == "x"', Requirement("a", frozenset(("b", "c-d")), "x", True)),
    ],
)
def test_requirements(text: str, requirement: Requirement) -> None:
    assert parse_requirement(text) == requirement


@pytest.mark.parametrize(
    ("path", "kept"),
    [
        ("numba/core/caching.py", True),
        ("numpy/tests/test_lists.py", False),
        ("numpy/_core/include/numpy/arrayobject.h", False),
        ("pyarrow/lib.pyx", False),
        ("pyarrow/libarrow.so.2600", True),
        ("click/py.typed", True),
        ("a/__pycache__/b.cpython-311.pyc", False),
        ("tests", True),
    ],
)
def test_what_is_kept(path: str, kept: bool) -> None:
    assert is_kept(PurePosixPath(path)) == kept


def test_a_package_is_native_by_its_files() -> None:
    def package(*names: str) -> Package:
        return Package("p", "1", [PackedFile(Path(name), PurePosixPath(name)) for name in names])

    assert package("p/a.py", "p/lib.so.12").is_native
    assert package("p/a.cpython-311-x86_64-linux-gnu.so").is_native
    assert not package("p/a.py", "p/so.py").is_native


def test_all_that_executors_need(packages: dict[str, Package]) -> None:
    assert {"strandline", "numba", "llvmlite", "numpy", "pyarrow", "kio", "crc32c", "cramjam"} <= packages.keys()


def test_nothing_that_spark_brings_or_that_only_tests_need(packages: dict[str, Package]) -> None:
    assert not {"pyspark", "py4j", "pytest", "mypy", "confluent-kafka"} & packages.keys()


def test_strandline_itself_from_wherever_it_is_installed(packages: dict[str, Package]) -> None:
    targets = {str(file.target) for file in packages["strandline"].files}
    assert {
        "strandline/spark/package_closure.py",
        "strandline/spark/log4j2.properties",
        "pyspark_strandline/__init__.py",
    } <= targets
    assert any(target.startswith("strandline-") and target.endswith(".dist-info/METADATA") for target in targets)
    assert not any(target.endswith((".pth", ".pyc")) for target in targets)


def test_every_file_is_there(packages: dict[str, Package]) -> None:
    for package in packages.values():
        assert package.files
        assert not any(file.target.is_absolute() or ".." in file.target.parts for file in package.files)


@pytest.fixture
def edited(tmp_path: Path):
    """An editable install that is older than its project."""
    project, installed = tmp_path / "project", tmp_path / "p-1.dist-info"
    for directory in (project, installed):
        directory.mkdir()
    (installed / "METADATA").write_text("Name: p\nVersion: 1\nRequires-Dist: old\n")
    (installed / "direct_url.json").write_text(json.dumps({"url": project.as_uri(), "dir_info": {"editable": True}}))
    (project / "pyproject.toml").write_text(
        '[project]\ndependencies = ["new"]\n[project.optional-dependencies]\n'
        """x = ["a", "b>1; sys_platform != 'win32'"]\n"""
    )
    return metadata.Distribution.at(installed)


def test_an_editable_install_needs_what_its_project_says_today(edited) -> None:
    assert [parse_requirement(text) for text in package_closure._requirements(edited)] == [
        Requirement("new", frozenset(), None, False),
        Requirement("a", frozenset(), "x", False),
        Requirement("b", frozenset(), "x", True),
    ]


def test_another_install_needs_what_it_states(edited, tmp_path: Path) -> None:
    (tmp_path / "p-1.dist-info" / "direct_url.json").unlink()
    assert package_closure._requirements(edited) == ["old"]
