from __future__ import annotations

from pathlib import Path

import pytest

from strandline.spark import java
from strandline.spark.java import JavaMissing, find, parse_version


def a_java(directory: Path, *, release: str | None = None, answer: str = "") -> Path:
    """A Java as it lies on a disk: a program that says its version, and perhaps a file that does."""
    program = directory / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho '{answer}' >&2\n")
    program.chmod(0o755)
    if release is not None:
        (directory / "release").write_text(f'IMPLEMENTOR="A"\nJAVA_VERSION="{release}"\nOS_NAME="Linux"\n')
    return program


@pytest.mark.parametrize(
    ("written", "version"), [("1.8.0_392", 8), ("17.0.15", 17), ("21", 21), ("25-ea", 25), ("11.0.2", 11)]
)
def test_versions(written: str, version: int) -> None:
    assert parse_version(written) == version


def test_no_version_at_all() -> None:
    with pytest.raises(ValueError):
        parse_version("none")


def test_java_home_comes_first(tmp_path: Path) -> None:
    wanted = a_java(tmp_path / "wanted", release="21.0.1")
    other = a_java(tmp_path / "other", release="17.0.1")
    assert find({"JAVA_HOME": str(tmp_path / "wanted"), "PATH": str(other.parent)}) == (wanted, 21)


def test_on_the_path(tmp_path: Path) -> None:
    program = a_java(tmp_path, release="17.0.15")
    assert find({"PATH": str(program.parent)}) == (program, 17)


def test_behind_a_link(tmp_path: Path) -> None:
    program = a_java(tmp_path / "jvm", release="17.0.15")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").symlink_to(program)
    assert find({"PATH": str(tmp_path / "bin")}).version == 17


def test_one_without_a_release_file_is_asked(tmp_path: Path) -> None:
    program = a_java(tmp_path, answer='openjdk version "17.0.15" 2025-04-15')
    assert find({"PATH": str(program.parent)}).version == 17


@pytest.mark.parametrize("environ", [{"PATH": ""}, {"PATH": "", "JAVA_HOME": "/there/is/none"}])
def test_missing(environ: dict[str, str]) -> None:
    with pytest.raises(JavaMissing) as error:
        find(environ)
    assert "Java 17 or newer" in str(error.value)
    assert java.HOW_TO_GET_IT in str(error.value)
    assert "\n" not in str(error.value)


def test_too_old(tmp_path: Path) -> None:
    program = a_java(tmp_path, release="11.0.2")
    with pytest.raises(JavaMissing, match="is Java 11; install"):
        find({"PATH": str(program.parent)})


def test_one_that_says_nothing(tmp_path: Path) -> None:
    program = a_java(tmp_path, answer="hello")
    with pytest.raises(JavaMissing, match="does not say which Java it is"):
        find({"PATH": str(program.parent)})


def test_one_that_does_not_run(tmp_path: Path) -> None:
    program = a_java(tmp_path)
    program.write_text("#!/there/is/no/shell\n")
    with pytest.raises(JavaMissing, match="does not run"):
        find({"PATH": str(program.parent)})
