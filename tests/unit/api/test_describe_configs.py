"""DescribeConfigs: what is set, and by whom."""

# mypy: allow-incomplete-defs, allow-untyped-calls, allow-untyped-defs

from __future__ import annotations

import pytest

from strandline.api import describe_configs
from strandline.config.layers import ConfigSource
from strandline.config.types import Type
from strandline.errors import ErrorCode
from strandline.metadata import records as r
from strandline.wire import messages

Request = messages.request(32)
TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32


async def describe(broker, version, resource_type, name, keys=None, **fields):
    resource = Request.DescribeConfigsResource(resource_type=resource_type, resource_name=name, configuration_keys=keys)
    reply = await broker.call(describe_configs, version, resources=[resource], **fields)
    [result] = reply.results
    assert (result.resource_type, result.resource_name) == (resource_type, name)
    return result


def set_config(broker, resource_type, name, **values):
    broker.commit(
        [
            r.ConfigRecord(resource_type=resource_type, resource_name=name, name=key.replace("_", "."), value=value)
            for key, value in values.items()
        ]
    )


@pytest.mark.parametrize("version", describe_configs.VERSIONS)
async def test_a_topic_in_every_version(broker, version):
    broker.create("t", configs={"segment.bytes": "2000000"})
    result = await describe(broker, version, TOPIC, "t", include_synonyms=True)
    assert (result.error_code, result.error_message) == (0, None)
    by_name = {config.name: config for config in result.configs}
    assert len(by_name) > 20
    segment = by_name["segment.bytes"]
    assert (segment.value, segment.config_source, segment.read_only) == ("2000000", ConfigSource.TOPIC_CONFIG, False)
    assert [(s.name, s.value, s.source) for s in segment.synonyms] == [
        ("segment.bytes", "2000000", ConfigSource.TOPIC_CONFIG),
        ("log.segment.bytes", "1073741824", ConfigSource.DEFAULT_CONFIG),
    ]
    assert by_name["retention.ms"].config_source == ConfigSource.DEFAULT_CONFIG
    if version >= 3:
        assert (segment.config_type, segment.documentation) == (Type.INT, None)


async def test_synonyms_and_documentation_only_when_asked_for(broker):
    broker.create("t")
    plain = (await describe(broker, 4, TOPIC, "t", ["segment.bytes"])).configs
    full = (
        await describe(broker, 4, TOPIC, "t", ["segment.bytes"], include_synonyms=True, include_documentation=True)
    ).configs
    assert (plain[0].synonyms, plain[0].documentation) == ([], None)
    assert full[0].synonyms
    assert len(full[0].documentation) > 10


async def test_only_the_named_keys(broker):
    broker.create("t")
    some = await describe(broker, 4, TOPIC, "t", ["retention.ms", "no.such.key", "segment.bytes"])
    assert {config.name for config in some.configs} == {"retention.ms", "segment.bytes"}
    everything = await describe(broker, 4, TOPIC, "t", [])
    assert len(everything.configs) > 20


async def test_this_broker_and_the_default_of_all(broker):
    set_config(broker, BROKER, "", log_retention_ms="7")
    set_config(broker, BROKER, "1", log_segment_bytes="2000000")
    broker.create("t")
    own = {config.name: config for config in (await describe(broker, 4, BROKER, "1")).configs}
    assert (own["log.segment.bytes"].value, own["log.segment.bytes"].config_source) == (
        "2000000",
        ConfigSource.DYNAMIC_BROKER_CONFIG,
    )
    assert own["log.retention.ms"].config_source == ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
    assert (own["node.id"].value, own["node.id"].read_only) == ("1", True)
    assert own["node.id"].config_source == ConfigSource.STATIC_BROKER_CONFIG
    default = (await describe(broker, 4, BROKER, "")).configs
    assert [(config.name, config.value) for config in default] == [("log.retention.ms", "7")]
    topic = {config.name: config for config in (await describe(broker, 4, TOPIC, "t")).configs}
    assert topic["retention.ms"].value == "7", "a topic inherits it"


async def test_a_password_is_never_told(make_broker):
    broker = make_broker(ssl_key_password="secret")
    for version in describe_configs.VERSIONS:
        result = await describe(broker, version, BROKER, "1", ["ssl.key.password"], include_synonyms=True)
        assert [(config.value, config.is_sensitive) for config in result.configs] == [(None, True)]
        assert "secret" not in repr(result)


@pytest.mark.parametrize(
    ("resource_type", "name", "error"),
    [
        (TOPIC, "no", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC, "bad name", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (TOPIC, "", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (BROKER, "2", ErrorCode.INVALID_REQUEST),
        (BROKER, "one", ErrorCode.INVALID_REQUEST),
        (LOGGER, "", ErrorCode.INVALID_REQUEST),
        (LOGGER, "2", ErrorCode.INVALID_REQUEST),
        (LOGGER, "1", ErrorCode.NONE),
        (METRICS, "m", ErrorCode.NONE),
        (METRICS, "", ErrorCode.INVALID_REQUEST),
        (GROUP, "", ErrorCode.INVALID_REQUEST),
        (0, "x", ErrorCode.INVALID_REQUEST),
        (99, "x", ErrorCode.INVALID_REQUEST),
        (-1, "x", ErrorCode.INVALID_REQUEST),
    ],
)
async def test_other_resources(broker, resource_type, name, error):
    result = await describe(broker, 4, resource_type, name)
    assert (result.error_code, result.configs) == (error, [])
    assert bool(result.error_message) == bool(error)


async def test_a_group_has_what_its_broker_says_or_what_it_was_given(broker):
    set_config(broker, GROUP, "g", consumer_session_timeout_ms="50000")
    result = await describe(broker, 4, GROUP, "g", include_synonyms=True)
    by_name = {config.name: config for config in result.configs}
    assert {name: config.value for name, config in by_name.items()} == {
        "consumer.assignment.interval.ms": "1000",
        "consumer.heartbeat.interval.ms": "5000",
        "consumer.session.timeout.ms": "50000",
    }
    session = by_name["consumer.session.timeout.ms"]
    assert (session.config_source, session.read_only) == (ConfigSource.GROUP_CONFIG, False)
    assert [(s.name, s.value, s.source) for s in session.synonyms] == [
        ("consumer.session.timeout.ms", "50000", ConfigSource.GROUP_CONFIG),
        ("group.consumer.session.timeout.ms", "45000", ConfigSource.DEFAULT_CONFIG),
    ]
    assert by_name["consumer.heartbeat.interval.ms"].config_source == ConfigSource.DEFAULT_CONFIG
    [only] = (await describe(broker, 4, GROUP, "other", ["consumer.session.timeout.ms"])).configs
    assert only.value == "45000"
