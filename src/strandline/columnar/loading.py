"""Which way there is to work on records in this process: compiled, or plain.

Always true: asking costs nothing after the first time; a process that cannot compile says so once, with the reason.
"""

from __future__ import annotations

import sys
import threading
import warnings
from collections.abc import Callable
from typing import Final

from strandline.columnar.kernels import calls, machine_code
from strandline.columnar.kernels.machine_code import CannotCompile, Kernel

_MODULES: Final = {"reading": calls.READING, "writing": calls.WRITING}
_loaded: dict[str, dict[str, Kernel] | None] = {}
_lock = threading.Lock()


def _tell(line: str) -> None:
    sys.stderr.write(f"{line}\n")


def kernels(module: str, tell: Callable[[str], None] = _tell) -> dict[str, Kernel] | None:
    """Those of "reading" or "writing", or None where only the plain way is open."""
    with _lock:
        if module not in _loaded:
            try:
                _loaded[module] = machine_code.load(module, _MODULES[module], tell)
            except CannotCompile as error:
                if None not in _loaded.values():
                    warnings.warn(f"Records are read and written slowly here: {error}", RuntimeWarning, stacklevel=2)
                _loaded[module] = None
        return _loaded[module]
