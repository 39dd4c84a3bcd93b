"""ListConfigResources: what can be configured."""

# mypy: allow-incomplete-defs, allow-untyped-calls, allow-untyped-defs

from __future__ import annotations

from strandline.api import list_config_resources
from strandline.errors import ErrorCode
from strandline.metadata import records as r

from .conftest import registration

TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32


async def listed(broker, version, *resource_types):
    fields = {"resource_types": list(resource_types)} if version else {}
    reply = await broker.call(list_config_resources, version, **fields)
    assert reply.error_code == 0
    return [(resource.resource_type, resource.resource_name) for resource in reply.config_resources]


async def test_the_types_that_are_asked_for(broker):
    broker.commit(
        [
            registration(2, fenced=True),
            r.ConfigRecord(resource_type=METRICS, resource_name="m", name="interval.ms", value="100"),
            r.ConfigRecord(resource_type=GROUP, resource_name="g", name="consumer.session.timeout.ms", value="50000"),
        ]
    )
    broker.create("t")
    assert await listed(broker, 0) == [(METRICS, "m")]
    assert await listed(broker, 1, TOPIC) == [(TOPIC, "t")]
    assert await listed(broker, 1, BROKER, GROUP) == [(GROUP, "g"), (BROKER, "1"), (BROKER, "2")]
    assert await listed(broker, 1) == [
        (GROUP, "g"),
        (METRICS, "m"),
        (LOGGER, "1"),
        (LOGGER, "2"),
        (BROKER, "1"),
        (BROKER, "2"),
        (TOPIC, "t"),
    ]


async def test_types_that_do_not_exist(broker):
    for resource_type in (0, 1, 99, -1):
        reply = await broker.call(list_config_resources, 1, resource_types=[TOPIC, resource_type])
        assert (reply.error_code, reply.config_resources) == (ErrorCode.UNSUPPORTED_VERSION, [])
