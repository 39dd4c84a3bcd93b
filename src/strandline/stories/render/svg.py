"""A story as a picture: step by step from top to bottom, in each the lanes of all brokers.

Always true: the picture stands alone (no fonts, no scripts, no links) and is readable on light and on dark.
"""

from __future__ import annotations

from html import escape

from strandline.stories.frames import Frame, Lane, PlayedStory, ShownLog
from strandline.stories.render import parts
from strandline.stories.render.words import width, word, wrapped

WIDTH = 960
MARGIN = 24
COLUMN = 7.3
"""Pixels of one column of the box font."""
TEXT_COLUMNS = 118
LINE = 20
BOX_X = 210
BOX_HEIGHT = 26
ROW_HEIGHT = 46
PADDING = 6

STYLE = """
text{font:14px system-ui,sans-serif;fill:#1f2328}.p{fill:#fff}.t{font-size:20px;font-weight:600}.b{font-weight:600}
.s{fill:#656d76;font-size:12px}.c{fill:#0969da;font-size:12px}.r{fill:#cf222e;font-weight:600}
.m,.rm{font:12px ui-monospace,monospace}.rm{fill:#cf222e}.h{font:10px ui-monospace,monospace;fill:#1a7f37}
.g{stroke:#1a7f37;stroke-width:2}.l{stroke:#a9b2bd;stroke-width:.6}.o{opacity:.55}
.k{fill:#f3f5f8;stroke:#a9b2bd}.x{fill:#ffebe9;stroke:#cf222e}.gx{fill:none;stroke:#cf222e;stroke-dasharray:4 3}
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.p{fill:#0d1117}.s{fill:#8d96a0}.c{fill:#58a6ff}.r,.rm{fill:#ff7b72}
.h{fill:#3fb950}.g{stroke:#3fb950}.l{stroke:#4b5563}.k{fill:#1b222c;stroke:#4b5563}.x{fill:#3d1a1d;stroke:#ff7b72}.gx{stroke:#ff7b72}}
"""


_BOX_KINDS = {parts.PLAIN: "k", parts.RED: "x", parts.GHOST: "gx", parts.LEFT_OUT: "k"}
_LINE_KINDS = {parts.STATE: "s", parts.WAITING: "s", parts.CLIENT: "c", parts.WRONG: "r"}


class _Page:
    """Elements from top to bottom; `y` is where the next one goes."""

    def __init__(self) -> None:
        self.elements: list[str] = []
        self.y = float(MARGIN)

    def text(self, x: float, y: float, text: str, kind: str = "") -> None:
        shown = f' class="{kind}"' if kind else ""
        self.elements.append(f'<text x="{_n(x)}" y="{_n(y)}"{shown}>{escape(text, quote=False)}</text>')

    def paragraph(self, x: float, text: str, kind: str = "", columns: int = TEXT_COLUMNS) -> None:
        for line in wrapped(text, columns):
            self.text(x, self.y + 14, line, kind)
            self.y += LINE

    def line(self, x1: float, y1: float, x2: float, y2: float, kind: str) -> None:
        self.elements.append(f'<line x1="{_n(x1)}" y1="{_n(y1)}" x2="{_n(x2)}" y2="{_n(y2)}" class="{kind}"/>')

    def box(self, x: float, y: float, w: float, h: float, kind: str) -> None:
        self.elements.append(f'<rect x="{_n(x)}" y="{_n(y)}" width="{_n(w)}" height="{_n(h)}" rx="3" class="{kind}"/>')


def _n(number: float) -> str:
    return f"{number:.1f}".removesuffix(".0")


def draw(story: PlayedStory, language: str) -> str:
    page = _Page()
    flags = "".join(f" {flag}" for flag in story.options)
    page.text(MARGIN, page.y + 18, f"{story.name}{flags}", "t")
    page.y += 30
    page.paragraph(MARGIN, story.title.in_language(language))
    if story.settings:
        page.paragraph(MARGIN, " · ".join(f"{name}={value}" for name, value in story.settings), "s", 130)
    for frame in story.frames:
        _step(page, frame, language)
    page.y += 8
    page.line(MARGIN, page.y, WIDTH - MARGIN, page.y, "l")
    page.y += 8
    page.paragraph(
        MARGIN, f"{word('point', language)}: {story.point.in_language(language)}", "r" if story.wrong else "b"
    )
    height = int(page.y + MARGIN)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}">'
    title = f"<title>{escape(story.name + flags)}</title>"
    paper = f'<rect width="{WIDTH}" height="{height}" class="p"/>'
    return "\n".join([head, title, f"<style>{STYLE}</style>", paper, *page.elements, "</svg>", ""])


def _step(page: _Page, frame: Frame, language: str) -> None:
    page.y += 8
    page.line(MARGIN, page.y, WIDTH - MARGIN, page.y, "l")
    page.y += 8
    page.text(MARGIN, page.y + 14, str(frame.number), "b")
    page.paragraph(MARGIN + 26, frame.said.in_language(language), columns=TEXT_COLUMNS - 4)
    page.y += 6
    for lane in frame.lanes:
        for i, row in enumerate(lane.rows):
            _row(page, lane, row, i == 0, language)
    for text, kind in parts.below(frame, language):
        for line in wrapped(text, TEXT_COLUMNS):
            page.text(MARGIN + 26, page.y + 12, line, _LINE_KINDS[kind])
            page.y += 18


def _row(page: _Page, lane: Lane, row: ShownLog, is_first: bool, language: str) -> None:
    y = page.y
    if is_first:
        page.text(MARGIN + 26, y + 17, lane.broker, "b")
    heading = parts.heading(lane, row, language)
    page.text(MARGIN + 26 + max(30, 9 * width(lane.broker) + 8), y + 17, heading, "s")
    faded = " o" if row.role.value == "down" else ""
    x = float(BOX_X)
    places = {}
    for i, line in enumerate(parts.boxes(row.messages, language, WIDTH - MARGIN - BOX_X, _box_width)):
        x, y = float(BOX_X), page.y + i * ROW_HEIGHT
        if not i:
            places[line[0].offset if line else row.log_end] = (x, y)
        for box in line:
            w, kind = _box_width(box.text), _BOX_KINDS[box.kind]
            page.box(x, y, w, BOX_HEIGHT, kind + faded)
            page.text(x + PADDING, y + 17, box.text, "m" if kind == "k" else "rm")
            x += w
            if box.kind != parts.GHOST:
                places[box.offset + 1] = (x, y)
    if not row.messages:
        page.line(x, y, x, y + BOX_HEIGHT, "l")
    for offset, name in parts.marks(row):
        if offset in places:
            _mark(page, *places[offset], name)
    note = parts.note(row, language)
    if note and x + 8 + width(note) * COLUMN > WIDTH - MARGIN:
        x, y = BOX_X - 8.0, y + ROW_HEIGHT
    if note:
        page.text(x + 8, y + 17, note, "s")
    page.y = y + ROW_HEIGHT


def _box_width(text: str) -> float:
    return width(text) * COLUMN + 2 * PADDING


def _mark(page: _Page, x: float, y: float, text: str) -> None:
    page.line(x, y - 2, x, y + BOX_HEIGHT + 4, "g")
    page.text(min(x - 2, WIDTH - MARGIN - 6.2 * width(text)), y + BOX_HEIGHT + 13, text, "h")
