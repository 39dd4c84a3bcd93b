"""Frames of a story: at each step what every broker holds, who leads, who is in sync, which answers clients got.

Frames are all that the renderers get, and all that `--json` prints.

Always true: a frame is a copy, it does not change when the cluster goes on; the same story gives the same frames.
"""

from __future__ import annotations

import dataclasses
import enum
from dataclasses import dataclass
from typing import NamedTuple


class BilingualText(NamedTuple):
    """A sentence in English and in Korean."""

    en: str
    ko: str

    def in_language(self, language: str) -> str:
        return self.ko if language == "ko" else self.en


class AnomalyKind(enum.Enum):
    """What is wrong with a message; drawn in red."""

    NONE = ""
    LOST = "lost"
    DOUBLED = "doubled"
    DIVERGED = "diverged"
    REORDERED = "reordered"
    DIRTY = "dirty"
    """It was read, and never committed."""


class ShownRole(enum.Enum):
    LEADER = "leader"
    OLD_LEADER = "old leader"
    """It believes that it leads, in an epoch that has ended."""
    FOLLOWER = "follower"
    DOWN = "down"
    STARTING = "starting"
    CANDIDATE = "candidate"
    OBSERVER = "observer"


@dataclass(frozen=True, slots=True)
class ShownRecord:
    """A record in a log. The epoch is None where the story has none; a ghost is not there any more."""

    offset: int
    name: str
    epoch: int | None
    mark: AnomalyKind = AnomalyKind.NONE
    is_ghost: bool = False


@dataclass(frozen=True, slots=True)
class ShownLog:
    """One log of a broker."""

    label: str
    """Of the partition, if there are several."""
    role: ShownRole
    is_out_of_sync: bool
    """Not in the ISR that the controller has: an OSR, in the notes' word."""
    epoch: int | None
    """The leader epoch as this broker knows it; None where the story has none."""
    messages: tuple[ShownRecord, ...]
    log_start: int
    log_end: int
    high_watermark: int | None
    """None if nothing is known of it. Of a broker that is down: as its checkpoint file has it."""
    last_stable: int | None = None
    """The last stable offset, where it is below the high watermark: a transaction is open, or ended just now."""
    snapshots: tuple[int, ...] = ()
    """Of the metadata: the end offsets of those on its disk."""


@dataclass(frozen=True, slots=True)
class Lane:
    broker: str
    is_paused: bool
    rows: tuple[ShownLog, ...]


@dataclass(frozen=True, slots=True)
class ShownPartition:
    """A partition in the controller's metadata, with the names of the brokers."""

    label: str
    leader: str | None
    epoch: int | None
    isr: tuple[str, ...]
    osr: tuple[str, ...]
    elr: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ShownQuorum:
    """The voters of the metadata log."""

    leader: str | None
    epoch: int
    voters: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ClientStatus:
    """What a client did or which answer it got since the last frame, or what it waits for."""

    client: str
    said: BilingualText
    is_waiting: bool = False


@dataclass(frozen=True, slots=True)
class Anomaly:
    """Something that was lost, doubled, put in another order, read though it never was committed, or is not the same everywhere."""

    mark: AnomalyKind
    what: str
    where: BilingualText


@dataclass(frozen=True, slots=True)
class Frame:
    number: int
    at_s: float
    """Virtual seconds since the story began."""
    said: BilingualText
    lanes: tuple[Lane, ...]
    quorum: ShownQuorum | None
    """Where the lanes are those of the metadata log."""
    partitions: tuple[ShownPartition, ...]
    clients: tuple[ClientStatus, ...]
    held: tuple[str, ...]
    """Links that let nothing through, such as 102→101."""
    wrong: tuple[Anomaly, ...]


@dataclass(frozen=True, slots=True)
class PlayedStory:
    """All frames of a story that was played to its end."""

    name: str
    title: BilingualText
    options: tuple[str, ...]
    """As on the command line."""
    settings: tuple[tuple[str, str], ...]
    frames: tuple[Frame, ...]
    point: BilingualText
    note: BilingualText | None
    """Where the protocol differs from the notes."""

    @property
    def wrong(self) -> tuple[Anomaly, ...]:
        return self.frames[-1].wrong if self.frames else ()


def as_json(story: PlayedStory) -> dict[str, object]:
    plain = _plain(story)
    assert isinstance(plain, dict)
    return plain


def _plain(value: object) -> object:
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, BilingualText):
        return {"en": value.en, "ko": value.ko}
    if dataclasses.is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, (tuple, list)):
        return [_plain(item) for item in value]
    return value
