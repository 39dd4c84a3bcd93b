# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

import pytest

from strandline.cli.kafka_tools.kafka_configs import config_line
from strandline.client.flow.descriptions import ConfigEntry

SERVER = ("--bootstrap-server", "127.0.0.1:9092")


def test_a_line_names_value_and_synonyms():
    synonyms = (("retention.ms", "5", 1), ("log.retention.ms", None, 4))
    entry = ConfigEntry("retention.ms", "5", 1, False, False, 0, None, synonyms)
    assert config_line(entry) == (
        "  retention.ms=5 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:retention.ms=5, "
        "STATIC_BROKER_CONFIG:log.retention.ms=null}"
    )
    assert config_line(entry._replace(value=None, is_sensitive=True, synonyms=())) == (
        "  retention.ms=null sensitive=true synonyms={}"
    )


@pytest.mark.parametrize(
    ("flags", "code", "reason"),
    [
        (("--entity-type", "topics"), 2, "exactly one action"),
        (("--describe",), 2, "Exactly one of"),
        (("--alter", "--topic", "t"), 2, "At least one of --add-config"),
        (("--alter", "--entity-type", "topics", "--add-config", "a=1"), 2, "an entity name must be specified"),
        (("--describe", "--entity-type", "users"), 1, "Invalid entity type users"),
        (("--describe", "--broker", "x"), 1, "must be a valid integer broker id"),
        (("--alter", "--topic", "t", "--add-config", "a"), 2, "write it as key=value"),
    ],
)
def test_flags_are_checked_before_anybody_is_asked(call, flags, code, reason):
    ran = call("kafka-configs", *SERVER, *flags)
    assert ran.code == code
    assert reason in ran.err


def test_ours_wants_one_target(call):
    assert call("configs", "describe").code == 2
    assert call("configs", "describe", "--topic", "t", "--default").code == 2
