"""The page and the table are one."""

# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

from pathlib import Path

import pytest

from strandline.api.reference import entry, reference
from strandline.api.table import ALL, BROKER_APIS

PAGE = Path(__file__).parents[3] / "docs" / "apis.md"


def test_the_page_is_what_the_table_prints():
    assert PAGE.read_text() == reference(), "make it again: python -m strandline.api.reference > docs/apis.md"


@pytest.mark.parametrize("api", ALL, ids=lambda api: api.name)
def test_what_a_file_says_of_itself_is_what_it_serves(api):
    told = entry(api)
    first, last = api.versions[0], api.versions[-1]
    assert (told.name.removesuffix(" on a controller"), told.key) == (api.name, api.key)
    assert told.versions == (str(first) if first == last else f"{first}-{last}")
    assert told.left_out.endswith(".")


def test_a_docstring_that_is_not_in_the_form_is_an_error():
    with pytest.raises(ValueError, match="the docstring of API 3"):
        entry(BROKER_APIS[3]._replace(doc="Metadata: brokers and topics."))
