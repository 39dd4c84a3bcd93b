"""ApiVersions: what a client learns before it knows anything."""

# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

import pytest

from strandline.api import api_versions
from strandline.api.table import BROKER_APIS, unsupported_version
from strandline.errors import ErrorCode
from strandline.wire import messages

SOFTWARE = {"client_software_name": "librdkafka", "client_software_version": "2.3.0"}


@pytest.mark.parametrize("version", api_versions.VERSIONS)
async def test_every_api_is_advertised_with_its_versions(broker, version):
    reply = await broker.call(api_versions, version, **(SOFTWARE if version >= 3 else {}))
    ranges = {key.api_key: (key.min_version, key.max_version) for key in reply.api_keys}
    assert set(ranges) == set(BROKER_APIS)
    assert ranges[0] == (0, 13), "older librdkafka looks for Produce 0 before it compresses"
    assert ranges[1] == (4, 18)
    assert ranges[3] == (0, 13)
    assert reply.error_code == 0


async def test_features_come_from_the_metadata_and_the_lowest_level_of_zero_only_since_v4(broker):
    three, four = [await broker.call(api_versions, version, **SOFTWARE) for version in (3, 4)]
    assert [feature.name for feature in three.supported_features] == ["metadata.version"]
    assert [(f.name, f.min_version, f.max_version) for f in four.supported_features] == [
        ("eligible.leader.replicas.version", 0, 1),
        ("group.version", 0, 1),
        ("kraft.version", 0, 1),
        ("metadata.version", 7, 30),
        ("transaction.version", 0, 2),
    ]
    assert [(f.name, f.min_version_level, f.max_version_level) for f in four.finalized_features] == [
        ("metadata.version", 30, 30)
    ]
    assert four.finalized_features_epoch == broker.image.end_offset - 1 >= 0


@pytest.mark.parametrize("name", ["", "-a", "a-", "a b", "a\n", "é"])
async def test_a_client_that_gives_no_proper_name_is_refused(broker, name):
    reply = await broker.call(api_versions, 3, client_software_name=name, client_software_version="1")
    assert (reply.error_code, reply.api_keys) == (ErrorCode.INVALID_REQUEST, [])


def test_a_version_from_the_future_gets_our_own_range_in_version_0():
    reply = messages.decode_response(18, 0, messages.encode_response(18, 0, unsupported_version()))
    assert reply.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert [(key.api_key, key.min_version, key.max_version) for key in reply.api_keys] == [(18, 0, 4)]
