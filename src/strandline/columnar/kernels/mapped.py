"""A kernel that stands alone, mapped into memory as it lies in the store: nothing is linked, so nothing has to be imported.

LLVM, which loads the other kernels, takes 43 MiB; a node that has 42 can't afford that for one function (docs/decisions/0012).

Always true: what is mapped is whole, and was made from the same sources for this kind of processor (not for this very one), by this
user in a directory that nobody else can write to. It is never writable and executable at once: the file itself is mapped.
"""

from __future__ import annotations

import ctypes
import hashlib
import mmap
import os
import platform
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from strandline.columnar.kernels import store
from strandline.columnar.kernels.machine_code import source_of

PROCESSORS: Final = ("x86_64", "aarch64")
_PACKAGE: Final = __name__.rpartition(".")[0]
_SOURCES: Final = ("mapped", "standalone", "machine_code", "primitives", "calls")
_DIGEST_BYTES: Final = 32


def file_of(directory: Path, module: str, signature: Sequence[str]) -> Path:
    """Where the only kernel of a module is kept: the name changes with everything that the code depends on."""
    parts = [platform.machine(), sys.platform, repr(signature), source_of("strandline.records.walk")]
    parts += [source_of(f"{_PACKAGE}.{name}") for name in (*_SOURCES, module)]
    key = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]
    return directory / f"{module}-{key}.code"


def write(file: Path, code: bytes) -> None:
    """Whole or not at all."""
    store.write_whole(file, code + hashlib.sha256(code).digest())


def load(module: str, signature: Sequence[str]) -> tuple[Any, Any] | None:
    """The kernel, as a function that keeps other threads from running and as one that does not.

    Numba's own calling convention: where to put the result, where to put an exception, then the arguments. They are not declared to
    ctypes, which would double the price of a call: each must be bytes, None or a value of ctypes that is as large as the kernel's.
    None if the kernel is not in the store, or can't be mapped.
    """
    directory = store.find_directory()
    if directory is None or platform.machine() not in PROCESSORS:
        return None
    try:
        handle = os.open(file_of(directory, module, signature), os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        content = os.read(handle, os.fstat(handle).st_size)
        code = content[:-_DIGEST_BYTES]
        if not code or hashlib.sha256(code).digest() != content[-_DIGEST_BYTES:]:
            return None
        address = _map(handle, len(content))
    finally:
        os.close(handle)
    if address is None:
        return None
    return ctypes.PYFUNCTYPE(ctypes.c_int32)(address), ctypes.CFUNCTYPE(ctypes.c_int32)(address)


def _map(handle: int, size: int) -> int | None:
    """None where the system allows no code in such a place: a file system mounted with `noexec`, or a stricter rule."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = (
        *(ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int),
        *(ctypes.c_int, ctypes.c_int, ctypes.c_long),
    )
    address = libc.mmap(None, size, mmap.PROT_READ | mmap.PROT_EXEC, mmap.MAP_PRIVATE, handle, 0)
    return None if address in (None, ctypes.c_void_p(-1).value) else int(address)
