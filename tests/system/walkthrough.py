"""The code of a page of the documentation, run as a reader would: block after block, in one Python and one directory.

python -m tests.system.walkthrough PAGE SECTION

Blocks of `python` and `sh` are run; a block of `text` is what the block before it prints. Ends with exit code 1 and the place in
the page if a block fails, or at the end if one printed something else. Blanks count as one: a table is as wide as its terminal.
"""

from __future__ import annotations

import contextlib
import io
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

_FENCE = re.compile(r"^```(\w*)$")
SHELL_TIMEOUT_S = 60


class Block(NamedTuple):
    kind: str
    line: int
    """In the page, of its first line."""
    code: str


def blocks(page: str, section: str) -> Iterator[Block]:
    """Those below a heading of the second level, up to the next one."""
    here = False
    kind: str | None = None
    first = 0
    lines: list[str] = []
    for number, line in enumerate(page.splitlines(), 1):
        fence = _FENCE.match(line)
        if kind is not None:
            if fence:
                if here:
                    yield Block(kind, first, "\n".join(lines) + "\n")
                kind = None
            else:
                lines.append(line)
        elif fence:
            kind, first, lines = fence.group(1), number + 1, []
        elif line.startswith("## "):
            here = line == f"## {section}"


def run(page: Path, section: str) -> None:
    namespace: dict[str, Any] = {"__name__": "walkthrough"}
    printed = ""
    others: list[str] = []
    for block in blocks(page.read_text(encoding="utf-8"), section):
        where = f"{page}:{block.line}"
        if block.kind == "text":
            if block.code.split() != printed.split():
                others.append(where)
            continue
        if block.kind == "python":
            with contextlib.redirect_stdout(io.StringIO()) as output:
                # As far down as in the page, so that a traceback names its lines.
                exec(compile("\n" * (block.line - 1) + block.code, str(page), "exec"), namespace)  # noqa: S102
            printed = output.getvalue()
        elif block.kind == "sh":
            done = subprocess.run(
                ["sh", "-e", "-c", block.code], capture_output=True, text=True, timeout=SHELL_TIMEOUT_S, check=False
            )
            if done.returncode:
                raise SystemExit(f"{where}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
            printed = done.stdout
        else:
            raise SystemExit(f"{where}: a block of {block.kind or 'no kind'}")
        print(f"--- {where}\n{printed}", flush=True)
    if others:
        raise SystemExit(f"something else is printed than the page shows at {', '.join(others)}")


if __name__ == "__main__":
    run(Path(sys.argv[1]), sys.argv[2])
