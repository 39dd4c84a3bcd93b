"""The program that compiles a kernel for `mapped` and leaves it in the store: `python -m strandline.columnar.kernels.standalone`.

A process of its own, because numba takes 79 MiB and a second to import, and because it is told by its environment to compile for
every processor of this kind: the file may be used by another machine that shares the home directory.

Always true: what it writes calls nothing and has no data beside its code; what would need a linker is refused.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from importlib import import_module
from typing import Final

from strandline.columnar.kernels import calls, machine_code, mapped, store
from strandline.columnar.kernels.machine_code import CannotCompile

MODULES: Final = {"walking": calls.WALKING}
ANY_PROCESSOR: Final = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}
NICENESS: Final = 19


def command() -> list[str]:
    return [sys.executable, "-m", __spec__.name]


def environment(given: Mapping[str, str]) -> dict[str, str]:
    """What the process needs besides what `given` says."""
    return {**given, **ANY_PROCESSOR, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}


def fill() -> None:
    """Compile what the store lacks; CannotCompile says why that can't be."""
    directory = store.find_directory()
    if directory is None:
        raise CannotCompile("no cache directory can be written to")
    with store.alone(directory):
        for module, signatures in MODULES.items():
            ((_, signature),) = signatures.items()
            file = mapped.file_of(directory, module, signature)
            if mapped.read(file) is None:
                ((_, content),) = machine_code.compile_kernels(module, signatures)
                mapped.write(file, code_of(content))


def code_of(content: bytes) -> bytes:
    """The machine code of an object file that holds one function and nothing else."""
    llvm = import_module("llvmlite.binding")
    code: list[bytes] = []
    for section in llvm.ObjectFileRef.from_data(content).sections():
        name, size = (section.name() or b"").decode(), section.size()
        if not size or name in ("", ".strtab", ".symtab", ".shstrtab", ".comment"):
            continue
        if not section.is_text() or code:
            raise CannotCompile(f"the kernel does not stand alone: it has a section {name} of {size} bytes")
        code.append(bytes(section.data()))
    if not code:
        raise CannotCompile("the compiler made no code")
    return code[0]


def main() -> int:
    os.nice(NICENESS)
    try:
        fill()
    except Exception as error:  # whatever a compiler may come up with: the parent goes on without
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
