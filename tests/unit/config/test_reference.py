"""The page and the table are one."""

from __future__ import annotations

from pathlib import Path

from strandline.config.broker import BROKER
from strandline.config.group import GROUP
from strandline.config.reference import reference
from strandline.config.topic import TOPIC

PAGE = Path(__file__).parents[3] / "docs" / "config.md"


def test_the_page_is_what_the_table_prints() -> None:
    assert PAGE.read_text() == reference(), "make it again: python -m strandline.config.reference > docs/config.md"


def test_every_key_is_on_it() -> None:
    page = reference()
    assert [name for name in (*BROKER, *TOPIC, *GROUP) if f"`{name}`" not in page] == []
