"""The checks of `doctor` in groups, and in the log cleaners that compact their offsets.

Always true: a rebalancing group is checked twice, and is a finding only if it is rebalancing both times; a cleaner whose metrics
cannot be read is not a finding.
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
from strandline.client.flow.descriptions import ConfigResource, ResourceType
from strandline.errors import KafkaError

if TYPE_CHECKING:
    from strandline.client.blocking import Admin
    from strandline.client.core.cluster_metadata import BrokerMetadata
    from strandline.client.flow.group_descriptions import GroupListing

REBALANCE_S = 5.0
"""Longer than a rebalance takes if all members respond."""
METRICS_BYTES_MAX = 64 * 1024 * 1024
UNCLEANABLE = re.compile(r"^kafka_log_logcleanermanager_uncleanable_partitions_count(?:\{.*\})? (\S+)$", re.MULTILINE)


def groups(admin: Admin, sleep: Callable[[float], None] = time.sleep) -> Iterator[Finding]:
    """How many groups there are, and which of them do not finish a rebalance."""
    try:
        found = list_groups(admin)
        busy = {group.group_id for group in found if group.state in REBALANCING}
        if busy:
            sleep(REBALANCE_S)
            found = list_groups(admin)
    except KafkaError as error:
        yield Finding(
            WARN, "groups", f"cannot be listed: {error.message}", "are all brokers healthy that coordinate groups?"
        )
        return
    yield Finding(OK, "groups", _summary(found))
    for group in found:
        if group.group_id in busy and group.state in REBALANCING:
            found_state = f"{group.group_id} is {group.state}, as it was {REBALANCE_S:.0f} s ago"
            advice = (
                "it waits for a member that does not respond, until its max.poll.interval.ms or session expires; "
                f"`strandline groups describe {group.group_id} --members` shows them"
            )
            yield Finding(WARN, "groups", found_state, advice)


def _summary(found: Iterable[GroupListing]) -> str:
    states: dict[str, int] = {}
    for group in found:
        states[group.state or "of unknown state"] = states.get(group.state or "of unknown state", 0) + 1
    if not states:
        return "none"
    return f"{sum(states.values())}: {', '.join(f'{count} {state}' for state, count in sorted(states.items()))}"


def cleaners(metrics: Mapping[int, str]) -> Iterator[Finding]:
    """Logs that cannot be compacted: they grow, and take longer to load each time. `metrics` are those of each node."""
    for node_id, text in metrics.items():
        count = uncleanable(text)
        if count:
            found = f"node {node_id} cannot compact {count} log{'' if count == 1 else 's'}, which grow"
            yield Finding(WARN, "cleaner", found, "the log of the node names them and the reason")


def uncleanable(metrics: str) -> int:
    """The number of uncleanable logs, in all log dirs."""
    return round(sum(float(value) for value in UNCLEANABLE.findall(metrics)))


def metrics_of(admin: Admin, broker: BrokerMetadata) -> str:
    """The metrics of a broker; empty if it serves none or they cannot be reached."""
    resource = ConfigResource(ResourceType.BROKER, str(broker.node_id))
    try:
        entries = value_of(admin.describe_configs([resource])[resource])
    except KafkaError:
        return ""
    listener = next((entry.value for entry in entries if entry.name == endpoints.METRICS_KEY), None)
    endpoint = endpoints.endpoint_of(broker.node_id, broker.host, listener or "")
    if not endpoint.port:
        return ""
    connection = http.client.HTTPConnection(endpoint.host, endpoint.port, timeout=endpoints.TIMEOUT_S)
    try:
        connection.request("GET", "/metrics")
        return connection.getresponse().read(METRICS_BYTES_MAX).decode(errors="replace")
    except (OSError, http.client.HTTPException):
        return ""
    finally:
        connection.close()
