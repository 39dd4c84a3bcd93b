"""The table: every API once, in versions that exist, and never without an answer."""

from __future__ import annotations

import inspect
import random
from typing import Any

import pytest

from strandline.api.reply import Later
from strandline.api.table import ALL, API_VERSIONS, BROKER_APIS
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
            elif isinstance(reply, Later):
                delivered: list[Any] = []
                reply.deliver_to(delivered.append)
                [reply] = delivered
            if not isinstance(reply, bytes):
                reply = messages.encode_response(api.key, version, reply)
            decoded = messages.decode_response(api.key, version, reply)
            assert getattr(decoded, "throttle_time_ms", 0) == 0
