"""What a disk does, in both worlds."""

from __future__ import annotations

import pytest

from strandline.ports import File

from .conftest import Stage


async def read(stage: Stage, file: File, position: int, size: int) -> bytes:
    """As the log does: at once if it is in memory, in a worker if not."""
    data = file.read(position, size)
    return await stage.disk.offload(lambda: file.read_blocking(position, size), stage.root) if data is None else data


def test_appended_bytes_are_read_back_at_once(stage: Stage) -> None:
    async def story() -> None:
        file = stage.disk.open(f"{stage.root}/a.log", create=True)
        buffer = bytearray(b"one two ")
        file.append(buffer)
        buffer[:] = b"XXXXXXXX"
        file.append(memoryview(b"--three--")[2:7])
        assert file.size == 13
        assert await read(stage, file, 0, 100) == b"one two three"
        assert await read(stage, file, 4, 3) == b"two"
        assert file.read(13, 10) == b""
        assert file.read(99, 10) == b""
        assert file.read_blocking(8, 100) == b"three"
        assert file.read_blocking(50, 4) == b""
        file.close()
        again = stage.disk.open(f"{stage.root}/a.log")
        assert again.size == 13
        assert stage.disk.size(f"{stage.root}/a.log") == 13

    stage.run(story())


def test_truncate_cuts_and_appends_go_on_from_there(stage: Stage) -> None:
    async def story() -> None:
        file = stage.disk.open(f"{stage.root}/a.log", create=True)
        file.append(b"0123456789")
        await file.sync()
        file.truncate(4)
        assert file.size == 4
        file.append(b"abc")
        assert await read(stage, file, 0, 100) == b"0123abc"
        await file.sync()
        file.sync_blocking()
        with pytest.raises(AssertionError):
            file.truncate(8)

    stage.run(story())


def test_what_is_written_again_stays_where_it_is(stage: Stage) -> None:
    async def story() -> None:
        path = f"{stage.root}/a.log"
        file = stage.disk.open(path, create=True)
        file.append(b"0123456789")
        for number in range(10):  # enough for every handle that may be evicted
            stage.disk.open(f"{stage.root}/{number}", create=True)
        file.rewrite(2, memoryview(b"234"))
        file.rewrite(9, b"9")
        await stage.disk.offload(lambda: file.rewrite(0, b"0"), stage.root)
        assert (file.size, stage.disk.size(path)) == (10, 10)
        file.append(b"abc")
        await file.sync()
        assert stage.disk.read_file(path) == b"0123456789abc"
        stage.disk.rename(path, f"{stage.root}/b.log")
        file.rewrite(10, b"abc")
        with pytest.raises(AssertionError):
            file.rewrite(10, b"abcd")
        assert stage.disk.read_file(f"{stage.root}/b.log") == b"0123456789abc"

    stage.run(story())


def test_opening_what_is_not_there(stage: Stage) -> None:
    with pytest.raises(FileNotFoundError):
        stage.disk.open(f"{stage.root}/missing")
    with pytest.raises(FileNotFoundError):
        stage.disk.open(f"{stage.root}/missing/a.log", create=True)
    with pytest.raises(FileNotFoundError):
        stage.disk.read_file(f"{stage.root}/missing")
    with pytest.raises(FileNotFoundError):
        stage.disk.listdir(f"{stage.root}/missing")
    with pytest.raises(FileNotFoundError):
        stage.disk.rename(f"{stage.root}/missing", f"{stage.root}/other")
    with pytest.raises(FileNotFoundError):
        stage.disk.sync_dir(f"{stage.root}/missing")
    with pytest.raises(IsADirectoryError):
        stage.disk.open(stage.root)
    stage.disk.remove(f"{stage.root}/missing")
    stage.disk.remove_tree(f"{stage.root}/missing")


def test_two_who_open_a_path_see_the_same_file(stage: Stage) -> None:
    one = stage.disk.open(f"{stage.root}/a.log", create=True)
    other = stage.disk.open(f"{stage.root}/a.log")
    one.append(b"abc")
    assert other.size == 3
    one.close()
    other.append(b"def")
    assert other.read_blocking(0, 6) == b"abcdef"


def test_open_files_follow_a_renamed_file(stage: Stage) -> None:
    file = stage.disk.open(f"{stage.root}/a.log", create=True)
    file.append(b"abc")
    stage.disk.rename(f"{stage.root}/a.log", f"{stage.root}/a.log.deleted")
    assert file.path == f"{stage.root}/a.log.deleted"
    file.append(b"def")
    assert stage.disk.read_file(f"{stage.root}/a.log.deleted") == b"abcdef"
    assert not stage.disk.exists(f"{stage.root}/a.log")


def test_open_files_follow_a_renamed_directory(stage: Stage) -> None:
    stage.disk.mkdir(f"{stage.root}/t-0/deep")
    stage.disk.mkdir(f"{stage.root}/t-00")
    files = [
        stage.disk.open(f"{stage.root}/t-0/{name}", create=True) for name in ("a", "b", "deep/c", "d", "e", "f", "g")
    ]
    beside = stage.disk.open(f"{stage.root}/t-00/a", create=True)
    stage.disk.rename(f"{stage.root}/t-0", f"{stage.root}/t-0-delete")
    for number, file in enumerate(files):
        file.append(b"%d" % number)
    beside.append(b"beside")
    assert stage.disk.read_file(f"{stage.root}/t-0-delete/deep/c") == b"2"
    assert stage.disk.read_file(f"{stage.root}/t-00/a") == b"beside"
    assert [file.path for file in files[:3]] == [f"{stage.root}/t-0-delete/{name}" for name in ("a", "b", "deep/c")]


def test_a_rename_replaces_a_file_that_is_open(stage: Stage) -> None:
    old = stage.disk.open(f"{stage.root}/a", create=True)
    old.append(b"old")
    new = stage.disk.open(f"{stage.root}/b", create=True)
    new.append(b"new")
    stage.disk.rename(f"{stage.root}/b", f"{stage.root}/a")
    for number in range(10):  # enough for every handle that may be evicted
        stage.disk.open(f"{stage.root}/{number}", create=True)
    assert old.read_blocking(0, 9) == b"old"
    new.append(b"er")
    assert stage.disk.read_file(f"{stage.root}/a") == b"newer"
    assert stage.disk.open(f"{stage.root}/a").size == 5


def test_a_removed_file_works_until_it_is_closed(stage: Stage) -> None:
    stage.disk.mkdir(f"{stage.root}/t")
    files = [stage.disk.open(f"{stage.root}/t/{number}", create=True) for number in range(10)]
    for file in files:
        file.append(b"abc")
    stage.disk.remove(f"{stage.root}/t/0")
    stage.disk.remove_tree(f"{stage.root}/t")
    assert not stage.disk.exists(f"{stage.root}/t")
    for file in files:
        file.append(b"def")
        assert file.read_blocking(0, 9) == b"abcdef"
    stage.disk.mkdir(f"{stage.root}/t")
    fresh = stage.disk.open(f"{stage.root}/t/0", create=True)
    assert fresh.size == 0
    for file in files:
        file.close()
    assert stage.disk.listdir(f"{stage.root}/t") == ["0"]


def test_more_files_than_handles(stage: Stage) -> None:
    async def story() -> None:
        files = [stage.disk.open(f"{stage.root}/{number:02}", create=True) for number in range(20)]
        for round_ in range(3):
            for number, file in enumerate(files):
                file.append(b"%d:%d " % (round_, number))
            await files[round_].sync()
        for number, file in enumerate(files):
            assert await read(stage, file, 0, 99) == b"0:%d 1:%d 2:%d " % (number, number, number)
        assert stage.disk.listdir(stage.root) == [f"{number:02}" for number in range(20)]

    stage.run(story())


def test_write_file_replaces_a_file_as_a_whole(stage: Stage) -> None:
    path = f"{stage.root}/meta.properties"
    stage.disk.write_file(path, b"version=1")
    stage.disk.write_file(path, b"v=2")
    assert stage.disk.read_file(path) == b"v=2"
    assert stage.disk.listdir(stage.root) == ["meta.properties"]
    with pytest.raises(FileNotFoundError):
        stage.disk.write_file(f"{stage.root}/missing/a", b"")


def test_names(stage: Stage) -> None:
    stage.disk.mkdir(f"{stage.root}/b/c")
    stage.disk.mkdir(f"{stage.root}/b/c")
    stage.disk.write_file(f"{stage.root}/a", b"1")
    stage.disk.write_file(f"{stage.root}/b/z", b"1")
    assert stage.disk.listdir(stage.root) == ["a", "b"]
    assert stage.disk.listdir(f"{stage.root}/b") == ["c", "z"]
    assert stage.disk.is_dir(f"{stage.root}/b")
    assert not stage.disk.is_dir(f"{stage.root}/a")
    assert not stage.disk.is_link(f"{stage.root}/a")
    with pytest.raises(FileExistsError):
        stage.disk.mkdir(f"{stage.root}/a")
    with pytest.raises(NotADirectoryError):
        stage.disk.listdir(f"{stage.root}/a")
    with pytest.raises(IsADirectoryError):
        stage.disk.remove(f"{stage.root}/b")
    with pytest.raises(OSError):
        stage.disk.rename(f"{stage.root}/a", f"{stage.root}/b")
    stage.disk.sync_dir(stage.root)
    stage.disk.remove_tree(f"{stage.root}/b")
    assert stage.disk.listdir(stage.root) == ["a"]
    total, usable = stage.disk.usage(stage.root)
    assert total >= usable > 0


def test_the_time_of_the_last_write(stage: Stage) -> None:
    stage.disk.write_file(f"{stage.root}/a", b"1")
    assert abs(stage.disk.mtime_ms(f"{stage.root}/a") - stage.clock.wall_ms()) < 60_000


def test_a_lock_is_taken_once(stage: Stage) -> None:
    stage.disk.lock(f"{stage.root}/.lock")
    with pytest.raises(BlockingIOError):
        stage.disk.lock(f"{stage.root}/.lock")


def test_computing_beside_the_loop_returns_or_raises(stage: Stage) -> None:
    async def story() -> None:
        assert await stage.disk.offload_compute(lambda: sum(range(1000))) == 499_500
        with pytest.raises(ZeroDivisionError):
            await stage.disk.offload_compute(lambda: 1 // 0)

    stage.run(story())


def test_offloaded_work_returns_or_raises(stage: Stage) -> None:
    async def story() -> None:
        file = stage.disk.open(f"{stage.root}/a", create=True)
        file.append(b"abc")

        def scan() -> bytes:
            copy = stage.disk.open(f"{stage.root}/copy", create=True)
            copy.append(file.read_blocking(0, 3) * 2)
            copy.sync_blocking()
            copy.close()
            return stage.disk.read_file(f"{stage.root}/copy")

        assert await stage.disk.offload(scan, stage.root) == b"abcabc"
        with pytest.raises(FileNotFoundError):
            await stage.disk.offload(lambda: stage.disk.read_file(f"{stage.root}/missing"), "")

    stage.run(story())


def test_clocks_move_forward(stage: Stage) -> None:
    first, wall_ms = stage.clock.monotonic(), stage.clock.wall_ms()
    assert stage.clock.monotonic() >= first
    assert wall_ms > 1_700_000_000_000
