"""Which version of an API two sides speak."""

from __future__ import annotations

import pytest

from strandline.client.core.versions import ApiVersions, FinalizedFeatures
from strandline.client.errors import UnsupportedApi

INIT_PRODUCER_ID, END_TXN = 22, 26


def of(**served: range) -> ApiVersions:
    keys = {"init": INIT_PRODUCER_ID, "end": END_TXN}
    return ApiVersions({keys[name]: versions for name, versions in served.items()}, FinalizedFeatures(-1, {}))


def test_the_newest_in_common() -> None:
    versions = of(end=range(4))
    assert versions.pick(END_TXN) == 3
    assert versions.pick(END_TXN, 2) == 2
    assert of(end=range(99)).pick(END_TXN) == 5
    assert (versions.serves(END_TXN), versions.serves(INIT_PRODUCER_ID)) == (True, False)
    with pytest.raises(UnsupportedApi, match="API 22: we speak versions 0-6, the broker does not serve it"):
        versions.pick(INIT_PRODUCER_ID)


def test_txn_q1_a_version_that_may_still_change_is_spoken_only_if_it_is_named() -> None:
    versions = of(init=range(7))
    assert versions.pick(INIT_PRODUCER_ID) == 5
    assert versions.pick(INIT_PRODUCER_ID, 6) == 6


def test_an_older_version_than_the_message_needs_is_none() -> None:
    assert of(init=range(7)).pick(INIT_PRODUCER_ID, 6, 6) == 6
    with pytest.raises(UnsupportedApi, match="API 22: we speak versions 6-6, the broker serves versions 0-5"):
        of(init=range(6)).pick(INIT_PRODUCER_ID, 6, 6)
    with pytest.raises(UnsupportedApi):
        of(end=range(3, 5)).pick(END_TXN, 2)
