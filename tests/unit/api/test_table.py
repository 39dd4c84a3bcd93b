"""The table: every API once, in versions that exist, and never without an answer."""

# mypy: allow-incomplete-defs, allow-untyped-defs, disable-error-code="var-annotated"

from __future__ import annotations

import inspect
import random
from typing import Any

import pytest

from strandline.api.requests.pending_reply import PendingReply
from strandline.api.table import ALL, API_VERSIONS, BROKER_APIS, CONTROLLER_APIS
from strandline.errors import ErrorCode
from strandline.ids import ZERO_UUID, Uuid
from strandline.wire import messages
from strandline.wire.structs import Field, Struct

BITS = {"int8": 7, "int16": 15, "int32": 31, "int64": 63}
TEXTS = (
    "t",
    "u",
    "no",
    "",
    ".",
    "a.b",
    "a_b",
    "1",
    "2",
    "é 漢",
    "x" * 300,
    "__consumer_offsets",
    "retention.ms",
    "delete",
)


def test_every_api_has_a_name_and_versions_that_can_be_read_and_written():
    for api in ALL:
        key = api.key
        assert api.name.isidentifier()
        assert set(api.versions) <= set(messages.request_family(key).versions)
        assert set(api.versions) <= set(messages.response_family(key).versions)
    assert BROKER_APIS[API_VERSIONS].name == "ApiVersions"


FOR_BROKERS = {1, 52, 53, 54, 56, 58, 59, 62, 63, 67, 70, 73, 82}
"""What Kafka asks CLUSTER_ACTION for on a controller."""


def test_sec_t6_what_brokers_and_controllers_say_to_each_other_is_served_on_controllers_listeners_only():
    assert {api.key for api in ALL if api.cluster_action} == FOR_BROKERS
    assert not FOR_BROKERS & BROKER_APIS.keys() - {1}, "a follower's Fetch is looked at in follower_fetch.py"
    assert {key for key, api in CONTROLLER_APIS.items() if api.cluster_action} == FOR_BROKERS


@pytest.mark.parametrize("key", sorted(FOR_BROKERS))
async def test_sec_t6_one_that_may_not_act_as_a_broker_is_refused(broker, key):
    broker.create("t")
    before = broker.image, broker.quorum.leader, len(broker.committed)
    api, chance = CONTROLLER_APIS[key], random.Random(key)
    for version in api.versions:
        ctx = broker.context(key, version, "OTHER")
        request = nasty(messages.request_family(key).struct(version), chance, ZERO_UUID)
        try:
            reply = api.handle(request, ctx)
        except ConnectionError:
            assert (key, version < 7) == (1, True), "these versions have no place for an error"
            continue
        assert isinstance(reply, bytes)
        answer = messages.decode_response(key, version, reply)
        assert answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert (broker.image, broker.quorum.leader, len(broker.committed)) == before


def nasty(struct: Struct, chance: random.Random, topic_id: Uuid) -> Any:
    """A request of values at their bounds, of names that exist and names that can't."""

    def one(field: Field) -> Any:
        if field.struct is not None:
            return nasty(field.struct, chance, topic_id)
        if field.type in BITS:
            bound = 1 << BITS[field.type]
            return chance.choice((-bound, bound - 1, -2, -1, 0, 0, 1, 1, 2, 3, 4, 8))
        choices = {
            "uint16": (0, 1, 9092, 65535),
            "bool": (False, True),
            "float64": (0.0, -1.5, float("inf"), float("nan")),
            "bytes": (b"", b"x", bytes(99)),
            "string": TEXTS,
            "uuid": (ZERO_UUID, topic_id, Uuid(b"u" * 16)),
        }
        return chance.choice(choices[field.type])

    values = {}
    for field in struct.fields:
        if field.nullable and chance.random() < 0.2:
            values[field.name] = None
        else:
            values[field.name] = [one(field) for _ in range(chance.choice((0, 1, 4)))] if field.array else one(field)
    assert struct.cls is not None
    return struct.cls(**values)


@pytest.mark.parametrize("api", [api for api in ALL if not api.raw], ids=lambda api: api.name)
async def test_whatever_the_request_says_there_is_an_answer_that_can_be_written(broker, api):
    chance = random.Random(api.name)
    for version in api.versions:
        struct = messages.request_family(api.key).struct(version)
        for _ in range(60):
            if "t" not in broker.image.topics:
                topic_id = broker.create("t", (1,), (1,))
                broker.append("t", 1000, 1001)
            request = nasty(struct, chance, topic_id)
            sent = messages.decode_request(api.key, version, messages.encode_request(api.key, version, request))
            reply = api.handle(sent, broker.context(api.key, version))
            if inspect.isawaitable(reply):
                reply = await reply
            elif isinstance(reply, PendingReply):
                delivered: list[Any] = []
                reply.deliver_to(delivered.append)
                [reply] = delivered
            if not isinstance(reply, bytes):
                reply = messages.encode_response(api.key, version, reply)
            decoded = messages.decode_response(api.key, version, reply)
            assert getattr(decoded, "throttle_time_ms", 0) == 0
