"""Machine code compiled, kept and loaded again."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from strandline.columnar.kernels import calls, store
from strandline.columnar.kernels.machine_code import CannotCompile, key_of, load

ONE = {"find_partitions": calls.WRITING["find_partitions"]}
"""The smallest of the kernels, because compiling takes its time."""


def test_compiled_once_and_loaded_without_numba(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    told: list[str] = []
    compiled = load("writing", ONE, told.append)
    assert told == [store.COMPILING]
    loaded = load("writing", ONE, told.append)
    assert len(told) == 1
    sizes, found = np.array([-1, 0], np.int64), np.zeros(2, np.int32)
    for kernels in (compiled, loaded):
        found[:] = 0
        kernel = kernels["find_partitions"]
        assert kernel(0, sizes.ctypes.data, sizes.ctypes.data, 2, 5, found.ctypes.data) == 2
        assert found.tolist() == [-1, 275646681 % 5]


def test_a_process_with_kept_code_does_not_import_numba() -> None:
    lines = (
        "import sys",
        "from strandline.columnar.warming import compile_once",
        "compile_once(sys.exit)",
        "sys.exit('numba' in sys.modules)",
    )
    load("reading", calls.READING, lambda _line: None)
    load("writing", calls.WRITING, lambda _line: None)
    done = subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("missing", ["llvmlite.binding", "numba"])
def test_without_numba_the_reason_is_told(missing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(CannotCompile, match="numba is not installed"):
        load("writing", ONE, lambda _line: None)


def test_whatever_a_compiler_comes_up_with_is_a_reason() -> None:
    with pytest.raises(CannotCompile, match="AttributeError"):
        load("writing", {"a kernel that is not there": ()}, lambda _line: None)


def test_the_key_tells_modules_and_kernels_apart() -> None:
    keys = {key_of("reading", calls.READING), key_of("writing", calls.WRITING), key_of("writing", ONE)}
    assert len(keys) == 3
    assert key_of("writing", dict(ONE)) in keys


def test_the_key_tells_what_processor_numba_is_told_to_compile_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NUMBA_CPU_NAME", raising=False)
    before = key_of("writing", ONE)
    monkeypatch.setenv("NUMBA_CPU_NAME", "generic")
    assert key_of("writing", ONE) != before
