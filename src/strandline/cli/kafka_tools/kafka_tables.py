"""Tables as several of Kafka's tools draw them: padded columns, each with a tab behind it."""

from __future__ import annotations

from collections.abc import Sequence


def table_lines(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(headings, *rows, strict=True)]
    return ["".join(f"{cell:<{width}}\t" for cell, width in zip(row, widths, strict=True)) for row in (headings, *rows)]
