# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

import pytest

from strandline.api.requests.error_reply import errors_in
from strandline.api.requests.request_stats import BOUNDS_S, ApiStats, RequestStats
from strandline.wire import messages


@pytest.mark.parametrize(("took_s", "bucket"), [(0.0, 0), (0.0001, 0), (0.00011, 1), (30.0, 16), (31.0, 17)])
def test_a_time_is_counted_up_to_the_end_of_its_bucket(took_s, bucket):
    stats = ApiStats()
    stats.answered(took_s)
    assert [index for index, count in enumerate(stats.buckets) if count] == [bucket]
    assert (stats.count, stats.total_s) == (1, took_s)


def test_bounds_rise():
    assert sorted(set(BOUNDS_S)) == list(BOUNDS_S)


def test_requests_of_one_api_and_version_are_counted_together():
    stats = RequestStats()
    assert stats.of(0, 9) is stats.of(0, 9) is not stats.of(0, 10)


def test_none_is_no_error():
    stats = RequestStats()
    for code in (0, 6, 6, 3):
        stats.failed(1, code)
    assert stats.errors == {(1, 6): 2, (1, 3): 1}


def test_errors_stand_anywhere_in_a_message():
    Response = messages.response(19)
    topics = [
        Response.CreatableTopicResult(name=name, error_code=code) for name, code in (("a", 0), ("b", 36), ("c", 17))
    ]
    assert list(errors_in(Response(topics=topics))) == [36, 17]
    assert list(errors_in(messages.response(22)(error_code=15))) == [15]
    assert list(errors_in(Response())) == list(errors_in(b"")) == []
