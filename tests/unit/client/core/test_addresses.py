"""Bootstrap addresses and waiting times."""

# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

import pytest

from strandline.client.core.addresses import parse_addresses, show


def test_addresses():
    assert parse_addresses("a:1, [::1]:2,a:1") == [("a", 1), ("::1", 2)]
    assert parse_addresses(["a:1", "b:2"]) == [("a", 1), ("b", 2)]
    assert show(("::1", 2)) == "[::1]:2"


@pytest.mark.parametrize("text", ["", " , ", "a", "a:", ":1", "a:b", "a:0", "a:70000", "::1:9092", "a:-1", "a:٣"])
def test_what_is_no_address_is_refused(text):
    with pytest.raises(ValueError):
        parse_addresses(text)
