"""What `doctor` looks at in groups, and in the cleaners that keep their offsets small.

Always true: a group that rebalances is looked at twice, and only one that has not come to rest in between is a finding; a cleaner
that can't be asked is none.
"""

from __future__ import annotations

import http.client
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from strandline.cli.access.connection import value_of
from strandline.cli.doctor.checks import OK, WARN, Finding
from strandline.cli.groups.group_admin import REBALANCING, list_groups
from strandline.cli.monitoring import endpoints
from strandline.client.flow.described import ConfigResource, ResourceType
from strandline.errors import KafkaError

if TYPE_CHECKING:
    from strandline.client.blocking import Admin
    from strandline.client.core.cluster import Broker
    from strandline.client.flow.group_described import GroupListing

REBALANCE_S = 5.0
"""Longer than a rebalance takes whose members all answer."""
METRICS_BYTES_MAX = 64 * 1024 * 1024
UNCLEANABLE = re.compile(r"^kafka_log_logcleanermanager_uncleanable_partitions_count(?:\{.*\})? (\S+)$", re.MULTILINE)


def groups(admin: Admin, sleep: Callable[[float], None] = time.sleep) -> Iterator[Finding]:
    """How many there are, and which of them do not come to rest."""
    try:
        found = list_groups(admin)
        busy = {group.group_id for group in found if group.state in REBALANCING}
        if busy:
            sleep(REBALANCE_S)
            found = list_groups(admin)
    except KafkaError as error:
        yield Finding(
            WARN, "groups", f"can't be listed: {error.message}", "is every broker well that coordinates some?"
        )
        return
    yield Finding(OK, "groups", _summary(found))
    for group in found:
        if group.group_id in busy and group.state in REBALANCING:
            told = f"{group.group_id} is {group.state}, as it was {REBALANCE_S:.0f} s ago"
            advice = (
                "it waits for a member that does not answer, until its max.poll.interval.ms or session is over; "
                f"`strandline groups describe {group.group_id} --members` shows them"
            )
            yield Finding(WARN, "groups", told, advice)


def _summary(found: Iterable[GroupListing]) -> str:
    states: dict[str, int] = {}
    for group in found:
        states[group.state or "of unknown state"] = states.get(group.state or "of unknown state", 0) + 1
    if not states:
        return "none"
    return f"{sum(states.values())}: {', '.join(f'{count} {state}' for state, count in sorted(states.items()))}"


def cleaners(metrics: Mapping[int, str]) -> Iterator[Finding]:
    """Logs that can't be compacted grow for ever, and take longer to load each time. `metrics` are those of each node."""
    for node_id, text in metrics.items():
        count = uncleanable(text)
        if count:
            found = f"node {node_id} can't compact {count} log{'' if count == 1 else 's'}, which grow"
            yield Finding(WARN, "cleaner", found, "its own log names them, and says why")


def uncleanable(metrics: str) -> int:
    """Logs, in all directories."""
    return round(sum(float(value) for value in UNCLEANABLE.findall(metrics)))


def metrics_of(admin: Admin, broker: Broker) -> str:
    """Nothing, where they are not served or can't be had from here."""
    resource = ConfigResource(ResourceType.BROKER, str(broker.node_id))
    try:
        entries = value_of(admin.describe_configs([resource])[resource])
    except KafkaError:
        return ""
    listener = next((entry.value for entry in entries if entry.name == endpoints.METRICS_KEY), None)
    place = endpoints.place_of(broker.node_id, broker.host, listener or "")
    if not place.port:
        return ""
    connection = http.client.HTTPConnection(place.host, place.port, timeout=endpoints.TIMEOUT_S)
    try:
        connection.request("GET", "/metrics")
        return connection.getresponse().read(METRICS_BYTES_MAX).decode(errors="replace")
    except (OSError, http.client.HTTPException):
        return ""
    finally:
        connection.close()
