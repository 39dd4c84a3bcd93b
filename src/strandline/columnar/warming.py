"""Kernels compiled before they are needed, so that a person who waits knows what for."""

from __future__ import annotations

from collections.abc import Callable

from strandline.columnar.loading import kernels


def compile_once(tell: Callable[[str], None]) -> None:
    """Make sure that all kernels are compiled, kept and loaded; `tell` gets a line if that takes a moment."""
    lines: list[str] = []

    def tell_once(line: str) -> None:
        if not lines:
            lines.append(line)
            tell(line)

    for module in ("reading", "writing"):
        kernels(module, tell_once)
