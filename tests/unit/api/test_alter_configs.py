"""AlterConfigs: the overrides as a whole."""

# mypy: allow-incomplete-defs, allow-untyped-calls, allow-untyped-defs

from __future__ import annotations

import pytest

from strandline.api import alter_configs
from strandline.errors import ErrorCode, KafkaError
from strandline.wire import messages

Request = messages.request(33)
TOPIC, BROKER, LOGGER = 2, 4, 8


def resource(resource_type, name, *configs):
    return Request.AlterConfigsResource(
        resource_type=resource_type,
        resource_name=name,
        configs=[Request.AlterableConfig(name=key, value=value) for key, value in configs],
    )


@pytest.mark.parametrize("version", alter_configs.VERSIONS)
async def test_what_is_not_named_is_gone(broker, version):
    broker.create("t", configs={"retention.ms": "5", "segment.bytes": "2000000"})
    reply = await broker.call(
        alter_configs, version, resources=[resource(TOPIC, "t", ("retention.ms", "6"), ("max.message.bytes", "9"))]
    )
    assert [(r.error_code, r.error_message, r.resource_type, r.resource_name) for r in reply.responses] == [
        (0, None, TOPIC, "t")
    ]
    assert broker.image.config(TOPIC, "t") == {"retention.ms": "6", "max.message.bytes": "9"}


async def test_validating_changes_nothing(broker):
    broker.create("t")
    reply = await broker.call(
        alter_configs, 2, resources=[resource(TOPIC, "t", ("retention.ms", "6"))], validate_only=True
    )
    assert reply.responses[0].error_code == 0
    assert broker.image.config(TOPIC, "t") == {}


async def test_each_resource_has_its_own_answer(broker):
    for name in ("good", "bad", "null", "twice"):
        broker.create(name)
    reply = await broker.call(
        alter_configs,
        2,
        resources=[
            resource(TOPIC, "good", ("retention.ms", "6")),
            resource(TOPIC, "bad", ("retention.ms", "x")),
            resource(TOPIC, "null", ("retention.ms", None)),
            resource(TOPIC, "twice", ("retention.ms", "1"), ("retention.ms", "2")),
            resource(TOPIC, "no"),
            resource(TOPIC, ""),
            resource(LOGGER, "1", ("root", "INFO")),
            resource(0, "x"),
            resource(BROKER, "2"),
            resource(BROKER, "1", ("node.id", "5")),
        ],
    )
    assert [r.error_code for r in reply.responses] == [
        ErrorCode.NONE,
        ErrorCode.INVALID_CONFIG,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.INVALID_REQUEST,
    ]
    assert dict(broker.image.configs) == {(TOPIC, "good"): {"retention.ms": "6"}}


async def test_a_resource_that_is_named_twice_is_not_changed(broker):
    broker.create("t")
    reply = await broker.call(
        alter_configs,
        2,
        resources=[resource(TOPIC, "t", ("retention.ms", "6")), resource(TOPIC, "t", ("retention.ms", "7"))],
    )
    assert [r.error_code for r in reply.responses] == [ErrorCode.INVALID_REQUEST] * 2
    assert broker.image.config(TOPIC, "t") == {}


async def test_no_controller(broker):
    broker.create("t")
    broker.controller_error = KafkaError(ErrorCode.NOT_CONTROLLER)
    reply = await broker.call(alter_configs, 2, resources=[resource(TOPIC, "t")])
    assert [r.error_code for r in reply.responses] == [ErrorCode.NOT_CONTROLLER]
