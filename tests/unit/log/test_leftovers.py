"""What a restart makes of a swap that was interrupted."""

from __future__ import annotations

from strandline.log.leftovers import settle

from .conftest import NOW, LogDir, batch, contents, topic

OLD = ("00000000000000000000", "00000000000000000002", "00000000000000000004")
KINDS = ("log", "index", "timeindex")


def filled(directory: LogDir) -> list[tuple[int, str]]:
    """Three segments of two records each."""
    log = directory.open(segment_bytes=150)
    for i in range(3):
        log.append_as_leader(batch(f"a{i}", f"b{i}"), 0, NOW)
        log.roll(NOW)
    before = contents(log)
    log.close_clean()
    return before


def swapped(directory: LogDir, base: str, source: str, suffix: str) -> None:
    """A cleaned segment: here it holds what `source` held."""
    for kind in KINDS:
        directory.replace(f"{base}.{kind}{suffix}", directory.bytes(f"{source}.{kind}"))


def settled(directory: LogDir) -> list[str]:
    return [name for name in settle(directory.disk, directory.path, topic(compact=True)) if name.endswith(".log")]


def test_a_swap_that_had_begun_is_finished(directory: LogDir) -> None:
    filled(directory)
    swapped(directory, OLD[0], OLD[0], ".swap")
    directory.disk.rename(directory.file(f"{OLD[0]}.log"), directory.file(f"{OLD[0]}.log.deleted"))
    assert settled(directory) == [f"{one}.log" for one in (*OLD, "00000000000000000006")]
    assert not directory.names(".swap")
    assert not directory.names(".deleted")


def test_what_a_swap_replaces_goes(directory: LogDir) -> None:
    filled(directory)
    both = directory.bytes(f"{OLD[0]}.log") + directory.bytes(f"{OLD[1]}.log")
    swapped(directory, OLD[0], OLD[0], ".swap")
    directory.replace(f"{OLD[0]}.log.swap", both)
    assert settled(directory) == [f"{OLD[0]}.log", f"{OLD[2]}.log", "00000000000000000006.log"]
    assert directory.bytes(f"{OLD[0]}.log") == both
    assert not [name for name in directory.names("") if name.startswith(OLD[1]) and not name.endswith("snapshot")]


def test_a_swap_that_had_not_begun_is_undone(directory: LogDir) -> None:
    before = filled(directory)
    swapped(directory, OLD[1], OLD[1], ".swap")
    swapped(directory, OLD[0], OLD[0], ".cleaned")
    assert settled(directory) == [f"{one}.log" for one in (*OLD, "00000000000000000006")]
    assert not directory.names(".swap")
    assert not directory.names(".cleaned")
    assert contents(directory.open()) == before


def test_an_index_that_was_still_cleaned_undoes_a_swap(directory: LogDir) -> None:
    before = filled(directory)
    swapped(directory, OLD[0], OLD[1], ".swap")
    directory.disk.rename(directory.file(f"{OLD[0]}.index.swap"), directory.file(f"{OLD[0]}.index.cleaned"))
    settled(directory)
    assert contents(directory.open()) == before


def test_a_later_group_waits_while_an_earlier_one_is_finished(directory: LogDir) -> None:
    filled(directory)
    swapped(directory, OLD[0], OLD[0], ".swap")
    swapped(directory, OLD[2], OLD[2], ".cleaned")
    directory.disk.remove(directory.file(f"{OLD[0]}.log"))
    assert f"{OLD[0]}.log" in settled(directory)
    assert not directory.names(".cleaned")


def test_an_index_left_behind_by_its_log_follows(directory: LogDir) -> None:
    before = filled(directory)
    directory.disk.rename(directory.file(f"{OLD[1]}.index"), directory.file(f"{OLD[1]}.index.swap"))
    settled(directory)
    assert f"{OLD[1]}.index" in directory.names(".index")
    assert contents(directory.open()) == before


def test_a_swap_that_is_not_whole_gives_way_to_what_is_there(directory: LogDir) -> None:
    before = filled(directory)
    swapped(directory, OLD[0], OLD[0], ".swap")
    directory.replace(f"{OLD[0]}.log.swap", directory.bytes(f"{OLD[0]}.log")[:-1])
    settled(directory)
    assert contents(directory.open()) == before
    rotten = bytearray(directory.bytes(f"{OLD[0]}.log"))
    rotten[-1] ^= 1
    directory.replace(f"{OLD[0]}.log.swap", bytes(rotten))
    settled(directory)
    assert contents(directory.open()) == before


def test_names_without_an_offset_are_not_ours(directory: LogDir) -> None:
    before = filled(directory)
    directory.replace("notes.swap", b"somebody's")
    settled(directory)
    assert directory.bytes("notes.swap") == b"somebody's"
    assert contents(directory.open()) == before
