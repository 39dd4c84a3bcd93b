"""No key is honoured on paper only."""

from __future__ import annotations

import re
from pathlib import Path

from strandline.config import properties
from strandline.config.broker import BROKER
from strandline.config.key import Treatment
from strandline.config.topic import TOPIC

SOURCE = Path(properties.__file__).parents[1]
DERIVED = {
    *("listeners", "advertised.listeners", "listener.security.protocol.map", "inter.broker.listener.name"),
    *("previous.inter.broker.listener.name",),
    *("security.inter.broker.protocol", "controller.listener.names", "process.roles", "node.id", "broker.id"),
    *("controller.quorum.voters", "controller.quorum.bootstrap.servers", "log.dirs", "log.dir", "metadata.log.dir"),
}
"""Worked out into attributes with names of their own."""


def used_names() -> set[str]:
    """Every name that stands in the code outside of the configuration."""
    files = (path for path in SOURCE.rglob("*.py") if SOURCE / "config" not in path.parents)
    return {name for path in files for name in re.findall(r"\w+", path.read_text())}


def test_every_honoured_broker_key_is_read_somewhere() -> None:
    through_topics = {name for key in TOPIC.values() for name, _ in key.synonyms}
    used = used_names()
    for name, key in BROKER.items():
        if key.treatment is not Treatment.HONOURED or name in DERIVED | through_topics or name.startswith("ssl."):
            continue
        assert name.replace(".", "_") in used, name
