"""Topic keys and the broker keys behind them."""

from __future__ import annotations

from strandline.config.broker import BROKER
from strandline.config.key import Where
from strandline.config.topic import TOPIC


def test_every_synonym_is_a_broker_key_of_the_same_kind() -> None:
    for key in TOPIC.values():
        for name, factor in key.synonyms:
            assert factor != 1 or BROKER[name].type is key.type, (key.name, name)


def test_the_last_synonym_has_the_topic_keys_default() -> None:
    for key in TOPIC.values():
        if key.synonyms:
            name, factor = key.synonyms[-1]
            default = BROKER[name].default_value
            assert (default * factor if factor != 1 and isinstance(default, int) else default) == key.default, key.name


def test_all_are_marked_as_topic_keys() -> None:
    assert {key.where for key in TOPIC.values()} == {Where.TOPIC}
    assert {key.where for key in BROKER.values()} == {Where.BROKER}
