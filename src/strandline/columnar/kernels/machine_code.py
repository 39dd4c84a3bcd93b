"""Kernels as machine code: compiled by numba once on a machine, and loaded from the store ever after.

Loading takes LLVM alone. That is why we keep the code ourselves and not in numba's own cache: importing numba takes longer than
many a task, and its cache belongs to the path of the source, which is a new one each time a cluster unpacks an archive.

Always true: code is loaded only if it was made from the same sources, by the same compiler, for the same processor.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from types import ModuleType
from typing import Final

from strandline.columnar.kernels import store
from strandline.columnar.kernels.store import Code

Kernel = Callable[..., int]
Signatures = Mapping[str, Sequence[str]]

_PACKAGE: Final = __name__.rpartition(".")[0]
_SOURCES: Final = (
    f"{_PACKAGE}.calls",
    f"{_PACKAGE}.primitives",
    f"{_PACKAGE}.store",
    "strandline.columnar.batches",
    "strandline.records.header",
)
"""What the kernels take numbers from and how their code is written down, besides this file and their own."""
_SETTINGS: Final = ("NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES", "NUMBA_ENABLE_AVX", "NUMBA_OPT")
"""Of the environment: for what processor numba compiles if somebody knows better than it does."""


class CannotCompile(Exception):
    """Why there is no machine code to be had; the plain way is open."""


def load(module: str, signatures: Signatures, tell: Callable[[str], None]) -> dict[str, Kernel]:
    """The kernels of a module of this package. `tell` gets a line if they must be compiled first."""
    try:
        llvm = import_module("llvmlite.binding")
        code = store.fetch(f"{module}-{key_of(module, signatures)}", lambda: compile_kernels(module, signatures), tell)
        return _link(llvm, code, signatures)
    except (ImportError, PackageNotFoundError) as error:
        raise CannotCompile(f"numba is not installed ({error})") from None
    except Exception as error:  # whatever a compiler may come up with must not keep anybody from reading a topic
        raise CannotCompile(f"{type(error).__name__}: {error}") from error


def key_of(module: str, signatures: Signatures) -> str:
    """Changes with everything that the code depends on."""
    llvm = import_module("llvmlite.binding")
    parts = [version("numba"), version("llvmlite"), llvm.get_process_triple(), llvm.get_host_cpu_name()]
    parts += [llvm.get_host_cpu_features().flatten(), repr(signatures)]
    parts += [os.environ.get(name, "") for name in _SETTINGS]
    parts += [source_of(name) for name in (__name__, *_SOURCES, f"{_PACKAGE}.{module}")]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


def source_of(name: str) -> str:
    """Without importing it; out of a zip file too."""
    spec = find_spec(name)
    get_source = None if spec is None else getattr(spec.loader, "get_source", None)
    source = None if get_source is None else get_source(name)
    if source is None:
        raise CannotCompile(f"The source of {name} is not there")
    return str(source)


def compile_kernels(module: str, signatures: Signatures) -> Code:
    """Their object code. Imports numba."""
    numba = import_module("numba")
    compiler = import_module("numba.core.compiler")
    target = import_module("numba.core.registry").cpu_target
    kernels = import_module(f"{_PACKAGE}.{module}")
    types = {
        "uint8*": numba.types.CPointer(numba.types.uint8),
        "int32*": numba.types.CPointer(numba.types.int32),
        "int64*": numba.types.CPointer(numba.types.int64),
        "int64": numba.types.int64,
    }
    # Nothing that would tie the code to this process: no wrappers for Python, no allocation, no exceptions.
    flags = compiler.Flags()
    flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
    flags.nrt, flags.error_model = False, "numpy"
    code: Code = []
    for name, parameters in signatures.items():
        arguments = tuple(types[parameter] for parameter in parameters)
        function = getattr(kernels, name)
        compiled = compiler.compile_extra(
            target.typing_context, target.target_context, function, arguments, numba.types.int64, flags, {}
        )
        code.append((str(compiled.fndesc.llvm_func_name), bytes(compiled.library._get_compiled_object())))
    return code


def _link(llvm: ModuleType, code: Code, signatures: Signatures) -> dict[str, Kernel]:
    try:
        llvm.initialize()
    except RuntimeError:  # newer ones do it by themselves, and say so
        pass
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(jit=True)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    for _, content in code:
        engine.add_object_file(llvm.ObjectFileRef.from_data(content))
    engine.finalize_object()
    return {
        name: _callable(engine, engine.get_function_address(symbol), symbol, parameters)
        for (name, parameters), (symbol, _) in zip(signatures.items(), code, strict=True)
    }


def _callable(engine: object, address: int, symbol: str, parameters: Sequence[str]) -> Kernel:
    """Numba's own calling convention: where to put the result, where to put an exception, then the arguments."""
    assert address, f"{symbol} was compiled and is not there"
    kinds = [ctypes.c_void_p if parameter.endswith("*") else ctypes.c_int64 for parameter in parameters]
    prototype = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, *kinds)
    function = prototype(address)

    def call(*arguments: int) -> int:
        result = ctypes.c_int64()
        status = function(ctypes.addressof(result), None, *arguments)
        assert status == 0, f"{symbol} ended with status {status}"
        return result.value

    call.engine = engine  # type: ignore[attr-defined]  # the code lives as long as it
    return call
