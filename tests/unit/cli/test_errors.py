# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

import errno

import pytest

from strandline.cli.errors import explain
from strandline.config.errors import ConfigError
from strandline.errors import ErrorCode, KafkaError


def test_an_error_of_the_system_is_one_line():
    assert explain(KafkaError(ErrorCode.INVALID_CONFIG, "a\nb")) == "a b (INVALID_CONFIG)"
    assert explain(ConfigError("no such key", "server.properties:3")) == "server.properties:3: no such key"
    assert explain(OSError(errno.ENOSPC, "No space left on device", "/data")).startswith(
        "/data: No space left on device; free"
    )


def test_a_bug_names_its_place():
    with pytest.raises(RuntimeError) as caught:
        raise RuntimeError("x")
    assert "(test_errors.py:" in explain(caught.value)
