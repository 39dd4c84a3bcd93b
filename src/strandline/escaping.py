r"""Text that strangers wrote, without what a terminal would obey: `\x1b` instead of an escape character (SEC-H3).

Always true: nothing that is escaped holds a control character, an end of a line, or a mark that turns the direction of text.
"""

from __future__ import annotations

import re

_C0, _DEL_AND_C1 = "\x00-\x1f", "\x7f-\x9f"
_UNSEEN = "\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f"
"""Line separators, marks of direction, and what is not seen at all."""
_SURROGATES = "\ud800-\udfff"
_CONTROLS = re.compile(f"[{_C0}{_DEL_AND_C1}{_UNSEEN}{_SURROGATES}]")
_KEPT_IN_TEXT = ("\n", "\t")


def escaped(text: str) -> str:
    """A name or a value, in one line, as a terminal may show it."""
    return _CONTROLS.sub(_escape, text)


def escaped_text(text: str) -> str:
    """The same of a text with lines and tabs of our own."""
    return _CONTROLS.sub(lambda found: found[0] if found[0] in _KEPT_IN_TEXT else _escape(found), text)


def escaped_bytes(data: bytes) -> bytes:
    """The same of a record's bytes; those that are no UTF-8 are shown one by one."""
    return escaped(data.decode(errors="backslashreplace")).encode()


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
