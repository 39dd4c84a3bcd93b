"""Frames as text and as a picture."""

from __future__ import annotations

import dataclasses
import xml.etree.ElementTree as ET

from strandline.stories.frames import (
    Anomaly,
    AnomalyKind,
    BilingualText,
    ClientStatus,
    Frame,
    Lane,
    PlayedStory,
    ShownLog,
    ShownPartition,
    ShownRecord,
    ShownRole,
)
from strandline.stories.render.svg import draw
from strandline.stories.render.terminal import Line, plain, step
from strandline.stories.render.words import padded, width, wrapped


def _row(role: ShownRole, names: list[str], high_watermark: int, *, osr: bool = False, lost: str = "") -> ShownLog:
    messages = [ShownRecord(i, name, 0) for i, name in enumerate(names)]
    ghosts = [ShownRecord(len(names), lost, None, AnomalyKind.LOST, is_ghost=True)] if lost else []
    epoch = None if role is ShownRole.DOWN else 1
    return ShownLog("", role, osr, epoch, (*messages, *ghosts), 0, len(names), high_watermark)


def _frame(*rows: ShownLog, wrong: tuple[Anomaly, ...] = ()) -> Frame:
    lanes = tuple(Lane(str(101 + i), False, (row,)) for i, row in enumerate(rows))
    partitions = (ShownPartition("t-0", "101", 1, ("101",), ("102",), ()),)
    clients = (ClientStatus("producer", BilingualText("waits for m2", "m2의 응답을 기다림"), is_waiting=True),)
    return Frame(
        3, 0.5, BilingualText("A sentence.", "한 문장."), lanes, None, partitions, clients, ("102→101",), wrong
    )


def _text(lines: list[Line]) -> list[str]:
    return [plain(line) for line in lines]


LOST = (Anomaly(AnomalyKind.LOST, "m2", BilingualText("it was acknowledged", "응답까지 했다")),)


def test_a_lane_has_a_box_for_each_message_and_marks_below() -> None:
    frame = _frame(_row(ShownRole.LEADER, ["m1", "m2"], 1), _row(ShownRole.DOWN, ["m1"], 1, osr=True))
    assert _text(list(step(frame, "en"))) == [
        " 3  A sentence.",
        "    101 leader e1 │0:m1 e0│1:m2 e0│",
        "                          ^HW 1   ^LEO 2",
        "    102 down OSR  │0:m1 e0│",
        "                          ^HW=LEO 1",
        "    controller: leader 101 · epoch 1 · ISR 101 · OSR 102",
        "    held back: 102→101",
        "    producer: waits for m2",
    ]


def test_korean_lanes_stand_straight_too() -> None:
    frame = _frame(_row(ShownRole.LEADER, ["m1"], 0), _row(ShownRole.FOLLOWER, ["m1"], 0))
    shown = _text(list(step(frame, "ko")))
    assert shown[1:5] == [
        "    101 리더 e1   │0:m1 e0│",
        "                  ^HW 0   ^LEO 1",
        "    102 팔로워 e1 │0:m1 e0│",
        "                  ^HW 0   ^LEO 1",
    ]
    assert shown[-1] == "    프로듀서: m2의 응답을 기다림"


def test_what_is_lost_is_red_and_says_so_without_colour() -> None:
    lines = list(step(_frame(_row(ShownRole.LEADER, ["m1"], 1, lost="m2"), wrong=LOST), "en"))
    assert "✗m2 LOST" in plain(lines[1])
    assert plain(lines[-1]) == "    LOST: m2 (it was acknowledged)"
    red = [span.text for line in lines for span in line if "red" in span.style]
    assert red == ["✗m2 LOST", "    LOST: m2 (it was acknowledged)"]


def test_a_long_log_is_broken_into_lines_and_its_beginning_left_out() -> None:
    lines = _text(list(step(_frame(_row(ShownRole.LEADER, [f"message{i}" for i in range(60)], 60)), "en")))
    lanes = [line for line in lines if "│" in line]
    assert len(lanes) == 3
    assert "earlier│" in lanes[0]
    assert lanes[-1].endswith("59:message59 e0│")
    assert max(map(width, lines)) <= 100


def test_a_note_that_does_not_fit_beside_the_boxes_stands_below() -> None:
    row = _row(ShownRole.LEADER, ["x" * 40, "y" * 24], 2)
    lines = _text(list(step(_frame(dataclasses.replace(row, snapshots=(17,))), "en")))
    assert lines[3].strip() == "snapshot 17"
    short = dataclasses.replace(_row(ShownRole.LEADER, ["m1"], 1), snapshots=(17,))
    assert _text(list(step(_frame(short), "en")))[1].endswith("│ snapshot 17")


def test_the_last_stable_offset_is_marked_where_there_is_one() -> None:
    row = dataclasses.replace(_row(ShownRole.LEADER, ["m1", "m2"], 2), last_stable=1)
    assert _text(list(step(_frame(row), "en")))[2].split() == ["^LSO", "1", "^HW=LEO", "2"]


def test_widths_count_columns() -> None:
    assert (width("리더"), width("abc"), width("e\u0301")) == (4, 3, 1)
    assert padded("리더", 6) == "리더  "
    assert wrapped("하나 둘 셋", 7) == ["하나 둘", "셋"]


def test_a_picture_stands_alone() -> None:
    frame = _frame(_row(ShownRole.LEADER, ["<m1>"], 1, lost="m2"), wrong=LOST)
    played = PlayedStory(
        "name", BilingualText("t", "t"), ("--unclean",), (("a", "b"),), (frame,), BilingualText("p", "p"), None
    )
    for language in ("en", "ko"):
        picture = draw(played, language)
        root = ET.fromstring(picture)
        texts = ["".join(element.itertext()) for element in root.iter("{http://www.w3.org/2000/svg}text")]
        assert "0:<m1> e0" in texts
        assert not any(word in picture for word in ("href", "@import", "url(", "<script"))
        assert "prefers-color-scheme:dark" in picture
        assert any(text.startswith(("LOST: m2", "유실: m2")) for text in texts)
