"""The checks of `doctor` in the listeners of brokers: whether any client can act as a broker (SEC-T7).

Always true: brokers with the same result are one finding; a broker that does not report its configuration is none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from strandline.cli.access.connection import value_of
from strandline.cli.doctor.checks import OK, WARN, Finding
from strandline.client.flow.descriptions import ConfigResource, ResourceType
from strandline.errors import KafkaError

if TYPE_CHECKING:
    from strandline.client.blocking import Admin
    from strandline.client.core.cluster_metadata import BrokerMetadata

CHECK = "listeners"
Configs = Mapping[str, str | None]


def configs_of(admin: Admin, broker: BrokerMetadata) -> Configs:
    """The configuration of a broker; empty if it does not report it."""
    resource = ConfigResource(ResourceType.BROKER, str(broker.node_id))
    try:
        return {entry.name: entry.value for entry in value_of(admin.describe_configs([resource])[resource])}
    except KafkaError:
        return {}


def listeners(brokers: Mapping[int, Configs]) -> Iterator[Finding]:
    alike: dict[tuple[str, str, str], list[int]] = {}
    for broker_id, configs in brokers.items():
        if configs.get("listeners"):
            alike.setdefault(_found(configs), []).append(broker_id)
    for (level, found, advice), ids in alike.items():
        yield Finding(level, CHECK, f"broker {', '.join(map(str, ids))}: {found}", advice)


def _found(configs: Configs) -> tuple[str, str, str]:
    controllers = set(_names(configs.get("controller.listener.names")))
    serving = [name for name in _names(configs.get("listeners")) if name not in controllers]
    brokers = (configs.get("inter.broker.listener.name") or configs.get("security.inter.broker.protocol") or "").upper()
    previous = (configs.get("previous.inter.broker.listener.name") or "").upper()
    if len(serving) == 1:
        found = f"{serving[0]} serves both clients and brokers: any client can act as a broker there"
        return (
            WARN,
            found,
            "give brokers a separate listener that clients do not reach (inter.broker.listener.name)",
        )
    if previous:
        found = f"{previous} still serves brokers besides {brokers}: any client can act as a broker there"
        advice = (
            "once no broker uses it any more, restart without previous.inter.broker.listener.name; `up` leaves it out"
        )
        return WARN, found, advice
    return OK, f"brokers have a separate listener, {brokers}", ""


def _names(listeners: str | None) -> list[str]:
    """The names in a list of NAME://host:port, or NAME alone, separated by commas."""
    return [text.strip().partition("://")[0].upper() for text in (listeners or "").split(",") if text.strip()]
