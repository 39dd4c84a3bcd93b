"""What connections take of this node, and how often a limit held one back.

Always true: every limit of `node/` on what a peer can take has its count here.
"""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from strandline.node.observation.connections import ObservedConnections


def of_limits(connections: ObservedConnections, http_refused: int) -> Iterator[Metric]:
    open_now = GaugeMetricFamily(
        "strandline_connections", "Open connections, those in their TLS handshake included.", labels=("listener",)
    )
    for listener, count in connections.by_listener.items():
        open_now.add_metric((listener,), count)
    refused = CounterMetricFamily(
        "strandline_connections_refused", "Connections that were not let in, by the limit.", labels=("limit",)
    )
    for limit, count in sorted(connections.refused.items()):
        refused.add_metric((limit,), count)
    stalled = CounterMetricFamily(
        "strandline_connections_stalled",
        "Connections closed because a request did not go on arriving, or replies were not read.",
        labels=("what",),
    )
    stalled.add_metric(("request",), connections.stalled_requests)
    stalled.add_metric(("replies",), connections.stalled_replies)
    yield from (open_now, refused, stalled)
    for name, help_, value in (
        ("connections_max", "Connections for which there are descriptors.", connections.connections_max),
        ("request_bytes_held", "Memory of requests that are still arriving.", connections.request_bytes_held),
        ("request_bytes_waiting", "Connections that wait for such memory.", connections.waiting_for_memory),
        ("reply_bytes_held", "Replies that peers have not read, as last counted.", connections.reply_bytes_held),
    ):
        yield GaugeMetricFamily(f"strandline_{name}", help_, value=value)
    for name, help_, value in (
        ("connections_evicted", "Clients' connections closed for one of the cluster's own.", connections.evicted),
        (
            "reply_budget_exhausted",
            "Times that unread replies filled their budget.",
            connections.reply_budget_exhausted,
        ),
        ("turns_ended_early", "Turns that ended though the connection had more.", connections.turns_ended_early),
        ("http_refused", "HTTP requests that were one too many or came under a foreign name.", http_refused),
    ):
        yield CounterMetricFamily(f"strandline_{name}", help_, value=value)
