"""One node in this process: from a properties file to a clean stop.

Always true: a first SIGTERM or SIGINT stops the node in order, a second one ends the process at once; what prevents a start
(configuration, storage, a port in use) is found before anything is written, and reported in one sentence.
"""

from __future__ import annotations

import asyncio
import errno
import gc
import os
import random
import signal
import socket
import sys
from collections.abc import Mapping, Sequence

from strandline.api.table import BROKER_APIS, CONTROLLER_APIS
from strandline.config.errors import ConfigError
from strandline.config.listeners import ListenerConfig
from strandline.config.node import NodeConfig
from strandline.config.properties import load
from strandline.node.log_dirs import StorageError, format_dirs
from strandline.node.logger import Logger
from strandline.node.node import Node, NodeFailed
from strandline.runtime.clock import SystemClock
from strandline.runtime.descriptors import divide, files_kept
from strandline.runtime.disk import FileDisk, raise_open_files_limit
from strandline.runtime.logging import make_logger
from strandline.runtime.loop import run
from strandline.runtime.memory import keep_freed_memory
from strandline.runtime.modes import keep_to_owner, readable_by_others
from strandline.runtime.record_walk import make_compiled, use_compiled
from strandline.runtime.watchdog import Watchdog
from strandline.wire import messages

STOP_TIMEOUT_S = 60.0
"""A node that has not stopped by then is left as a crash would leave it; its logs are checked at the next start."""


FIRST_WORDS = (18, 52, 53, 1, 62, 63, 70, 3)
"""ApiVersions, Vote, BeginQuorumEpoch, Fetch, the registrations and heartbeats, Metadata."""


class ServerError(Exception):
    """The node could not be started or could not go on; one sentence for a person."""


def run_node(
    path: str,
    overrides: Sequence[str] = (),
    *,
    cluster_id: str | None = None,
    insecure: bool = False,
    level: str = "info",
    environment: Mapping[str, str] | None = None,
) -> None:
    """Run the node that a properties file describes until it is asked to stop. ServerError says why it ended otherwise.

    With a cluster id, log dirs that are not formatted yet are formatted for that cluster first.
    """
    try:
        config = NodeConfig.build(load(path, environment, overrides), insecure=insecure, hostname=socket.gethostname())
    except ConfigError as error:
        raise ServerError(str(error)) from None
    keep_to_owner()
    for listener in config.listeners:
        check_port(listener)
        if not insecure:
            check_key_file(listener)
    if cluster_id is not None:
        _format(config, cluster_id)
    keep_freed_memory()
    watchdog = None
    if config.watchdog_timeout_ms and sys.platform == "linux":
        watchdog = Watchdog(config.watchdog_timeout_ms / 1000, config.node_id)
    try:
        run(serve(config, make_logger(sys.stdout, level), watchdog))
    finally:
        if watchdog is not None:
            watchdog.close()


def _format(config: NodeConfig, cluster_id: str) -> None:
    disk = FileDisk()
    paths = list(dict.fromkeys((*config.log_dirs, config.metadata_log_dir)))
    try:
        format_dirs(disk, paths, cluster_id, config.node_id, random.SystemRandom())
    except StorageError as error:
        raise ServerError(str(error)) from None
    finally:
        disk.close()


def check_port(listener: ListenerConfig) -> None:
    """ServerError if the address is in use. Checked early, so that the log dirs are not even opened."""
    host = listener.host or "0.0.0.0"
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, listener.port))
        except OSError as error:
            raise ServerError(_explain_bind(listener, error)) from None


def check_key_file(listener: ListenerConfig) -> None:
    """ServerError if every user of this machine can read the listener's private key (SEC-H1)."""
    path = None if listener.tls is None else listener.tls.keystore_location
    if path is not None and readable_by_others(path):
        raise ServerError(
            f"ssl.keystore.location of listener {listener.name}: every user of this machine can read {path}; "
            f"chmod o-rwx {path}, or start with --insecure"
        )


def _explain_bind(listener: ListenerConfig, error: OSError) -> str:
    where = f"{listener.host}:{listener.port}"
    if error.errno == errno.EADDRINUSE:
        return f"{where} is in use; choose another with --port / listeners"
    return f"{where} cannot be listened on ({error.strerror or error}); choose another host or port in listeners"


async def serve(config: NodeConfig, logger: Logger, watchdog: Watchdog | None = None) -> None:
    """Start the node, wait for a signal or its failure, stop it."""
    asked_to_stop = asyncio.Event()

    def on_signal() -> None:
        if asked_to_stop.is_set():
            os._exit(1)
        asked_to_stop.set()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, on_signal)
    limit = raise_open_files_limit()
    descriptors = divide(limit, config.max_connections)
    disk = FileDisk(max_open_files=files_kept(descriptors.files))
    connections_max = descriptors.connections
    node = Node(config, disk, SystemClock(), random.SystemRandom(), logger, connections_max=connections_max)
    _warn(config, logger)
    if connections_max < config.max_connections:
        logger.warning(
            "the limit of open files leaves room for fewer connections than max.connections; raise it (ulimit -n)",
            node=config.node_id,
            open_files=limit,
            connections=connections_max,
        )
    has_walk = not config.broker or use_compiled()
    stop = loop.create_task(asked_to_stop.wait())
    making: asyncio.Task[None] | None = None
    # What a node loads stays: to walk it again and again while it grows takes a third of the start, and later it is for nothing.
    gc.disable()
    try:
        started = await _started(node, stop)
        gc.freeze()
        gc.enable()
        if started:
            if watchdog is not None:
                watchdog.start()
            if not has_walk:
                making = loop.create_task(make_compiled(logger))
            await _until_stopped(node, stop, watchdog)
    finally:
        gc.enable()
        if making is not None:
            making.cancel()
            await asyncio.wait((making,))
        stop.cancel()
        disk.close()


def _warn(config: NodeConfig, logger: Logger) -> None:
    for warning in config.warnings:
        logger.warning(warning, node=config.node_id)


async def _started(node: Node, stop: asyncio.Task[bool]) -> bool:
    """Whether the node is up; False if it was asked to stop before that, and has stopped."""
    start = asyncio.get_running_loop().create_task(node.start())
    await asyncio.wait((start, stop), return_when=asyncio.FIRST_COMPLETED)
    if not start.done():
        start.cancel()
        await asyncio.wait((start,))
        return False
    try:
        start.result()
    except (StorageError, ConfigError) as error:
        raise ServerError(str(error)) from None
    except (NodeFailed, OSError) as error:
        raise ServerError(f"node {node.config.node_id} could not start: {_explain(error)}") from None
    return True


def _explain(error: NodeFailed | OSError) -> str:
    if isinstance(error, NodeFailed):
        return str(error)
    where = f"{error.filename}: " if error.filename else ""
    return f"{where}{error.strerror or error}"


async def _until_stopped(node: Node, stop: asyncio.Task[bool], watchdog: Watchdog | None) -> None:
    failed = asyncio.get_running_loop().create_task(node.failed())
    await asyncio.wait((failed, stop), return_when=asyncio.FIRST_COMPLETED)
    reason = failed.exception() if failed.done() and not failed.cancelled() else None
    failed.cancel()
    if watchdog is not None:
        watchdog.suspend()
    try:
        async with asyncio.timeout(STOP_TIMEOUT_S):
            await node.stop()
    except TimeoutError:
        raise ServerError(
            f"node {node.config.node_id} did not stop within {STOP_TIMEOUT_S:.0f} s; left as it is"
        ) from None
    if isinstance(reason, NodeFailed):
        raise ServerError(f"node {node.config.node_id} cannot go on: {reason}")
    if reason is not None:
        raise reason


def warm_up() -> None:
    """Make what every node needs in its first second, so that those forked from this process have it already."""
    use_compiled()
    for api_key in FIRST_WORDS:
        version = (CONTROLLER_APIS.get(api_key) or BROKER_APIS[api_key]).versions[-1]
        messages.request_family(api_key).codec(version)
        messages.response_family(api_key).codec(version)


def main(path: str, cluster_id: str) -> int:
    """The process of one node of a local cluster."""
    try:
        run_node(path, cluster_id=cluster_id)
    except ServerError as error:
        sys.stderr.write(f"strandline: {error}\n")
        return 1
    return 0
