"""What may be set, and what is said about what may not."""

from __future__ import annotations

import pytest

from strandline.config.broker import BROKER
from strandline.config.errors import ConfigError
from strandline.config.key import Treatment, refused, table
from strandline.config.topic import TOPIC
from strandline.config.types import BOOLEAN, PASSWORD


def test_a_refused_key_may_be_spelled_out_with_its_default() -> None:
    key = BROKER["controller.quorum.auto.join.enable"]
    assert key.accept("false") is False
    with pytest.raises(ConfigError, match=r"controller.quorum.auto.join.enable=true is not supported: .* Remove it."):
        key.accept("true")


def test_an_ignored_key_warns_unless_it_asks_for_nothing() -> None:
    key = TOPIC["preallocate"]
    assert key.accept("true") is True
    assert (key.warning("true") or "").startswith("preallocate=true has no effect: Segments grow")
    assert key.warning("false") is None
    assert TOPIC["retention.ms"].warning("5") is None


def test_a_refused_key_without_a_default_is_never_accepted() -> None:
    with pytest.raises(ConfigError, match=r"client.quota.callback.class"):
        BROKER["client.quota.callback.class"].accept("org.example.Quotas")


def test_a_replica_selector_is_one_of_the_built_in_ones() -> None:
    key = BROKER["replica.selector.class"]
    name = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
    assert key.accept(name) == name
    with pytest.raises(ConfigError, match=r"replica.selector.class"):
        key.accept("org.example.Nearest")


def test_a_refused_secret_is_not_repeated() -> None:
    (key,) = refused("No.", [("some.password", PASSWORD, None, None, BROKER["node.id"].importance)])
    with pytest.raises(ConfigError) as caught:
        key.accept("hunter2")
    assert "hunter2" not in str(caught.value)


def test_no_name_is_declared_twice() -> None:
    keys = refused("No.", [("twice", BOOLEAN, False, None, BROKER["node.id"].importance)])
    with pytest.raises(AssertionError, match=r"twice is declared twice"):
        table(keys, keys)


def test_every_key_has_one_sentence() -> None:
    for key in BROKER.values():
        assert key.doc.endswith("."), key.name
        assert "\n" not in key.doc


def test_every_default_keeps_its_own_bounds() -> None:
    for key in BROKER.values():
        if key.check is not None and key.default_value is not None:
            key.check.check(key.name, key.default_value)


def test_refused_keys_cannot_change_at_run_time() -> None:
    assert {key.dynamic.value for key in BROKER.values() if key.treatment is Treatment.REFUSED} == {"read-only"}
