"""IncrementalAlterConfigs: one key at a time."""

# mypy: allow-incomplete-defs, allow-untyped-calls, allow-untyped-defs, disable-error-code="var-annotated"

from __future__ import annotations

import pytest

from strandline.api import incremental_alter_configs
from strandline.errors import ErrorCode
from strandline.wire import messages

from .conftest import registration

Request = messages.request(44)
TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)


def resource(resource_type, name, *changes):
    return Request.AlterConfigsResource(
        resource_type=resource_type,
        resource_name=name,
        configs=[
            Request.AlterableConfig(config_operation=operation, name=key, value=value)
            for operation, key, value in changes
        ],
    )


async def alter(broker, version, *resources, **fields):
    reply = await broker.call(incremental_alter_configs, version, resources=list(resources), **fields)
    assert [(r.resource_type, r.resource_name) for r in reply.responses] == [
        (r.resource_type, r.resource_name) for r in resources
    ]
    return [response.error_code for response in reply.responses]


@pytest.mark.parametrize("version", incremental_alter_configs.VERSIONS)
async def test_set_delete_append_subtract(broker, version):
    broker.create("t", configs={"retention.ms": "5", "segment.bytes": "2000000"})
    assert await alter(
        broker,
        version,
        resource(
            TOPIC,
            "t",
            (SET, "max.message.bytes", "9"),
            (DELETE, "retention.ms", None),
            (APPEND, "cleanup.policy", "compact"),
        ),
    ) == [0]
    assert broker.image.config(TOPIC, "t") == {
        "segment.bytes": "2000000",
        "max.message.bytes": "9",
        "cleanup.policy": "delete,compact",
    }
    assert await alter(broker, version, resource(TOPIC, "t", (SUBTRACT, "cleanup.policy", "delete"))) == [0]
    assert broker.image.config(TOPIC, "t")["cleanup.policy"] == "compact"


async def test_brokers(broker):
    assert await alter(
        broker,
        1,
        resource(BROKER, "", (SET, "log.retention.ms", "7")),
        resource(BROKER, "1", (SET, "log.retention.ms", "8")),
        resource(BROKER, "2", (SET, "log.retention.ms", "8")),
        resource(BROKER, "one", (SET, "log.retention.ms", "8")),
    ) == [0, 0, ErrorCode.INVALID_REQUEST, ErrorCode.INVALID_REQUEST]
    assert dict(broker.image.configs) == {
        (BROKER, ""): {"log.retention.ms": "7"},
        (BROKER, "1"): {"log.retention.ms": "8"},
    }
    assert await alter(broker, 1, resource(BROKER, "1", (SET, "node.id", "8"))) == [ErrorCode.INVALID_REQUEST]
    assert await alter(broker, 1, resource(BROKER, "1", (SET, "log.retention.ms", "soon"))) == [
        ErrorCode.INVALID_REQUEST
    ]


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ([(SET, "retention.ms", "soon")], ErrorCode.INVALID_CONFIG),
        ([(SET, "retention.mss", "5")], ErrorCode.INVALID_CONFIG),
        ([(APPEND, "retention.ms", "5")], ErrorCode.INVALID_CONFIG),
        ([(SET, "retention.ms", None)], ErrorCode.INVALID_REQUEST),
        ([(APPEND, "cleanup.policy", None)], ErrorCode.INVALID_REQUEST),
        ([(SET, "retention.ms", "1"), (DELETE, "retention.ms", None)], ErrorCode.INVALID_REQUEST),
        ([(9, "retention.ms", "1")], ErrorCode.INVALID_REQUEST),
        ([(-1, "retention.ms", "1")], ErrorCode.INVALID_REQUEST),
        ([], ErrorCode.NONE),
        ([(DELETE, "retention.ms", None)], ErrorCode.NONE),
    ],
)
async def test_changes_of_a_topic(broker, changes, error):
    broker.create("t")
    broker.create("other")
    good = resource(TOPIC, "other", (SET, "retention.ms", "4"))
    assert await alter(broker, 1, resource(TOPIC, "t", *changes), good) == [error, 0]
    assert dict(broker.image.configs) == {(TOPIC, "other"): {"retention.ms": "4"}}


async def test_resources_that_cannot_be_altered(broker):
    broker.create("t")
    change = (SET, "retention.ms", "5")
    twice = resource(TOPIC, "t", change)
    assert await alter(
        broker,
        1,
        resource(TOPIC, "no", change),
        resource(TOPIC, "", change),
        resource(LOGGER, "1", (SET, "root", "DEBUG")),
        resource(METRICS, "m", change),
        resource(GROUP, "", change),
        resource(77, "x", change),
        twice,
        twice,
    ) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, *[ErrorCode.INVALID_REQUEST] * 7]
    assert not broker.image.configs


async def test_any_broker_takes_the_configuration_of_any_other(broker):
    """The reassignment tool throttles all brokers by way of one; Kafka's own tools ask the right one."""
    broker.commit([registration(2)])
    changes = [(SET, "leader.replication.throttled.rate", "1000")]
    wanted = [resource(BROKER, name, *changes) for name in ("1", "2", "3", "x", "02")]
    assert await alter(broker, 1, *wanted) == [0, 0, *[ErrorCode.INVALID_REQUEST] * 3]
    assert broker.image.config(BROKER, "2") == {"leader.replication.throttled.rate": "1000"}
    assert not broker.image.config(BROKER, "3")


async def test_validating_changes_nothing(broker):
    broker.create("t")
    assert await alter(broker, 1, resource(TOPIC, "t", (SET, "retention.ms", "5")), validate_only=True) == [0]
    assert not broker.image.configs


async def test_groups(broker):
    session, heartbeat = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"
    assert await alter(broker, 1, resource(GROUP, "g", (SET, session, "60000"), (SET, heartbeat, "15000"))) == [0]
    assert broker.image.config(GROUP, "g") == {session: "60000", heartbeat: "15000"}
    for change in (
        (SET, session, "60001"),
        (SET, session, "44999"),
        (SET, session, "long"),
        (SET, heartbeat, "4999"),
        (SET, "retention.ms", "5"),
        (SET, "share.session.timeout.ms", "50000"),
        (APPEND, session, "50000"),
    ):
        assert await alter(broker, 1, resource(GROUP, "g", change)) == [ErrorCode.INVALID_CONFIG], change
    assert await alter(broker, 1, resource(GROUP, "g", (DELETE, session, None))) == [0]
    assert broker.image.config(GROUP, "g") == {heartbeat: "15000"}


async def test_what_has_no_effect_is_stored_and_logged(broker):
    broker.create("t")
    broker.create("u")
    said = []
    broker.parts.warn = said.append
    reply = await altered_topics(broker, t={"preallocate": "true", "retention.ms": "5"}, u={"local.retention.ms": "7"})
    assert [answer.error_code for answer in reply.responses] == [0, 0]
    assert broker.image.config(2, "t") == {"preallocate": "true", "retention.ms": "5"}
    assert broker.image.config(2, "u") == {"local.retention.ms": "7"}
    assert [sentence.partition(" has no effect: ")[0] for sentence in said] == [
        "topic t: preallocate=true",
        "topic u: local.retention.ms=7",
    ]
    await altered_topics(broker, validate_only=True, t={"preallocate": "false"}, u={"preallocate": "true"})
    assert len(said) == 2, "what was only looked at was not stored"


async def altered_topics(broker, *, validate_only=False, **topics):
    request = messages.request(incremental_alter_configs.KEY)
    return await broker.call(
        incremental_alter_configs,
        1,
        resources=[
            request.AlterConfigsResource(
                resource_type=2,
                resource_name=topic,
                configs=[
                    request.AlterableConfig(name=name, config_operation=0, value=value)
                    for name, value in configs.items()
                ],
            )
            for topic, configs in topics.items()
        ],
        validate_only=validate_only,
    )
