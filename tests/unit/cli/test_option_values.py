from __future__ import annotations

import click
import pytest

from strandline.cli.option_values import key_values


def test_pairs() -> None:
    assert key_values(("a=1", "b=x=y", "c="), "--config") == {"a": "1", "b": "x=y", "c": ""}
    with pytest.raises(click.UsageError, match="write it as key=value"):
        key_values(("a",), "--config")
