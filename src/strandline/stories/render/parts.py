"""What the terminal and the picture have in common: the words before a lane, its boxes and marks, the lines below all lanes.

Always true: all of it comes from one frame; nothing here knows of columns, pixels or colours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from strandline.stories.frames import AnomalyKind, Frame, Lane, ShownLog, ShownPartition, ShownQuorum, ShownRecord
from strandline.stories.render import words
from strandline.stories.render.words import word

LINES_MAX = 3
"""Of one log: of a longer one the earlier messages are left out."""
STATE, WAITING, CLIENT, WRONG = "state", "waiting", "client", "wrong"
"""Kinds of lines below the lanes."""
PLAIN, RED, GHOST, LEFT_OUT = "plain", "red", "ghost", "left out"
"""Kinds of boxes."""


class Box(NamedTuple):
    offset: int
    """Of its message, or of the last one that it stands for."""
    text: str
    kind: str


def heading(lane: Lane, row: ShownLog, language: str) -> str:
    """Partition, role, whether it is in sync, leader epoch."""
    parts = [row.label] if row.label else []
    parts.append(words.role(row.role, language))
    if row.is_out_of_sync:
        parts.append("OSR")
    if lane.is_paused:
        parts.append(word("paused", language))
    if row.epoch is not None:
        parts.append(f"e{row.epoch}")
    return " ".join(parts)


def boxes(messages: Sequence[ShownRecord], language: str, room: float, size: Callable[[str], float]) -> list[list[Box]]:
    """Line by line, each of at most `room`."""
    every = [_box(message, language) for message in messages]
    lines = _broken(every, room, size)
    for left_out in range(1, len(every)):
        if len(lines) <= LINES_MAX:
            break
        text = f"… {left_out} {word('earlier', language)}"
        lines = _broken([Box(every[left_out - 1].offset, text, LEFT_OUT), *every[left_out:]], room, size)
    return lines


def _broken(every: Sequence[Box], room: float, size: Callable[[str], float]) -> list[list[Box]]:
    lines: list[list[Box]] = [[]]
    used = 0.0
    for box in every:
        if lines[-1] and used + size(box.text) > room:
            lines.append([])
            used = 0.0
        lines[-1].append(box)
        used += size(box.text)
    return lines


def _box(message: ShownRecord, language: str) -> Box:
    if message.is_ghost:
        return Box(message.offset, f"✗{message.name} {words.mark(message.mark, language)}", GHOST)
    epoch = "" if message.epoch is None else f" e{message.epoch}"
    text = f"{message.offset}:{message.name}{epoch}"
    return (
        Box(message.offset, f"!{text}", RED)
        if message.mark is not AnomalyKind.NONE
        else Box(message.offset, text, PLAIN)
    )


def marks(row: ShownLog) -> list[tuple[int, str]]:
    """The offsets of a log that have a name, each once: HW 1, or HW=LEO 2 where both are;
    LSO, the last stable offset, where it is not HW."""
    named: dict[int, list[str]] = {}
    if row.log_start:
        named[row.log_start] = ["START"]
    if row.last_stable is not None:
        named.setdefault(row.last_stable, []).append("LSO")
    if row.high_watermark is not None:
        named.setdefault(row.high_watermark, []).append("HW")
    named.setdefault(row.log_end, []).append("LEO")
    return [(offset, f"{'='.join(names)} {offset}") for offset, names in sorted(named.items())]


def note(row: ShownLog, language: str) -> str:
    """What stands behind the boxes."""
    return f"{word('snapshot', language)} {', '.join(map(str, row.snapshots))}" if row.snapshots else ""


def below(frame: Frame, language: str) -> Iterator[tuple[str, str]]:
    """Lines of text, each with its kind: the controller's view, what is held back, clients, what is wrong."""
    if frame.quorum is not None:
        yield _quorum(frame.quorum, language), STATE
    for partition in frame.partitions:
        yield _controlled(partition, language, len(frame.partitions) > 1), STATE
    if frame.held:
        yield f"{word('held', language)}: {', '.join(frame.held)}", STATE
    for client in frame.clients:
        name = words.client(client.client, language)
        yield f"{name}: {client.said.in_language(language)}", WAITING if client.is_waiting else CLIENT
    for wrong in frame.wrong:
        what = f"{word('offset', language)} {wrong.what}" if wrong.mark is AnomalyKind.DIVERGED else wrong.what
        where = wrong.where.in_language(language)
        yield f"{words.mark(wrong.mark, language)}: {what}" + (f" ({where})" if where else ""), WRONG


def _leader(name: str | None, language: str) -> str:
    return word("no leader", language) if name is None else f"{word('leader', language)} {name}"


def _controlled(partition: ShownPartition, language: str, is_one_of_many: bool) -> str:
    parts = [_leader(partition.leader, language)]
    if partition.epoch is not None:
        parts.append(f"{word('epoch', language)} {partition.epoch}")
    parts.append(f"ISR {','.join(partition.isr) or '-'}")
    if partition.osr:
        parts.append(f"OSR {','.join(partition.osr)}")
    if partition.elr:
        parts.append(f"ELR {','.join(partition.elr)}")
    label = f" {partition.label}" if is_one_of_many else ""
    return f"{word('controller', language)}{label}: {' · '.join(parts)}"


def _quorum(voting: ShownQuorum, language: str) -> str:
    epoch, voters = f"{word('epoch', language)} {voting.epoch}", f"{word('voters', language)} {','.join(voting.voters)}"
    return f"{word('quorum', language)}: {_leader(voting.leader, language)} · {epoch} · {voters}"
