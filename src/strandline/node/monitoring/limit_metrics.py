"""What connections take of this node, and how often a limit held one back.

Always true: every limit of `node/` on what a peer can take has its count here.
"""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from strandline.node.monitoring.monitored_node import MonitoredNode


def of_limits(view: MonitoredNode, http_refused: int) -> Iterator[Metric]:
    counts, resources = view.connection_counts, view.resources
    connections = GaugeMetricFamily(
        "strandline_connections", "Open connections, those in their TLS handshake included.", labels=("listener",)
    )
    for listener, count in view.connections().items():
        connections.add_metric((listener,), count)
    refused = CounterMetricFamily(
        "strandline_connections_refused", "Connections that were not let in, by the limit.", labels=("limit",)
    )
    for limit, count in sorted(counts.refused.items()):
        refused.add_metric((limit,), count)
    stalled = CounterMetricFamily(
        "strandline_connections_stalled",
        "Connections closed because a request did not go on arriving, or replies were not read.",
        labels=("what",),
    )
    stalled.add_metric(("request",), resources.stalled_requests)
    stalled.add_metric(("replies",), resources.stalled_replies)
    yield from (connections, refused, stalled)
    for name, help_, value in (
        ("connections_max", "Connections for which there are descriptors.", counts.connections_max),
        ("request_bytes_held", "Memory of requests that are still arriving.", resources.reads.taken_bytes),
        ("request_bytes_waiting", "Connections that wait for such memory.", resources.reads.waiting),
        ("reply_bytes_held", "Replies that peers have not read, as last counted.", resources.replies.held_bytes),
    ):
        yield GaugeMetricFamily(f"strandline_{name}", help_, value=value)
    for name, help_, value in (
        ("connections_evicted", "Clients' connections closed for one of the cluster's own.", counts.evicted),
        ("reply_budget_exhausted", "Times that unread replies filled their budget.", resources.replies.exhausted_count),
        ("turns_ended_early", "Turns that ended though the connection had more.", resources.turns.ended_early),
        ("http_refused", "HTTP requests that were one too many or came under a foreign name.", http_refused),
    ):
        yield CounterMetricFamily(f"strandline_{name}", help_, value=value)
