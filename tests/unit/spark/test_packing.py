# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

import gzip
import json
import os
import pathlib
import sys
import tarfile

import pytest

from strandline.spark import interpreter, packing


def quietly(what: str, done: int, total: int) -> None: ...


@pytest.fixture
def directory(tmp_path: pathlib.Path):
    """A small environment."""
    directory = tmp_path / "environment"
    (directory / "bin").mkdir(parents=True)
    (directory / "bin" / "python").write_text("python")
    (directory / "bin" / "python").chmod(0o755)
    (directory / "bin" / "python3").symlink_to("python")
    (directory / packing.CACHE / "strandline").mkdir(parents=True)
    (directory / packing.CACHE / "strandline").chmod(0o700)
    (directory / packing.CACHE / "strandline" / "reading.kernels").write_text("kernels")
    return directory


def write(directory, path) -> None:
    with packing._written_whole(path) as file:
        packing._write_tar(directory, file, b"{}", quietly)


def test_an_archive_is_known_by_its_first_file(directory, tmp_path: pathlib.Path) -> None:
    write(directory, tmp_path / "e.tar.gz")
    assert packing.is_environment(tmp_path / "e.tar.gz")
    with tarfile.open(tmp_path / "e.tar.gz") as archive:
        assert archive.getnames()[0] == packing.ENVIRONMENT_MARKER


def test_other_files_are_no_environment(directory, tmp_path: pathlib.Path) -> None:
    assert not packing.is_environment(tmp_path / "missing.tar.gz")
    (tmp_path / "short.tar.gz").write_bytes(gzip.compress(b"hello"))
    assert not packing.is_environment(tmp_path / "short.tar.gz")
    with tarfile.open(tmp_path / "empty.tar", "w"):
        pass
    assert not packing.is_environment(tmp_path / "empty.tar")
    assert not packing.is_environment(directory)


def test_what_is_in_an_archive(directory, tmp_path: pathlib.Path) -> None:
    write(directory, tmp_path / "e.tar.gz")
    with tarfile.open(tmp_path / "e.tar.gz") as archive:
        members = {member.name: member for member in archive}
    assert members["bin/python"].mode & 0o777 == 0o755
    assert members["bin/python3"].linkname == "python"
    # Only its owner may write to the cache, or kernels in it are not trusted.
    assert members["cache/strandline"].isdir()
    assert members["cache/strandline"].mode & 0o777 == 0o700
    assert all(member.uid == member.gid == 0 and not member.uname for member in members.values())


def test_the_same_files_make_the_same_archive(directory, tmp_path: pathlib.Path) -> None:
    packing._in_whole_seconds(directory)
    for name in ("a.tar.gz", "b.tar.gz"):
        write(directory, tmp_path / name)
    assert (tmp_path / "a.tar.gz").read_bytes() == (tmp_path / "b.tar.gz").read_bytes()


def test_whole_seconds(directory) -> None:
    os.utime(directory / "bin" / "python", (1000.75, 1000.75))
    packing._in_whole_seconds(directory)
    assert (directory / "bin" / "python").stat().st_mtime == 1000.0


def test_a_file_that_was_not_finished_has_no_name(tmp_path: pathlib.Path) -> None:
    (tmp_path / "e.tar.gz").write_text("the one before")
    with pytest.raises(OSError, match="full"), packing._written_whole(tmp_path / "e.tar.gz"):
        raise OSError("full")
    assert (tmp_path / "e.tar.gz").read_text() == "the one before"
    assert [path.name for path in tmp_path.iterdir()] == ["e.tar.gz"]


def test_the_marker_names_the_packages() -> None:
    stated = json.loads(packing._marker([], "/usr/bin/python3"))
    assert stated == {"python": interpreter.VERSION, "executors' python": "/usr/bin/python3", "packages": {}}


def test_over_the_python_of_the_executors(tmp_path: pathlib.Path) -> None:
    placed = interpreter.refer_to("/opt/bin/python3", tmp_path / "e")
    assert os.readlink(tmp_path / "e" / "bin" / "python") == "/opt/bin/python3"
    assert os.readlink(tmp_path / "e" / "bin" / f"python{interpreter.VERSION}") == "python"
    assert "home = /opt/bin\n" in (tmp_path / "e" / "pyvenv.cfg").read_text()
    assert placed.site_packages.is_dir()
    assert os.path.basename(sys.executable) in os.listdir(tmp_path / "e" / "bin")


def test_an_environment_over_this_python_works(tmp_path: pathlib.Path) -> None:
    base = getattr(sys, "_base_executable", sys.executable)
    placed = interpreter.refer_to(os.path.realpath(base), tmp_path / "e")
    (placed.site_packages / "only_there.py").write_text("")
    program = "import only_there, sys; print(sys.prefix)"
    assert interpreter._ask([str(tmp_path / "e" / "bin" / "python3"), "-c", program], {}) == str(tmp_path / "e")
    assert interpreter._ask([*placed.command, "-c", "import only_there"], placed.environ) == ""
