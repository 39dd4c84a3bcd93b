"""The fixed words of a story in both languages, and how wide a text is.

Always true: every text that is not a name, a number or a sentence of the story comes from here.
"""

from __future__ import annotations

import unicodedata

from strandline.stories.frames import AnomalyKind, ShownRole

LANGUAGES = ("en", "ko")

_WORDS: dict[str, tuple[str, str]] = {
    # Roles
    "leader": ("leader", "리더"),
    "old leader": ("old leader", "구 리더"),
    "follower": ("follower", "팔로워"),
    "down": ("down", "다운"),
    "starting": ("starting", "시작 중"),
    "candidate": ("candidate", "후보"),
    "observer": ("observer", "옵저버"),
    "paused": ("paused", "멈춤"),
    # What is wrong
    "lost": ("LOST", "유실"),
    "doubled": ("DOUBLED", "중복"),
    "diverged": ("DIVERGED", "불일치"),
    "reordered": ("REORDERED", "순서 바뀜"),
    "dirty": ("DIRTY READ", "더티 리드"),
    # Clients
    "producer": ("producer", "프로듀서"),
    "consumer": ("consumer", "컨슈머"),
    "operator": ("operator", "운영자"),
    "copier": ("copier", "복사기"),
    # Around the lanes
    "controller": ("controller", "컨트롤러"),
    "quorum": ("quorum", "쿼럼"),
    "voters": ("voters", "투표자"),
    "snapshot": ("snapshot", "스냅샷"),
    "no leader": ("no leader", "리더 없음"),
    "epoch": ("epoch", "에포크"),
    "held": ("held back", "막힌 경로"),
    "settings": ("Settings", "고정 설정"),
    "note": ("Against the notes", "노트와 다른 점"),
    "point": ("The point", "요점"),
    "earlier": ("earlier", "개 생략"),
    "offset": ("offset", "오프셋"),
    # The list, the pages, and what the terminal asks for
    "stories": ("Stories", "이야기"),
    "story": ("story", "이야기"),
    "shows": ("what it shows", "내용"),
    "also with": ("also with", "옵션"),
    "a key": ("(any key goes on, q ends)", "(아무 키나 누르면 다음 단계, q는 끝)"),
}


def word(name: str, language: str) -> str:
    return _WORDS[name][1 if language == "ko" else 0]


def role(value: ShownRole, language: str) -> str:
    return word(value.value, language)


def mark(value: AnomalyKind, language: str) -> str:
    return word(value.value, language)


def client(name: str, language: str) -> str:
    """A client's name; those that every story has are words."""
    first, _, rest = name.partition(" ")
    return f"{_WORDS[first][1]} {rest}".strip() if language == "ko" and first in _WORDS else name


def width(text: str) -> int:
    """Columns in a terminal: Korean letters take two, those that combine take none."""
    return sum(
        0 if unicodedata.combining(letter) else 2 if unicodedata.east_asian_width(letter) in "WF" else 1
        for letter in text
    )


def padded(text: str, columns: int) -> str:
    return text + " " * (columns - width(text))


def wrapped(text: str, columns: int) -> list[str]:
    """Lines of at most so many columns, broken between words; a longer word gets a line of its own."""
    lines, line = [], ""
    for part in text.split():
        if line and width(line) + 1 + width(part) > columns:
            lines.append(line)
            line = part
        else:
            line = f"{line} {part}" if line else part
    return [*lines, line] if line else lines
