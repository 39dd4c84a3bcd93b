"""The C library's memory: the setting is taken where there is one, and asking for it never hurts."""

# mypy: disable-error-code="attr-defined"

from __future__ import annotations

import ctypes
import platform

import pytest

from strandline.runtime import memory
from strandline.runtime.memory import keep_freed_memory


def test_it_says_whether_the_setting_was_taken_and_may_be_asked_again() -> None:
    first = keep_freed_memory()
    assert isinstance(first, bool)
    assert keep_freed_memory() is first, "the same C library answers the same"


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="mallopt's settings are those of glibc")
def test_glibc_takes_it() -> None:
    assert keep_freed_memory(), "more than glibc allows was asked for"


@pytest.mark.parametrize("missing", [AttributeError, OSError])
def test_a_c_library_without_the_setting_is_no_error(monkeypatch: pytest.MonkeyPatch, missing: type[Exception]) -> None:
    def no_such_thing(name: str | None) -> ctypes.CDLL:
        raise missing("mallopt")

    monkeypatch.setattr(memory.ctypes, "CDLL", no_such_thing)
    assert keep_freed_memory() is False
