"""A kernel that stands alone, mapped into memory as the store has it: nothing is linked, so nothing has to be imported.

LLVM, which loads the other kernels, takes 43 MiB; a node that has 42 can't afford that for one function (docs/decisions/0014).

Always true: what is mapped is whole, and was made from the same sources for this kind of processor (not for this very one), by this
user in a file and a directory that nobody else can write to. It is never writable and executable at once: what is mapped is a copy
in memory that is sealed, so that nothing that becomes of the file, nor of the copy, changes what runs.
"""

from __future__ import annotations

import ctypes
import fcntl
import hashlib
import mmap
import os
import platform
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from strandline.columnar.kernels import store
from strandline.columnar.kernels.machine_code import Kernel, source_of

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


def read(file: Path) -> bytes | None:
    """The code in it; None if it is not there, not in full, or not ours alone."""
    content = store.read_own(file)
    if content is None:
        return None
    code = content[:-_DIGEST_BYTES]
    return code if code and hashlib.sha256(code).digest() == content[-_DIGEST_BYTES:] else None


def load(module: str, signature: Sequence[str]) -> tuple[Kernel, Kernel] | None:
    """The kernel, as a function that keeps other threads from running and as one that does not.

    Numba's own calling convention: where to put the result, where to put an exception, then the arguments. They are not declared to
    ctypes, which would double the price of a call: each must be bytes, None or a value of ctypes that is as large as the kernel's.
    None if the kernel is not in the store, or can't be mapped.
    """
    directory = store.find_directory()
    if directory is None or platform.machine() not in PROCESSORS or sys.platform != "linux":
        return None
    file = file_of(directory, module, signature)
    code = read(file)
    if code is None:
        return None
    try:
        address = None if os.statvfs(file).f_flag & os.ST_NOEXEC else _map(code)
    except OSError:  # no such memory is to be had
        return None
    if address is None:
        return None
    return ctypes.PYFUNCTYPE(ctypes.c_int32)(address), ctypes.CFUNCTYPE(ctypes.c_int32)(address)


def _map(code: bytes) -> int | None:
    """None where a rule of the system keeps such memory from being run."""
    handle = os.memfd_create("strandline-kernel", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        with open(handle, "wb", closefd=False) as opened:
            opened.write(code)
        seals = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL
        fcntl.fcntl(handle, fcntl.F_ADD_SEALS, seals)
        libc = ctypes.CDLL(None, use_errno=True)
        libc.mmap.restype = ctypes.c_void_p
        libc.mmap.argtypes = (
            *(ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int),
            *(ctypes.c_int, ctypes.c_int, ctypes.c_long),
        )
        address = libc.mmap(None, len(code), mmap.PROT_READ | mmap.PROT_EXEC, mmap.MAP_PRIVATE, handle, 0)
    finally:
        os.close(handle)
    return None if address in (None, ctypes.c_void_p(-1).value) else int(address)
