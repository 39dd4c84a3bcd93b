"""Python source that is written line by line, compiled, and knows which field each line is about.

The codec of a message is generated, as dataclasses generate their methods: for a large Metadata response that writes 2.7
times and reads 1.8 times as fast as closures over the same description.
Lines name their field, so that an error far inside can say where it happened at no cost.

Always true: the source consists of our own templates and names from the schemas; nothing from a peer or a configuration
ever becomes part of it.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any

Compiled = Callable[..., Any]
"""A generated function: its template says what it takes and returns."""
_OWNERS = "__field_of_each_line__"
"""The global name under which compiled source carries the field that each of its lines belongs to."""


class Source:
    def __init__(self, title: str) -> None:
        self.file_name = f"<strandline wire: {title}>"
        self.names: dict[str, Any] = {}
        self._lines: list[str] = []
        self._owners: list[str] = []
        self._path: list[str] = []
        self._depth = 0
        self._count = 0

    def line(self, text: str) -> None:
        self._lines.append("    " * self._depth + text)
        self._owners.append(".".join(self._path))

    @contextmanager
    def block(self, header: str) -> Iterator[None]:
        self.line(header)
        self._depth += 1
        yield
        self._depth -= 1

    @contextmanager
    def field(self, name: str) -> Iterator[None]:
        """Lines written inside belong to this field."""
        self._path.append(name)
        yield
        self._path.pop()

    def unique(self, stem: str) -> str:
        """A name that no other line uses."""
        self._count += 1
        return f"{stem}_{self._count}"

    def bind(self, stem: str, value: object) -> str:
        """A global name for this value."""
        name = self.unique(stem)
        self.names[name] = value
        return name

    def compile(self, function: str) -> Compiled:
        text = "\n".join(self._lines) + "\n"
        self.names[_OWNERS] = self._owners
        linecache.cache[self.file_name] = (len(text), None, text.splitlines(keepends=True), self.file_name)
        exec(compile(text, self.file_name, "exec"), self.names)  # noqa: S102 - our own templates, see above
        return self.names[function]  # type: ignore[no-any-return]


def field_at(traceback: TracebackType | None) -> str:
    """The field whose generated line raised, or '' if that was not in generated code."""
    found = ""
    while traceback is not None:
        owners = traceback.tb_frame.f_globals.get(_OWNERS)
        if owners is not None:
            found = owners[traceback.tb_lineno - 1]
        traceback = traceback.tb_next
    return found
