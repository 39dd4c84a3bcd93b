"""SEC-H3: what strangers wrote never commands a terminal."""

from __future__ import annotations

import pytest

from strandline.escaping import escaped, escaped_bytes, escaped_text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain, 토픽 and é", "plain, 토픽 and é"),
        ("\x1b]0;title\x07", "\\x1b]0;title\\x07"),
        ("a\r\nforged line\tb", "a\\x0d\\x0aforged line\\x09b"),
        ("\x7f\x80\x9b31m", "\\x7f\\x80\\x9b31m"),
        ("\u202egnp.exe\u2066\u200f", "\\u202egnp.exe\\u2066\\u200f"),
        ("a\u2028b\u2029c\u0085d", "a\\u2028b\\u2029c\\x85d"),
        ("\ud800", "\\ud800"),
        ("\U000e0041", "\\U000e0041"),
        ("[red]no markup[/red]", "[red]no markup[/red]"),
    ],
)
def test_a_name_is_one_line_of_what_can_be_seen(text: str, shown: str) -> None:
    assert escaped(text) == shown


def test_of_a_text_lines_and_tabs_are_our_own() -> None:
    assert escaped_text("a\tb\nc\x1b[31m\rd") == "a\tb\nc\\x1b[31m\\x0dd"


def test_bytes_that_are_no_text_are_shown_one_by_one() -> None:
    assert escaped_bytes(b"k\xff\x1b\n" + "é".encode()) == b"k\\xff\\x1b\\x0a" + "é".encode()


def test_nothing_escaped_holds_a_control_character() -> None:
    everything = "".join(map(chr, range(0x3000)))
    assert not any(ord(c) < 0x20 or 0x7F <= ord(c) < 0xA0 or 0x2028 <= ord(c) <= 0x202E for c in escaped(everything))
