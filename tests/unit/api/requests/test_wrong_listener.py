"""Requests for brokers on a controller's listener."""

# mypy: allow-incomplete-defs, allow-untyped-calls, allow-untyped-defs

from __future__ import annotations

import pytest

from strandline.api.requests.wrong_listener import ANSWERED_BYTES_MAX
from strandline.api.table import BROKER_APIS, CONTROLLER_APIS, REFUSED_ON_CONTROLLER
from strandline.errors import ErrorCode
from strandline.wire import messages
from strandline.wire.errors import MalformedRequest

METADATA, PRODUCE, LIST_GROUPS = 3, 0, 16


def test_it_is_whatever_only_brokers_serve():
    assert REFUSED_ON_CONTROLLER.keys() == BROKER_APIS.keys() - CONTROLLER_APIS.keys()
    assert {METADATA, PRODUCE, LIST_GROUPS} <= REFUSED_ON_CONTROLLER.keys()


def answered(broker, api_key, version, **fields):
    body = messages.encode_request(api_key, version, messages.request(api_key)(**fields))
    ctx = broker.context(api_key, version, "CONTROLLER")
    reply = REFUSED_ON_CONTROLLER[api_key].handle(memoryview(b"head" + body), ctx, 4)
    assert isinstance(reply, bytes)
    return messages.decode_response(api_key, version, reply)


@pytest.mark.parametrize("version", BROKER_APIS[LIST_GROUPS].versions)
async def test_an_answer_with_an_error_of_its_own(broker, version):
    assert answered(broker, LIST_GROUPS, version).error_code == ErrorCode.MISMATCHED_ENDPOINT_TYPE


@pytest.mark.parametrize("version", BROKER_APIS[METADATA].versions)
async def test_metadata_of_named_topics(broker, version):
    request = messages.request(METADATA)
    reply = answered(broker, METADATA, version, topics=[request.MetadataRequestTopic(name="t")])
    code = reply.error_code if version >= 13 else reply.topics[0].error_code
    assert (code, reply.brokers) == (ErrorCode.MISMATCHED_ENDPOINT_TYPE, [])


async def test_where_there_is_no_place_for_an_error_the_connection_ends_with_the_reason(broker):
    with pytest.raises(
        MalformedRequest, match=r"Metadata was sent to the listener CONTROLLER of a controller.*bootstrap\.servers"
    ):
        answered(broker, METADATA, 12, topics=None)
    assert answered(broker, METADATA, 13, topics=None).error_code == ErrorCode.MISMATCHED_ENDPOINT_TYPE


async def test_a_large_request_is_not_read_for_it(broker):
    request = messages.request(METADATA)
    topics = [request.MetadataRequestTopic(name="t" * 200)] * (ANSWERED_BYTES_MAX // 200)
    with pytest.raises(MalformedRequest, match=r"it is for brokers"):
        answered(broker, METADATA, 13, topics=topics)
