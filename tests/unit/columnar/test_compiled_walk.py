"""The walk in machine code: made by another process, mapped without LLVM, and of one mind with the plain one."""

# mypy: disable-error-code="arg-type, assignment, attr-defined"

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings

from strandline.columnar import compiled_walk
from strandline.columnar.kernels import mapped, standalone, store
from strandline.columnar.kernels.calls import WALKING
from strandline.columnar.kernels.machine_code import CannotCompile
from strandline.records.record import encode_record
from strandline.records.walk import PLAIN, Walker
from tests.unit.records.walks import Case, cases, damaged, decoded, outcome

SIGNATURE = WALKING["walk_records"]


def fill(**environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        standalone.command(),
        env=standalone.environment({**os.environ, **environment}),
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def compiled() -> Walker:
    assert fill().returncode == 0
    walker = compiled_walk.load()
    assert walker is not None
    return walker


@pytest.fixture
def stored(compiled: Walker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of the compiled walk in a store of its own, which the test and its processes use."""
    content = _file().read_bytes()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    file = _file()
    store.write_whole(file, content)
    return file


def _file() -> Path:
    directory = store.find_directory()
    assert directory is not None
    return mapped.file_of(directory, "walking", SIGNATURE)


@settings(max_examples=300, deadline=None)
@given(case=cases())
def test_agrees_with_the_plain_walk_and_the_decoder(compiled: Walker, case: Case) -> None:
    found = outcome(compiled, case)
    assert found == outcome(PLAIN, case)
    expected = decoded(case)
    assert found == expected if expected is not None else isinstance(found, str)


def test_every_byte_of_a_batch_may_be_wrong(compiled: Walker) -> None:
    for case in damaged():
        found = outcome(compiled, case)
        assert found == outcome(PLAIN, case)
        expected = decoded(case)
        assert found == expected if expected is not None else isinstance(found, str)


@pytest.mark.parametrize("count", [1, 100_000])
def test_every_kind_of_buffer(compiled: Walker, count: int) -> None:
    data = b"".join(encode_record(i, i, None, b"v") for i in range(count))
    found = (7, 6 + count, count)
    for buffer in (data, bytearray(data), memoryview(data), memoryview(bytearray(data))):
        assert compiled.walk(buffer, 0, count, 7) == found
    padded = bytearray(b"..." + data + b"...")
    assert compiled.walk(memoryview(padded)[:-3], 3, count, 7) == found
    padded += b"and it is not held on to"


def test_it_reads_nothing_outside_of_what_it_is_given(compiled: Walker) -> None:
    """The bytes behind would complete the record."""
    data = encode_record(0, 0, b"key", b"value", [("h", b"x")])
    for size in range(len(data)):
        assert isinstance(outcome(compiled, (bytes(memoryview(data)[:size]), 0, 1, 0)), str)
        view = memoryview(bytearray(data))[:size]
        with pytest.raises(Exception, match="cannot be read"):
            compiled.walk(view, 0, 1, 0)


def test_a_process_that_loads_it_imports_no_compiler(compiled: Walker) -> None:
    lines = (
        "import sys",
        "from strandline.columnar import compiled_walk",
        "assert compiled_walk.load() is not None and compiled_walk.can_be_made()",
        "sys.exit(str({'numba', 'llvmlite', 'numpy', 'pyarrow'} & set(sys.modules) or ''))",
    )
    done = subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=False)
    assert done.stderr.strip() == ""


def test_an_empty_store_is_filled_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert compiled_walk.load() is None
    assert fill(XDG_CACHE_HOME=str(tmp_path)).returncode == 0
    [file] = (tmp_path / "strandline").iterdir()
    made = file.stat().st_mtime_ns
    assert compiled_walk.load() is not None
    assert fill(XDG_CACHE_HOME=str(tmp_path)).returncode == 0
    assert file.stat().st_mtime_ns == made


@pytest.mark.parametrize("harm", ["damaged", "others can write to it"])
def test_a_file_that_is_not_used_is_made_again(stored: Path, harm: str) -> None:
    """It kept every node of this user from its machine code for good."""
    assert compiled_walk.load() is not None
    if harm == "damaged":
        stored.write_bytes(stored.read_bytes()[:-1])
    else:
        stored.chmod(0o666)
    assert compiled_walk.load() is None
    assert fill().returncode == 0
    assert compiled_walk.load() is not None


def test_what_becomes_of_the_file_harms_nobody_who_uses_it(stored: Path) -> None:
    """Pages of a file that is truncated are gone: to run them is SIGBUS. And no page may be written to and run."""
    lines = (
        "from pathlib import Path",
        "from strandline.columnar import compiled_walk",
        "from strandline.records.record import encode_record",
        "walker = compiled_walk.load()",
        f"Path({str(stored)!r}).write_bytes(b'')",
        "assert walker.walk(encode_record(0, 0, b'k', b'v'), 0, 1, 7) == (7, 7, 0)",
        "modes = [line.split()[1] for line in Path('/proc/self/maps').read_text().splitlines()]",
        "assert not any('w' in mode and 'x' in mode for mode in modes), modes",
    )
    done = subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_without_a_compiler_there_is_a_reason(tmp_path: Path) -> None:
    (tmp_path / "numba.py").write_text("raise ImportError('no numba here')")
    lines = ("import sys", f"sys.path.insert(0, {str(tmp_path)!r})")
    lines += ("from strandline.columnar.kernels import standalone", "sys.exit(standalone.main())")
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(lines)],
        env={**os.environ, "XDG_CACHE_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (1, "ImportError: no numba here\n")


@pytest.mark.parametrize("damage", ["cut", "changed", "emptied"])
def test_a_damaged_file_is_not_mapped(stored: Path, damage: str) -> None:
    content = bytearray(stored.read_bytes())
    match damage:
        case "cut":
            del content[-1]
        case "changed":
            content[100] ^= 1
        case _:
            content.clear()
    store.write_whole(stored, content)
    assert mapped.load("walking", SIGNATURE) is None


def test_code_that_gives_other_answers_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sound as a file, and wrong: it says of every batch what it finds in its result."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    does_nothing = b"\x31\xc0\xc3" if mapped.platform.machine() == "x86_64" else b"\x00\x00\x80\x52\xc0\x03\x5f\xd6"
    mapped.write(_file(), does_nothing)
    assert mapped.load("walking", SIGNATURE) is not None
    assert compiled_walk.load() is None


def test_what_needs_a_linker_is_refused(tmp_path: Path) -> None:
    """A kernel of the other kind calls its helpers."""
    from strandline.columnar.kernels import calls, machine_code

    ((_, content),) = machine_code.compile_kernels("reading", {"scan_batches": calls.READING["scan_batches"]})
    with pytest.raises(CannotCompile, match="stand alone"):
        standalone.code_of(content)
