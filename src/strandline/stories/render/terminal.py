"""A story as lines of text: a sentence for each step, a lane for each broker, a box for each message.

    1 leader e0   │0:message1 e0│1:message2 e0│
                                ^HW 1         ^LEO 2

Below the boxes stand the marks: HW, the high watermark, and LEO, the log end offset. A mark stands before the first offset that is
not below it.

Always true: no line is wider than the columns; without styles the text says as much as with them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from strandline.stories.frames import Frame, Lane, PlayedStory, ShownLog
from strandline.stories.render import parts
from strandline.stories.render.words import padded, width, word, wrapped

COLUMNS = 100
BORDER = "│"
RED, BOLD, DIM, GREEN, CYAN = "bold red", "bold", "dim", "green", "cyan"
INDENT = "    "

_BOX_STYLES = {parts.PLAIN: "", parts.RED: RED, parts.GHOST: RED, parts.LEFT_OUT: DIM}
_LINE_STYLES = {parts.STATE: DIM, parts.WAITING: DIM, parts.CLIENT: CYAN, parts.WRONG: RED}
_ROLE_STYLES = {"leader": BOLD, "down": DIM, "old leader": RED}


class Span(NamedTuple):
    text: str
    style: str = ""


Line = tuple[Span, ...]


def plain(line: Line) -> str:
    return "".join(span.text for span in line).rstrip()


def lines(story: PlayedStory, language: str, columns: int = COLUMNS) -> Iterator[Line]:
    """The whole of it."""
    yield from head(story, language, columns)
    for frame in story.frames:
        yield ()
        yield from step(frame, language, columns)
    yield ()
    yield from end(story, language, columns)


def head(story: PlayedStory, language: str, columns: int = COLUMNS) -> Iterator[Line]:
    flags = "".join(f" {flag}" for flag in story.options)
    yield (Span(f"{story.name}{flags}", BOLD),)
    for text in wrapped(story.title.in_language(language), columns):
        yield (Span(text),)
    if story.settings:
        settings = " · ".join(f"{name}={value}" for name, value in story.settings)
        yield from _labelled(word("settings", language), settings, columns, DIM)


def end(story: PlayedStory, language: str, columns: int = COLUMNS) -> Iterator[Line]:
    point = story.point.in_language(language)
    yield from _labelled(word("point", language), point, columns, RED if story.wrong else BOLD)
    if story.note is not None:
        yield from _labelled(word("note", language), story.note.in_language(language), columns, DIM)


def step(frame: Frame, language: str, columns: int = COLUMNS) -> Iterator[Line]:
    number = f"{frame.number:>2}  "
    for i, text in enumerate(wrapped(frame.said.in_language(language), columns - len(number))):
        yield (Span(number if not i else " " * len(number), BOLD), Span(text))
    yield from _lanes(frame.lanes, language, columns)
    for text, kind in parts.below(frame, language):
        for part in wrapped(text, columns - len(INDENT)):
            yield (Span(f"{INDENT}{part}", _LINE_STYLES[kind]),)


def _labelled(label: str, text: str, columns: int, style: str) -> Iterator[Line]:
    indent = width(label) + 2
    for i, part in enumerate(wrapped(text, columns - indent)):
        yield (Span(f"{label}: " if not i else " " * indent, BOLD if not i else ""), Span(part, style))


# Lanes


def _lanes(lanes: tuple[Lane, ...], language: str, columns: int) -> Iterator[Line]:
    headings = [[parts.heading(lane, row, language) for row in lane.rows] for lane in lanes]
    name_columns = max((width(lane.broker) for lane in lanes), default=0)
    heading_columns = max((width(text) for texts in headings for text in texts), default=0)
    for lane, texts in zip(lanes, headings, strict=True):
        for i, (row, text) in enumerate(zip(lane.rows, texts, strict=True)):
            name = padded(lane.broker if not i else "", name_columns)
            yield from _row(row, f"{INDENT}{name} ", padded(text, heading_columns), language, columns)


def _row(row: ShownLog, name: str, heading: str, language: str, columns: int) -> Iterator[Line]:
    indent = width(name) + width(heading) + 1
    chunks = parts.boxes(row.messages, language, columns - indent - 1, lambda text: width(text) + 1)
    note = parts.note(row, language)
    for i, chunk in enumerate(chunks):
        first = (Span(name, BOLD), Span(heading, _ROLE_STYLES.get(row.role.value, "")), Span(" "))
        spans = [*(first if not i else (Span(" " * indent),)), Span(BORDER, DIM)]
        at = indent
        borders = {chunk[0].offset if chunk else row.log_end: at} if not i else {}
        for box in chunk:
            spans += [Span(box.text, _BOX_STYLES[box.kind]), Span(BORDER, DIM)]
            at += width(box.text) + 1
            if box.kind != parts.GHOST:
                borders[box.offset + 1] = at
        has_room = at + 2 + width(note) <= columns
        if note and has_room and i == len(chunks) - 1:
            spans.append(Span(f" {note}", DIM))
        yield tuple(spans)
        under = _under({borders[offset]: text for offset, text in parts.marks(row) if offset in borders}, columns)
        if under:
            yield (Span(under, GREEN),)
    if note and not has_room:
        yield (Span(f"{' ' * indent} {note}", DIM),)


def _under(marks: dict[int, str], columns: int) -> str:
    """Each mark below its border; where there is no room to its right, it stands to the left of it."""
    line = ""
    for at in sorted(marks):
        text, start = f"^{marks[at]}", at
        if at + width(text) > columns:
            text = f"{marks[at]}^"
            start = at + 1 - width(text)
        if width(line) >= start and line:
            line += " "
        line = padded(line, start) + text
    return line
