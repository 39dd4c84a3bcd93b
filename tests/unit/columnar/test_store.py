"""Files of machine code: whole, ours, and made once."""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path

import pytest

from strandline.columnar.kernels import store
from strandline.columnar.kernels.store import Code, fetch, find_directory, read, write

CODE: Code = [("first", b"\x7fELF" * 100), ("second", b"")]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    return tmp_path


def ignore(_line: str) -> None: ...


def test_written_and_read(tmp_path: Path) -> None:
    file = tmp_path / "some.kernels"
    assert read(file) is None
    write(file, CODE)
    assert read(file) == CODE
    assert list(tmp_path.iterdir()) == [file]


def test_a_damaged_file_is_as_good_as_none(tmp_path: Path) -> None:
    file = tmp_path / "some.kernels"
    write(file, CODE)
    whole = file.read_bytes()
    for damaged in (b"", whole[:20], whole[:-1], whole + b"x", whole[:50] + b"\0" + whole[51:]):
        file.write_bytes(damaged)
        assert read(file) is None


def test_it_is_the_users_alone_whatever_the_umask(tmp_path: Path) -> None:
    file = tmp_path / "some.kernels"
    before = os.umask(0)
    try:
        write(file, CODE)
    finally:
        os.umask(before)
    assert file.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_file_that_others_can_write_to_is_as_good_as_none(tmp_path: Path, mode: int) -> None:
    file = tmp_path / "some.kernels"
    write(file, CODE)
    file.chmod(mode)
    assert read(file) is None
    write(file, CODE)
    assert read(file) == CODE


def test_a_file_of_another_user_is_as_good_as_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "some.kernels"
    write(file, CODE)
    owner = file.stat().st_uid
    monkeypatch.setattr("os.getuid", lambda: owner + 1)
    assert read(file) is None


@pytest.mark.parametrize("kind", ["link", "directory", "pipe"])
def test_what_is_no_file_is_as_good_as_none(tmp_path: Path, kind: str) -> None:
    file = tmp_path / "some.kernels"
    match kind:
        case "link":
            write(tmp_path / "other", CODE)
            file.symlink_to(tmp_path / "other")
        case "directory":
            file.mkdir()
        case _:
            os.mkfifo(file)
    assert read(file) is None


def test_it_is_on_the_device_before_it_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a crash may leave the name with nothing behind it."""
    file = tmp_path / "some.kernels"
    synced: list[int] = []
    fsync = os.fsync

    def note(handle: int) -> None:
        assert not file.exists()
        synced.append(os.fstat(handle).st_size)
        fsync(handle)

    monkeypatch.setattr("os.fsync", note)
    write(file, CODE)
    assert synced == [file.stat().st_size]


def test_made_once_and_told_once(home: Path) -> None:
    told: list[str] = []
    made: list[int] = []

    def make() -> Code:
        made.append(1)
        return CODE

    for _ in range(3):
        assert fetch("some", make, told.append) == CODE
    assert (len(made), told) == (1, [store.COMPILING])


def test_who_finds_nothing_at_the_same_time_waits_for_the_first(home: Path) -> None:
    made: list[int] = []
    begun, go_on = threading.Event(), threading.Event()

    def make() -> Code:
        made.append(1)
        begun.set()
        assert go_on.wait(10)
        return CODE

    found: list[Code] = []
    first = threading.Thread(target=lambda: found.append(fetch("some", make, ignore)))
    first.start()
    assert begun.wait(10)
    second = threading.Thread(target=lambda: found.append(fetch("some", make, lambda _line: go_on.set())))
    second.start()
    first.join(10)
    second.join(10)
    assert found == [CODE, CODE]
    assert len(made) == 1


def test_nobody_waits_where_there_are_no_locks(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_handle: int, _operation: int) -> None:
        raise OSError(errno.EBADF, "as NFS says of a directory")

    def wait(_seconds: float) -> None:
        raise AssertionError("waits for a lock that nobody has")

    monkeypatch.setattr("fcntl.flock", refuse)
    monkeypatch.setattr("time.sleep", wait)
    assert fetch("some", lambda: CODE, ignore) == CODE


def test_the_cache_directory_belongs_to_the_user_alone(home: Path) -> None:
    directory = find_directory()
    assert directory == home / "home" / "strandline"
    assert directory.stat().st_mode & 0o777 == 0o700


def test_a_directory_that_others_can_write_to_is_not_used(home: Path) -> None:
    directory = find_directory()
    assert directory is not None
    directory.chmod(0o777)
    second = find_directory()
    assert second is not None
    assert second.parent == home / "temporary"
    second.chmod(0o777)
    assert find_directory() is None
    told: list[str] = []
    assert fetch("some", lambda: CODE, told.append) == CODE
    assert "in every process" in told[0]


def test_a_file_in_place_of_the_directory(home: Path) -> None:
    (home / "home").write_bytes(b"")
    directory = find_directory()
    assert directory is not None
    assert directory.parent == home / "temporary"
