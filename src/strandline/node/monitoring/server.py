"""What a node shows of itself over HTTP: `/metrics`, `/events`, `/replicas`, `/health`.

All of it is read from the node's observation (`node/observation/`).

Always true: without `metrics.listener` nothing listens and nothing is spent; a request changes nothing; what is large
is made in pieces, so that no other request waits long.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from strandline.config.address import parse_address
from strandline.config.node import NodeConfig
from strandline.node.broker_state import BrokerState
from strandline.node.logger import Logger
from strandline.node.monitoring.http import BadQuery, HttpAnswer, HttpServer
from strandline.node.monitoring.positions import described
from strandline.node.observation.node import NodeObservation
from strandline.ports import Clock, Disk

if TYPE_CHECKING:
    from strandline.node.monitoring.metrics import NodeMetrics

EVENTS_AT_ONCE_MAX = 1000
WAIT_MS_MAX = 30_000
RETRY_S = 2.0
PIECE = 100
"""Replicas that are described in one go."""


class MonitoringServer:
    def __init__(self, observed: NodeObservation, config: NodeConfig, disk: Disk, clock: Clock, logger: Logger) -> None:
        """`disk` has the workers in which the metrics' library is loaded; `clock` is that of the times observed."""
        self._observed = observed
        self._config = config
        self._disk = disk
        self._clock = clock
        self._logger = logger
        self._metrics: NodeMetrics | None = None
        self._trying: asyncio.Task[None] | None = None
        routes = {
            "/metrics": self._show_metrics,
            "/events": self._show_events,
            "/replicas": self._show_replicas,
            "/health": self._show_health,
        }
        advertised = [listener.advertised_host for listener in config.listeners]
        self._server = HttpServer(routes, logger, (*config.metrics_allowed_hosts, *advertised))

    @property
    def port(self) -> int:
        """Where it listens; 0 if it does not."""
        return self._server.port

    async def start(self) -> None:
        """Listen. If the address can't be had, the node does its work unseen, and tries again: another process may have
        it only for a moment."""
        address = parse_address(self._config.metrics_listener)
        if address is None or await self._listen(*address):
            return
        self._trying = asyncio.get_running_loop().create_task(self._try_again(*address))

    async def _listen(self, host: str, port: int) -> bool:
        try:
            await self._server.start(host, port)
        except OSError as error:
            if self._trying is None:
                self._logger.error("metrics can't be served yet", host=host, port=port, error=str(error))
            return False
        self._logger.info("metrics are served", host=host, port=self._server.port)
        return True

    async def _try_again(self, host: str, port: int) -> None:
        is_served = False
        while not is_served:
            await asyncio.sleep(RETRY_S)
            is_served = await self._listen(host, port)

    async def stop(self) -> None:
        if self._trying is not None:
            self._trying.cancel()
            await asyncio.gather(self._trying, return_exceptions=True)
        await self._server.stop()

    async def _show_metrics(self, query: Mapping[str, str]) -> HttpAnswer:
        # Most nodes are never asked, and the library takes longer to load than anybody here should wait.
        if self._metrics is None:
            self._metrics = await self._disk.offload(self._load_metrics, "")
        pages = []
        for page in self._metrics.pages():
            pages.append(page)
            await asyncio.sleep(0)
        return HttpAnswer(b"".join(pages), self._metrics.content_type)

    def _load_metrics(self) -> NodeMetrics:
        from strandline.node.monitoring.metrics import NodeMetrics

        return NodeMetrics(self._observed, self._clock, lambda: self._server.refused)

    async def _show_events(self, query: Mapping[str, str]) -> HttpAnswer:
        """Events after a number, at most so many; with `wait_ms`, once there is one, or when the time is over."""
        events = self._observed.events
        since = _number(query, "since", 0)
        await events.wait(since, min(_number(query, "wait_ms", 0), WAIT_MS_MAX) / 1000)
        newer = events.since(since, EVENTS_AT_ONCE_MAX)
        return _json(
            {
                "node_id": self._config.node_id,
                "incarnation_id": str(events.incarnation_id),
                "last": newer[-1].sequence if newer else events.last,
                "events": [event._asdict() for event in newer],
            }
        )

    async def _show_replicas(self, query: Mapping[str, str]) -> HttpAnswer:
        """Replicas on this node; with `topic` and `partition`, only those."""
        node_id = self._config.node_id
        topic = query.get("topic")
        index = _number(query, "partition", 0) if "partition" in query else None
        wanted = [
            replica
            for replica in self._observed.replicas
            if topic in (None, replica.topic) and index in (None, replica.index)
        ]
        wanted.sort(key=lambda replica: (replica.topic, replica.index))
        shown = []
        for start in range(0, len(wanted), PIECE):
            now = self._clock.monotonic()
            for replica in wanted[start : start + PIECE]:
                shown.append(_encode(described(replica, node_id, now)))
            await asyncio.sleep(0)
        return HttpAnswer(f'{{"node_id": {node_id}, "replicas": [{", ".join(shown)}]}}'.encode())

    async def _show_health(self, query: Mapping[str, str]) -> HttpAnswer:
        """200 if the node does what it is for: a broker serves clients, a controller knows who leads."""
        observed, quorum = self._observed, self._observed.quorum
        leader_id = -1 if quorum is None else quorum.leader_id
        is_well = observed.broker_state is BrokerState.RUNNING if observed.is_broker else leader_id >= 0
        roles = {"broker": observed.is_broker, "controller": observed.is_controller}
        shown = {
            "ok": is_well,
            "node_id": self._config.node_id,
            "cluster_id": observed.cluster_id,
            "roles": [role for role, has in roles.items() if has],
            "broker_state": observed.broker_state.name if observed.is_broker else None,
            "controller": leader_id,
            "controller_epoch": -1 if quorum is None else quorum.epoch,
            "is_active_controller": quorum is not None and quorum.is_active_controller,
            "metadata_offset": observed.published.end_offset - 1,
            "offline_log_dirs": [log_dir.path for log_dir in observed.log_dirs if not log_dir.online],
        }
        return _json(shown, 200 if is_well else 503)


def _json(value: object, status: int = 200) -> HttpAnswer:
    return HttpAnswer(_encode(value).encode(), status=status)


def _encode(value: object) -> str:
    return json.dumps(value, default=str)


def _number(query: Mapping[str, str], name: str, default: int) -> int:
    given = query.get(name)
    if given is None:
        return default
    if not given.isascii() or not given.isdigit() or len(given) > 18:
        raise BadQuery(f"{name}={given[:40]} is no number")
    return int(given)
