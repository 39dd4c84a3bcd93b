"""DescribeClientQuotas: none, but for those that Kafka left."""

# mypy: allow-incomplete-defs, allow-untyped-calls, allow-untyped-defs

from __future__ import annotations

import pytest

from strandline.api import describe_client_quotas
from strandline.errors import ErrorCode, KafkaError
from strandline.metadata import records as r
from strandline.wire import messages

Component = messages.request(describe_client_quotas.KEY).ComponentData
EXACT, DEFAULT, ANY = range(3)


def component(kind, match_type=ANY, match=None):
    return Component(entity_type=kind, match_type=match_type, match=match)


async def described(broker, *components, strict=False, version=1):
    return await broker.call(describe_client_quotas, version, components=list(components), strict=strict)


@pytest.mark.parametrize("version", describe_client_quotas.VERSIONS)
async def test_there_are_none(broker, version):
    for components in ((), (component("user", EXACT, "a"),), (component("client-id", DEFAULT),)):
        reply = await described(broker, *components, version=version)
        assert (reply.error_code, reply.entries) == (0, [])


@pytest.mark.parametrize("version", describe_client_quotas.VERSIONS)
@pytest.mark.parametrize(
    ("components", "error", "message"),
    [
        ([component("x")], ErrorCode.UNSUPPORTED_VERSION, "Unsupported entity type x"),
        ([component("")], ErrorCode.INVALID_REQUEST, "Invalid empty entity type."),
        (
            [component("user"), component("user", EXACT, "a")],
            ErrorCode.INVALID_REQUEST,
            "Entity type user cannot appear more than once in the filter.",
        ),
        (
            [component("ip"), component("user")],
            ErrorCode.INVALID_REQUEST,
            "Invalid entity filter component combination. IP filter component should not be used with user or clientId "
            "filter component.",
        ),
        (
            [component("user", EXACT)],
            ErrorCode.INVALID_REQUEST,
            "Request specified MATCH_TYPE_EXACT, but set match string to null.",
        ),
        (
            [component("user", DEFAULT, "a")],
            ErrorCode.INVALID_REQUEST,
            "Request specified MATCH_TYPE_DEFAULT, but also specified a match string.",
        ),
        (
            [component("user", ANY, "a")],
            ErrorCode.INVALID_REQUEST,
            "Request specified MATCH_TYPE_SPECIFIED, but also specified a match string.",
        ),
        ([component("user", 9)], ErrorCode.INVALID_REQUEST, "Unknown match type 9"),
    ],
)
async def test_filters_that_make_no_sense(broker, version, components, error, message):
    reply = await described(broker, *components, version=version)
    assert (reply.error_code, reply.error_message, reply.entries) == (error, message, None)


async def test_what_kafka_left_is_described(broker):
    def quota(value, **entity):
        parts = tuple(
            r.EntityData(entity_type=kind.replace("_", "-"), entity_name=name) for kind, name in entity.items()
        )
        return r.ClientQuotaRecord(entity=parts, key="producer_byte_rate", value=value)

    broker.commit(
        [quota(1.0, user="a"), quota(2.0, user=None), quota(3.0, client_id="c", user="a"), quota(4.0, ip="::1")]
    )

    async def found(*components, strict=False):
        reply = await described(broker, *components, strict=strict)
        assert reply.error_code == 0
        return {value.value for entry in reply.entries for value in entry.values}

    assert await found() == {1, 2, 3, 4}
    assert await found(component("user", EXACT, "a")) == {1, 3}
    assert await found(component("user", EXACT, "a"), strict=True) == {1}
    assert await found(component("user", DEFAULT)) == {2}
    assert await found(component("user")) == {1, 2, 3}
    assert await found(component("user"), component("client-id", EXACT, "c"), strict=True) == {3}
    assert await found(component("ip", EXACT, "::2")) == set()
    assert await found(strict=True) == set()
    [entry] = (await described(broker, component("client-id"))).entries
    assert [(each.entity_type, each.entity_name) for each in entry.entity] == [("client-id", "c"), ("user", "a")]


@pytest.mark.parametrize("wrong", [component("x"), component(""), component("user"), component("user", EXACT)])
def test_nothing_behind_a_wrong_component_is_looked_at(wrong):
    """SEC-L2: a request may have a hundred thousand of them."""

    def components():
        yield component("user")
        yield wrong
        pytest.fail("the rest was looked at")

    with pytest.raises(KafkaError):
        describe_client_quotas.check_filter(components())
